"""The merge train at work: what was cut short is cleared up, then it is planned and done.

All that it knows is on disk or in git, but for which tests run; those of another life run no more.
"""

from collections.abc import Callable, Sequence
from threading import Event

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate import ports
from lockgate.core.config.settings import Settings
from lockgate.core.lifecycle.advice import Trouble
from lockgate.core.lifecycle.undoing import landed_as, worker_of
from lockgate.core.model.commits import TASK_TRAILER
from lockgate.core.model.facts import as_facts, canonical
from lockgate.core.model.gates import Where
from lockgate.core.model.results import Passed
from lockgate.core.model.task import Pinned, ProjectId, Task
from lockgate.core.train.entries import may_land, train_gates, verdict
from lockgate.core.train.model import (
    Broken,
    Build,
    Built,
    CancelTest,
    Candidate,
    CheckTip,
    Conflict,
    Drop,
    Hold,
    Land,
    Result,
    SetAside,
    StartTest,
    Step,
    Tree,
)
from lockgate.core.train.plan import plan, stale
from lockgate.errors import LockgateError
from lockgate.ports import Load, Project, Target, Workspaces
from lockgate.services.gates.runner import Evaluation, Facts, GateRunner
from lockgate.services.train.landing import Lander
from lockgate.services.train.view import Train, TrainView

# Tests a tree of the train: its command gates, on a clean checkout of exactly that commit.


IDS = 12  # characters of a project and a tree that name its checkouts
GOAL = "a candidate of the merge train"


class Tested(Struct, frozen=True, kw_only=True):
    """A commit to test, by the rules of the tip that it would go on."""

    project: Project
    settings: Settings
    rules: Pinned
    built: Built


class TrainTests(Struct, frozen=True):
    workspaces: Workspaces
    runner: GateRunner

    def run(self, it: Tested, cancelled: Callable[[], bool]) -> tuple[Result, str]:
        """The tree's result, and what ran, as JSON."""
        gates = tuple(
            replace(gate, place=replace(gate.place, on=(Where.CHANGE,)))
            for gate in train_gates(it.settings)
        )
        candidate = _candidate(it)
        facts = Facts(goal=GOAL, branch=it.rules.base, agent=it.settings.project.agent)
        evaluation = Evaluation(
            candidate=candidate,
            facts=facts,
            files=self.workspaces.change(candidate).files,
            settings=replace(it.settings, gates=gates),
            settled=_settled(it.settings),
        )
        try:
            results = self.runner.results(evaluation, cancelled)
        finally:
            self.workspaces.discard(self.runner.home / "runs" / candidate.name)
        proofs = [as_facts(result) for result in results if isinstance(result, Passed)]
        return verdict(results), canonical(proofs)


def _settled(settings: Settings) -> frozenset[str]:
    """The gates that each change was judged by, with base's version of what they run."""
    return frozenset(gate.name for gate in settings.gates if Where.CHANGE in gate.place.on)


def _candidate(it: Tested) -> ports.Candidate:
    """No task has its name."""
    name = f"train-{it.project.id[:IDS]}-{it.built.tree[:IDS]}"
    return ports.Candidate(project=it.project, commit=it.built.commit, rules=it.rules, name=name)


ROUNDS = 200  # plans in one go; whatever is left then is planned at the next
LOOK = 30.0  # seconds after which the target is looked at, though nothing has happened here
LOOK_AGAIN = 5.0  # seconds, where the user's checkout is in the way

MAY_STILL_PUSH = "the orchestrator before this one may still push what it was about to land"

Submit = Callable[[str, Callable[[], float]], bool]  # a lane of the loop, and its work


