"""The merge train at work: what was cut short is cleared up, then it is planned and done.

All that it knows is on disk or in git, but for which tests run, which the engine knows.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate import ports
from lockgate.core.config.settings import Settings
from lockgate.core.jobs import TestTree
from lockgate.core.lifecycle.evaluation import passing_trouble, with_repeated
from lockgate.core.lifecycle.needs import Trouble
from lockgate.core.lifecycle.undoing import landed_as, worker_of
from lockgate.core.model.commits import TASK_TRAILER
from lockgate.core.model.facts import as_facts, canonical
from lockgate.core.model.gates import Where
from lockgate.core.model.results import Broken as GateBroken
from lockgate.core.model.results import Passed, SingleGateResult
from lockgate.core.model.spans import TEST, UNTRACED, Context
from lockgate.core.model.task import Pinned, ProjectId, TaskId
from lockgate.core.train.entries import train_gates, verdict
from lockgate.core.train.model import (
    Began,
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
    Offer,
    Place,
    Result,
    SetAside,
    Standings,
    StartTest,
    Step,
    Tree,
)
from lockgate.core.train.offers import next_steps, standings
from lockgate.core.train.plan import stale
from lockgate.errors import LockgateError, SurroundingsFailed, Unavailable
from lockgate.ports import Load, Project, Target, Workspaces
from lockgate.ports.engine import Engine
from lockgate.ports.train import TAKES_PULLS
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
    task: TaskId | None = None  # in whose trace it is told


class TrainTests(Struct, frozen=True):
    workspaces: Workspaces
    runner: GateRunner
    trace: Callable[[TaskId], Context] = lambda _: UNTRACED
    killed: dict[Tree, frozenset[str]] = field(default_factory=dict[Tree, frozenset[str]])

    def run(self, it: Tested, cancelled: Callable[[], bool]) -> tuple[Result, str]:
        """The tree's result, and what ran, as JSON.

        SurroundingsFailed where a gate could not run for a reason that may pass.
        """
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
            with self.runner.spans.span(TEST, self._trace(it.task), {}) as span:
                results = self.runner.results(replace(evaluation, span=span.at), cancelled)
                span.failed = not all(isinstance(result, Passed) for result in results)
        finally:
            self.workspaces.discard(self.runner.home / "runs" / candidate.name)
        results = self._with_repeated(it.built.tree, results)
        passing = passing_trouble(results)
        if passing and not cancelled():
            raise SurroundingsFailed(passing.gate, passing.why)
        self.killed.pop(it.built.tree, None)
        proofs = [as_facts(result) for result in results if isinstance(result, Passed)]
        return verdict(results), canonical(proofs)

    def _trace(self, task: TaskId | None) -> Context:
        return self.trace(task) if task else UNTRACED

    def _with_repeated(
        self, tree: Tree, results: Sequence[SingleGateResult]
    ) -> tuple[SingleGateResult, ...]:
        """A command that is killed a second time on one tree has failed."""
        before = self.killed.get(tree, frozenset[str]())
        now = frozenset(it.gate for it in results if isinstance(it, GateBroken) and it.if_repeated)
        self.killed[tree] = before | now
        return with_repeated(results, before)


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
LASTING = 3600.0  # seconds, where the remote's rules forbid every push
CHANGES_THE_PLAN = (Drop, SetAside, Land, Offer, Build)  # another one is due after these
AT_ONCE = 0.001  # seconds: 0 would mean that nothing is left

MAY_STILL_PUSH = "the orchestrator before this one may still push what it was about to land"


class MergeQueue(Struct, frozen=True, kw_only=True):
    view: TrainView
    lander: Lander
    tests: TrainTests
    elapsed: Callable[[], float]
    held: dict[str, Trouble]  # why nothing lands, by train, for people
    began: Began = field(default_factory=Began)
    standings: dict[ProjectId, Standings] = field(default_factory=dict[ProjectId, Standings])
    _seen: dict[ProjectId, tuple[object, float]] = field(
        default_factory=dict[ProjectId, tuple[object, float]]
    )
    _ended: dict[ProjectId, int] = field(default_factory=dict[ProjectId, int])  # tests
    _in_the_way: dict[ProjectId, tuple[str, float]] = field(
        default_factory=dict[ProjectId, tuple[str, float]]
    )

    def due(self) -> tuple[Project, ...]:
        """Those in which something has changed, or waits to land and was not looked at long."""
        waiting = self.view.store.to_land()
        known = dict.fromkeys((*list(self._seen), *waiting))
        return tuple(
            self.view.store.project(id) for id in known if self._is_due(id, waiting.get(id))
        )

    def turn(self, project: Project, engine: Engine) -> float:
        """All that can be done now; in how many seconds to look again, or 0."""
        target, _ = self.view.target(project)
        if project.id not in self._seen:
            self.view.log.forget_unjudged(target.name)
        sign, again = self._sign(project.id, self.view.store.to_land().get(project.id)), 0.0
        merge = self.view.configuration.settings_of(project).merge
        if self.view.wants_turn(target, merge) or self.view.log.open_landings(target.name):
            again = self._planned(self._allowed(target), engine)
        else:
            self._tell(project)
            self._stand(project, ())
            for lane in tests_of(engine, target.name).values():
                engine.call_off(lane)
        self._seen[project.id] = (sign, self.elapsed() + (again or LOOK))
        return again

    def _planned(self, train: Train, engine: Engine) -> float:
        """Plan, do, and plan again, until nothing is left but what others must do."""
        project, again = train.target.project, self.lander.recover(train)
        if again:
            self._tell(project, Hold(MAY_STILL_PUSH), waits=True)
            return again
        for _ in range(ROUNDS):
            running = tests_of(engine, train.name)
            queue = self.view.queue(train, running.keys(), self._blocked(project))
            steps = next_steps(queue)
            self._tell(project, *(it for it in steps if isinstance(it, Hold)))
            self._stand(project, standings(queue))
            done = next((it for it in steps if self._did(train, it, engine)), None)
            if done is None:
                self._let_go(train, tests_of(engine, train.name).keys())
                return self._blocked_for(project)
            if isinstance(done, Land):
                self._land(train, done)
                train = self._allowed(train.target)
        return AT_ONCE

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
            rest = LASTING if TAKES_PULLS in why else LOOK_AGAIN
            self._in_the_way[project.id] = (why, self.elapsed() + rest)

    def _blocked(self, project: Project) -> str:
        """Why the target cannot be moved, until it is time to try once more."""
        why, until = self._in_the_way.get(project.id, ("", 0.0))
        if self.elapsed() < until:
            return why
        self._in_the_way.pop(project.id, None)
        return ""

    def _blocked_for(self, project: Project) -> float:
        """In how many seconds the target is tried once more; 0 where nothing is in its way."""
        if project.id not in self._in_the_way:
            return 0.0
        return max(AT_ONCE, self._in_the_way[project.id][1] - self.elapsed())

    def _tell(self, project: Project, *holds: Hold, waits: bool = False) -> None:
        """Why nothing lands, for people; what only `waits` needs none of them."""
        lane, before = f"queue of {project.name}", self.held.get(f"queue of {project.name}")
        if not holds:
            self.held.pop(lane, None)
            return
        why = "; ".join(it.why for it in holds)
        self.held[lane] = Trouble(
            why=why,
            kind="" if waits else holds[-1].kind,
            project=project.id,
            since=before.since if before and before.why == why else self.lander.clock.now(),
        )

    def _stand(self, project: Project, found: Sequence[Place]) -> None:
        self.standings[project.id] = {
            it.task: (number, it.standing) for number, it in enumerate(found, start=1)
        }

    def nudge(self, id: ProjectId) -> None:
        """Something changed that a plan would look at, and that no task's row shows."""
        self._ended[id] = self._ended.get(id, 0) + 1

    def _is_due(self, id: ProjectId, waiting: object) -> bool:
        sign, until = self._seen.get(id, (None, 0.0))
        late = waiting is not None and self.elapsed() >= until
        return late or sign != self._sign(id, waiting)

    def _sign(self, id: ProjectId, waiting: object) -> object:
        """The same for as long as nothing has happened that a plan would look at."""
        return waiting, self._ended.get(id, 0)

    def _did(self, train: Train, step: Step, engine: Engine) -> bool:
        """Whether the plan is another one after this step."""
        match step:
            case CancelTest(tree):
                for lane in filter(None, [tests_of(engine, train.name).get(tree)]):
                    engine.call_off(lane)
            case Drop() | SetAside():
                self.lander.send_back(train, step)
            case Offer():
                self.lander.offer(step)
            case Build():
                self._build(train, step)
            case CheckTip() | StartTest():
                engine.put(_test(train, step))
            case Land() | Hold():
                pass
        return isinstance(step, CHANGES_THE_PLAN)

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

    def test(self, job: TestTree, cancelled: Callable[[], bool]) -> None:
        """Test the tree and keep its result; Unavailable where that has to be tried again."""
        project = self.view.store.project(job.project)
        branch = self.view.target(project)[0].branch
        it = Tested(
            project=project,
            settings=self.view.configuration.settings_at(project, job.tip),
            rules=self.view.configuration.rules_at(project, job.tip, branch),
            built=job.built,
            task=job.task,
        )
        self.began[job.target, job.built.tree] = self.lander.clock.now()
        try:
            result, proof = self._judged(it, cancelled)
            if not cancelled():
                self._keep(job, it.rules, result, proof)
        finally:
            self.began.pop((job.target, job.built.tree), None)
            self._ended[project.id] = self._ended.get(project.id, 0) + 1

    def could_not_test(self, job: TestTree, why: str) -> None:
        """A human is to know why the tree has no result."""
        project = self.view.store.project(job.project)
        branch = self.view.target(project)[0].branch
        rules = self.view.configuration.rules_at(project, job.tip, branch)
        self._keep(job, rules, Broken(why), "")

    def _keep(self, job: TestTree, rules: Pinned, result: Result, proof: str) -> None:
        self.view.log.put_result(job.target, rules.config_hash, job.built.tree, result, proof)

    def _judged(self, it: Tested, cancelled: Callable[[], bool]) -> tuple[Result, str]:
        try:
            return self.tests.run(it, cancelled)
        except Unavailable:
            raise
        except LockgateError as error:
            return Broken(str(error)), ""

    def _let_go(self, train: Train, running: Collection[Tree]) -> None:
        """Of candidates that no train from here can use, and of what was measured of them."""
        queue = self.view.queue(train, running)
        gone = stale(queue)
        if not gone:
            return
        self.view.log.drop_candidates(train.name, gone)
        kept = [it.outcome for it in queue.candidates if it not in gone]
        built = [it for it in kept if isinstance(it, Built)]
        self.view.log.drop_results(train.name, [train.tip.tree, *(it.tree for it in built)])
        self.view.yard.prune(train.target, [it.commit for it in built])


def _test(train: Train, step: CheckTip | StartTest) -> TestTree:
    """The last of its tasks is the one whose change is new in it."""
    project, tip = train.target.project.id, train.tip.commit
    if isinstance(step, CheckTip):
        return TestTree(project, train.name, tip, step.tip)
    return TestTree(project, train.name, tip, step.candidate, step.tasks[-1])


def tests_of(engine: Engine, target: str) -> Mapping[Tree, str]:
    """The trees of a target that are tested, or are about to be, and the lane of each test."""
    return {
        it.job.built.tree: it.name
        for it in engine.lanes()
        if isinstance(it.job, TestTree) and it.job.target == target
    }