class MergeQueue(Struct, frozen=True, kw_only=True):
    view: TrainView
    lander: Lander
    tests: TrainTests
    now: Callable[[], float]
    stopping: Callable[[], bool]
    held: dict[str, Trouble]  # why nothing lands, by train, for people
    _running: dict[tuple[str, Tree], Event] = field(default_factory=dict[tuple[str, Tree], Event])
    _seen: dict[ProjectId, tuple[object, float]] = field(
        default_factory=dict[ProjectId, tuple[object, float]]
    )
    _ended: dict[ProjectId, int] = field(default_factory=dict[ProjectId, int])  # tests
    _in_the_way: dict[ProjectId, tuple[str, float]] = field(
        default_factory=dict[ProjectId, tuple[str, float]]
    )

    def due(self) -> tuple[Project, ...]:
        """Those in which something has changed, or waits to land and was not looked at long."""
        waiting: dict[ProjectId, list[Task]] = {id: [] for id in list(self._seen)}
        for task in self.view.waiting():
            waiting.setdefault(task.project, []).append(task)
        return tuple(
            self.view.store.project(id) for id, tasks in waiting.items() if self._is_due(id, tasks)
        )

    def turn(self, project: Project, submit: Submit) -> float:
        """All that can be done now; nought, or when to look again."""
        target, mode = self.view.target(project)
        if project.id not in self._seen:
            self.view.log.forget_unjudged(target.name)
        tasks = self.view.waiting(project.id)
        sign, again = self._sign(project.id, tasks), 0.0
        wanted = any(may_land(it, mode) for it in tasks)
        if wanted or self.view.log.open_landings(target.name):
            again = self._planned(self._allowed(target), submit)
        else:
            self._tell(project, "")
            self._cancel_all(target.name)
        self._seen[project.id] = (sign, again or self.now() + LOOK)
        return again

    def _planned(self, train: Train, submit: Submit) -> float:
        """Plan, do, and plan again, until nothing is left but what others must do."""
        project, again = train.target.project, self.lander.recover(train)
        if again:
            self._tell(project, MAY_STILL_PUSH)
            return again
        for _ in range(ROUNDS):
            queue = self.view.queue(train, self._trees(train.name), self._blocked(project))
            steps = plan(queue)
            self._tell(project, "; ".join(it.why for it in steps if isinstance(it, Hold)))
            done = next((it for it in steps if self._did(train, it, submit)), None)
            if done is None:
                self._let_go(train)
                return self._in_the_way.get(project.id, ("", 0.0))[1]
            if isinstance(done, Land):
                self._land(train, done)
                train = self._allowed(train.target)
        return self.now()

    def _allowed(self, target: Target) -> Train:
        """Untrusted where its rules, here and at its tip, ask for what no human has agreed to."""
        if target.remote:  # else the tip is the base that is here
            self.view.configuration.allowed_of(target.project)
        train = self.view.train(target)
        self.view.configuration.allowed_at(target.project, train.tip.commit)
        return train

    def _land(self, train: Train, step: Land) -> None:
        project = train.target.project
        why = self.lander.land(train, step)
        if why:
            self._in_the_way[project.id] = (why, self.now() + LOOK_AGAIN)

    def _blocked(self, project: Project) -> str:
        """Why the target cannot be moved, until it is time to try once more."""
        why, until = self._in_the_way.get(project.id, ("", 0.0))
        if self.now() < until:
            return why
        self._in_the_way.pop(project.id, None)
        return ""

    def _tell(self, project: Project, why: str) -> None:
        lane = f"queue of {project.name}"
        if why:
            self.held[lane] = Trouble(why=why)
        else:
            self.held.pop(lane, None)

    def _is_due(self, id: ProjectId, tasks: Sequence[Task]) -> bool:
        sign, until = self._seen.get(id, (None, 0.0))
        return (bool(tasks) and self.now() >= until) or sign != self._sign(id, tasks)

    def _sign(self, id: ProjectId, tasks: Sequence[Task]) -> object:
        """The same for as long as nothing has happened that a plan would look at."""
        return frozenset((it.id, it.rev) for it in tasks), self._ended.get(id, 0)

    def _did(self, train: Train, step: Step, submit: Submit) -> bool:
        """Whether the plan is another one after this step."""
        match step:
            case CancelTest(tree):
                self._cancel(train.name, tree)
            case Drop() | SetAside():
                self.lander.send_back(train, step)
                return True
            case Land():
                return True
            case Build():
                self._build(train, step)
                return True
            case CheckTip(built) | StartTest(built, _):
                self._test(train, built, submit)
            case Hold():
                pass
        return False

    def _build(self, train: Train, step: Build) -> None:
        tasks = [self.view.store.load(change.task) for change in step.changes]
        loads = [
            Load(
                task.id,
                change.commit,
                landed_as(task, TASK_TRAILER),
                worker_of(task, change.commit),
                train.settings.commit.author,
            )
            for task, change in zip(tasks, step.changes, strict=True)
        ]
        strategy = train.settings.merge.strategy
        outcome = self.view.yard.build(train.target, step.onto, loads, strategy)
        if isinstance(outcome, Conflict):
            outcome = self.lander.with_others(train, outcome)
        self.view.log.add_candidate(train.name, Candidate(step.onto, step.changes, outcome))

    def _test(self, train: Train, built: Built, submit: Submit) -> None:
        called_off = self._running.setdefault((train.name, built.tree), Event())
        lane = f"train {train.name} {built.tree}"
        if not submit(lane, lambda: self._tested(train, built, called_off)):
            self._running.pop((train.name, built.tree), None)  # its last test is still tidying up

    def _tested(self, train: Train, built: Built, called_off: Event) -> float:
        def cancelled() -> bool:
            return called_off.is_set() or self.stopping()

        it = Tested(
            project=train.target.project,
            settings=train.settings,
            rules=train.rules,
            built=built,
        )
        try:
            result, proof = self._judged(it, cancelled)
            if not cancelled():
                rules = train.rules.config_hash
                self.view.log.put_result(train.name, rules, built.tree, result, proof)
        finally:
            self._running.pop((train.name, built.tree), None)
            self._ended[it.project.id] = self._ended.get(it.project.id, 0) + 1
        return 0.0

    def _judged(self, it: Tested, cancelled: Callable[[], bool]) -> tuple[Result, str]:
        try:
            return self.tests.run(it, cancelled)
        except LockgateError as error:
            return Broken(str(error)), ""

    def _trees(self, target: str) -> frozenset[Tree]:
        return frozenset(tree for name, tree in list(self._running) if name == target)

    def _cancel_all(self, target: str) -> None:
        for tree in self._trees(target):
            self._cancel(target, tree)

    def _cancel(self, target: str, tree: Tree) -> None:
        test = self._running.get((target, tree))
        if test:
            test.set()

    def _let_go(self, train: Train) -> None:
        """Of candidates that no train from here can use, and of what was measured of them."""
        queue = self.view.queue(train, self._trees(train.name))
        gone = stale(queue)
        if not gone:
            return
        self.view.log.drop_candidates(train.name, gone)
        kept = [it.outcome for it in queue.candidates if it not in gone]
        built = [it for it in kept if isinstance(it, Built)]
        self.view.log.drop_results(train.name, [train.tip.tree, *(it.tree for it in built)])
        self.view.yard.prune(train.target, [it.commit for it in built])
