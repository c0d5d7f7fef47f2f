"""Looks at the pull requests of a project, in a lane of its own, and does what follows from that.

Only what a whole look observed moves a task. A forge that does not answer moves nothing.
"""

from collections.abc import Callable, Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.core.config.settings import DraftMode, MergeTarget, Settings
from lockgate.core.forge.decide import (
    TAKEN_OUT,
    Act,
    Case,
    CheckMerged,
    FetchFailures,
    NeedPeople,
    Ready,
    Reopen,
    Rerun,
    SendBack,
    TakeCommits,
    TryMerge,
    Wait,
    as_the_remote_has_it,
    decide,
    speakers,
)
from lockgate.core.forge.findings import NotJudged, of_failures, of_people
from lockgate.core.forge.model import (
    Identity,
    Intent,
    Pull,
    Relation,
    Rules,
    Seen,
    Unknown,
    is_early,
)
from lockgate.core.forge.pace import HOOKED_FOR, Intervals, spread, usual
from lockgate.core.forge.summary import PEOPLE, ci_of, news_of, reviews_of
from lockgate.core.jobs import TestTree
from lockgate.core.lifecycle import pulls as turns
from lockgate.core.lifecycle.pulls import Theirs
from lockgate.core.model.task import ProjectId, Status, Task
from lockgate.core.train.model import (
    Broken,
    Built,
    Candidate,
    Change,
    Commit,
    Conflict,
    Green,
    Red,
)
from lockgate.errors import LockgateError
from lockgate.ports import Project, Workspaces, candidate_of
from lockgate.ports.engine import Engine
from lockgate.ports.forge import Forge, Merged, Verdict
from lockgate.services.train.landing import BRANCHES, Lander
from lockgate.services.train.offers import Offers
from lockgate.services.train.view import Train, TrainView

QUEUED = {True: "every gate passed on this tree", False: "a gate failed on this tree"}
ASKED_FOR = 120.0  # seconds after which a merge that nobody sees is asked for again


class PullLook(Struct, frozen=True, kw_only=True):
    """What one turn of a project's lane has in hand."""

    train: Train
    forge: Forge
    rules: Rules
    me: Identity


class PullRequests(Struct, frozen=True, kw_only=True):
    view: TrainView
    offers: Offers
    lander: Lander
    workspaces: Workspaces
    forge_of: Callable[[Project], Forge]
    intake: Callable[[Project, Forge], None]
    nudge: Callable[[ProjectId], None]
    hints: dict[ProjectId, bool] = field(default_factory=dict[ProjectId, bool])  # by a webhook?
    every: Intervals = field(default_factory=Intervals)
    _next: dict[ProjectId, float] = field(default_factory=dict[ProjectId, float])
    _last: dict[ProjectId, float] = field(default_factory=dict[ProjectId, float])
    _hooked: dict[ProjectId, float] = field(default_factory=dict[ProjectId, float])

    def due(self) -> tuple[Project, ...]:
        """Projects with something to do at their forge, or whose time it is."""
        now = self.lander.clock.elapsed()
        found = [it for it in self.view.store.projects() if self._is_due(it, now)]
        return tuple(found)

    def sync(self, project: Project, engine: Engine) -> float:
        """One turn: what is meant is done, then every pull request is looked at.

        Many hints come at once: what comes too soon after the last look waits.
        """
        now = self.lander.clock.elapsed()
        if soon := self._too_soon(project, now):
            return soon
        if self.hints.pop(project.id, False):
            self._hooked[project.id] = now
        self._last[project.id], self._next[project.id] = now, now + self.every.machines
        forge = self.forge_of(project)
        before = forge.budget()
        self.intake(project, forge)
        settings = self.view.configuration.settings_of(project)
        rows, early = self._live(project), self._early(project, settings)
        if rows or early:
            train = self.view.train(self.view.target(project)[0])
            rules, me = forge.rules(train.target.branch), forge.whoami()
            look = PullLook(train=train, forge=forge, rules=rules, me=me)
            self._drafts(look, early)
            self._turn(look, rows, engine)
        rest = min((self._rest(it) for it in self._live(project)), default=self.every.people)
        rest = max(rest, spread(before, forge.budget()))
        self._next[project.id] = self.lander.clock.elapsed() + rest
        self.nudge(project.id)
        return 0.0

    def _turn(self, look: PullLook, rows: Iterable[Pull], engine: Engine) -> None:
        train, forge, rules = look.train, look.forge, look.rules
        done = [self.offers.carry_out(train, forge, self._settled(it), rules) for it in rows]
        numbers = {it.number: it for it in done if it.number and it.intent is not Intent.OFFER}
        found = forge.look(numbers)
        for number, pull in numbers.items():
            seen = found.get(number, Unknown("it was not looked at"))
            if isinstance(seen, Seen) and pull.pushed:
                self._acts(look, pull, seen, engine)

    def _is_due(self, project: Project, now: float) -> bool:
        rested = now >= self._next.get(project.id, 0.0)
        if not (rested or project.id in self.hints or self._is_meant(project)):
            return False
        self._next[project.id] = now + self.every.machines  # what is asked below runs git
        try:
            settings = self.view.configuration.settings_of(project)
        except LockgateError:
            return False
        wanted = (
            settings.forge.intake.label or self._live(project) or self._early(project, settings)
        )
        return settings.merge.target is MergeTarget.PULL_REQUEST and bool(wanted)

    def _is_meant(self, project: Project) -> bool:
        """What was meant and not done, what was never looked at."""
        rows = self._live(project)
        return any((it.intent and not it.asked) or (it.change and not it.looked) for it in rows)

    def _too_soon(self, project: Project, now: float) -> float:
        """In how many seconds a hint brings the next look; 0 where it may be now."""
        last = self._last.get(project.id)
        if last is None or now >= self._next[project.id] or self._is_meant(project):
            return 0.0
        return max(0.0, last + self.every.least - now)

    def _live(self, project: Project) -> tuple[Pull, ...]:
        """Of tasks that wait to land."""
        rows = self.view.pulls.all(project.id) if self.view.pulls else ()
        found = ((it, self.view.store.find(it.task)) for it in rows)
        return tuple(
            it for it, task in found if task and task.status is Status.REVIEWING and it.branch
        )

    def _early(self, project: Project, settings: Settings) -> tuple[tuple[Task, Candidate], ...]:
        """Changes that are to be shown as drafts, each as the train has built it."""
        if settings.forge.draft is not DraftMode.EARLY:
            return ()
        target = self.view.target(project)[0]
        made = {it.changes: it for it in self.view.log.candidates(target.name)}
        waiting = self.view.waiting(project.id)
        found = ((it, made.get((Change(it.id, Commit(it.candidate)),))) for it in waiting)
        return tuple((task, it) for task, it in found if it and is_early(self._row(task), task))

    def _row(self, task: Task) -> Pull:
        new = Pull(task=task.id, project=task.project)
        known = self.view.pulls.of(task.id) if self.view.pulls else None
        return replace(known or new, branch=f"{BRANCHES}/{task.id}")

    def _drafts(self, look: PullLook, early: Iterable[tuple[Task, Candidate]]) -> None:
        for task, it in early:
            match it.outcome:
                case Built(commit, tree):
                    meant = replace(self._row(task), meant=commit, meant_tree=tree)
                    self.offers.draft(
                        look.train, look.forge, replace(meant, meant_base=it.onto), task
                    )
                case Conflict():
                    pass  # it goes back to its agent

    def _rest(self, pull: Pull) -> float:
        task = self.view.store.find(pull.task)
        hooked = self._hooked.get(pull.project)
        return usual(
            self.every,
            by_people=bool(task and turns.is_ours(task.held)),
            waited=self.lander.clock.now() - task.entered if task else 0.0,
            hooked=hooked is not None and self.lander.clock.elapsed() - hooked < HOOKED_FOR,
        )

    def _settled(self, pull: Pull) -> Pull:
        """What was about to be handed on when we were killed: the task tells whether it was."""
        if not pull.delivering:
            return pull
        task = self.view.store.load(pull.task)
        handed_on = task.since > pull.delivering_rev
        more = pull.delivering if handed_on else ()
        return self.offers.keep(replace(pull, delivered=(*pull.delivered, *more), delivering=()))

    def _acts(self, look: PullLook, pull: Pull, seen: Seen, engine: Engine) -> None:
        task = self.view.store.load(pull.task)
        if task.status is not Status.REVIEWING:
            return
        if not (pull.change == task.candidate or seen.merged):
            return  # a newer change is on its way to be offered
        before, pull = pull, self._noted(look, pull, seen)
        news = news_of(before, pull)
        if news:  # faces hear of it by the event
            self.offers.turn(pull, lambda seen: turns.told(seen, pull.number, news))
        pull = self._queued(look, pull, seen, engine)
        if before.place and not seen.place and seen.open:
            pull = self._evicted(pull)
        act = decide(self._case(look, pull, seen, task))
        self._did(look, pull, seen, act)
        if isinstance(act, CheckMerged):
            self._merged(look, pull, seen, engine)

    def _noted(self, look: PullLook, pull: Pull, seen: Seen) -> Pull:
        since = pull.since or (seen.at if seen.head == pull.pushed else 0.0)
        return replace(
            pull,
            since=since,
            looked=self.lander.clock.now(),
            url=seen.url or pull.url,
            strict=look.rules.strict,
            queue=look.rules.queue,
            ci=ci_of(look.rules, seen),
            reviews=reviews_of(seen),
            place=seen.place,
            whom="",
        )

    def _queued(self, look: PullLook, pull: Pull, seen: Seen, engine: Engine) -> Pull:
        """The forge's queue waits for our verdict on the commit that it made for this change."""
        if not seen.entry or pull.reported == seen.entry:
            return pull
        train, commit = look.train, Commit(seen.entry)
        tree = self.offers.yard.tree_of(train.target, commit)
        if tree is None:
            return pull
        results = self.view.log.results(train.name, train.rules.config_hash)
        match results.get(tree):
            case Green() | Red() as result:
                passed = isinstance(result, Green)
                said = Verdict(train.target.branch, passed=passed, summary=QUEUED[passed])
                look.forge.report(seen.entry, said)
                return replace(pull, reported=seen.entry)
            case Broken() | None:
                built = Built(commit, tree)
                engine.put(TestTree(train.target.project.id, train.name, train.tip.commit, built))
                return pull

    def _evicted(self, pull: Pull) -> Pull:
        """A yes that was given is used up: as it is, it would only be taken out again."""
        self.offers.turn(pull, lambda seen: turns.refused(seen, pull.number, TAKEN_OUT))
        return replace(pull, evicted=pull.pushed, intent=Intent.NONE, asked=0.0)

    def _case(self, look: PullLook, pull: Pull, seen: Seen, task: Task) -> Case:
        access = {it: look.forge.may(it) for it in sorted(speakers(seen))}
        return Case(
            pull=pull,
            seen=replace(seen, dequeued=pull.evicted == pull.pushed and not seen.place),
            rules=look.rules,
            me=look.me,
            target=look.train.target.branch,
            settings=look.train.settings.forge,
            mode=look.train.settings.merge.mode,
            approved=task.to_land,
            relation=self._relation(look, pull, seen),
            trusted=frozenset(who for who, may in access.items() if may.trusted),
        )

    def _relation(self, look: PullLook, pull: Pull, seen: Seen) -> Relation:
        """The remote itself is asked where the forge shows another head."""
        pushed = Commit(pull.pushed)
        if seen.head == pushed or seen.merged or not seen.open:
            return Relation.SAME
        yard, target = self.offers.yard, look.train.target
        head = yard.branch_at(target, pull.branch)
        if head is None:
            return Relation.GONE
        found = yard.relation(target, pushed, Commit(seen.head))
        return as_the_remote_has_it(found, seen.head, head)

    def _did(self, look: PullLook, pull: Pull, seen: Seen, act: Act) -> None:
        match act:
            case Wait() | NeedPeople() | Ready() | TryMerge() | Reopen():
                self._rests(pull, act)
            case FetchFailures():
                self._ci_failed(look, pull, seen, act)
            case Rerun():
                self._rerun(look, pull, seen, act)
            case SendBack():
                self._sends_back(look, pull, act)
            case TakeCommits(head):
                self._takes(look, pull, Commit(head))
            case CheckMerged():
                pass

    def _rests(self, pull: Pull, act: Wait | NeedPeople | Ready | TryMerge | Reopen) -> None:
        match act:
            case Wait(why):
                self._waits(pull, why)
            case NeedPeople(why):
                self._needs_people(pull, why)
            case Ready():
                self._ready(pull)
            case TryMerge():  # the train puts it on the tip again, and names the files
                self.offers.keep(replace(pull, change="", ready=False, waits="it conflicts"))
            case Reopen():
                self.offers.keep(replace(pull, intent=Intent.REOPEN))

    def _waits(self, pull: Pull, why: str) -> None:
        self.offers.turn(pull, turns.lifted)
        self.offers.keep(replace(pull, ready=False, waits=why))

    def _needs_people(self, pull: Pull, why: str) -> None:
        self.offers.turn(pull, lambda seen: turns.needs_people(seen, pull.number, why))
        self.offers.keep(replace(pull, ready=False, waits=why, whom=PEOPLE))

    def _ready(self, pull: Pull) -> None:
        self.offers.turn(pull, turns.lifted)
        lost = pull.asked and self.lander.clock.now() - pull.asked > ASKED_FOR
        again = replace(pull, intent=Intent.NONE, asked=0.0) if lost else pull
        self.offers.keep(replace(again, ready=True, waits=""))

    def _ci_failed(self, look: PullLook, pull: Pull, seen: Seen, act: FetchFailures) -> None:
        found = of_failures(look.forge.failures(seen, act.checks))
        if isinstance(found, NotJudged):
            self._rerun(look, pull, seen, Rerun(act.checks))
            return
        rules = look.train.rules
        self._lends(look)
        self.offers.turn(pull, lambda seen: turns.ci_failed(seen, found, pull.change, rules))
        self.offers.keep(replace(pull, ready=False, waits="", intent=Intent.NONE))

    def _rerun(self, look: PullLook, pull: Pull, seen: Seen, act: Rerun) -> None:
        names = ", ".join(it.name for it in act.checks)
        if pull.reran == pull.pushed:
            self._needs_people(pull, f"CI did not judge it, also when it ran again: {names}")
            return
        self.offers.keep(replace(pull, reran=pull.pushed, ready=False, waits=f"CI again: {names}"))
        look.forge.rerun(seen, act.checks)

    def _sends_back(self, look: PullLook, pull: Pull, act: SendBack) -> None:
        """The marks are on disk before the turn, and count once the task has moved."""
        task, rules, said = self.view.store.load(pull.task), look.train.rules, of_people(act)
        begun = replace(pull, delivering=act.marks, delivering_rev=task.rev)
        self.offers.keep(begun)
        self._lends(look)
        sent = self.offers.turn(pull, lambda seen: turns.reviewed(seen, said, pull.change, rules))
        threads = (*pull.answered, *(it.thread or it.id for it in act.comments))
        after = replace(
            begun,
            delivered=(*pull.delivered, *act.marks),
            rounds=pull.rounds + 1,
            answered=tuple(dict.fromkeys(threads)),
            ready=False,
            waits="",
            intent=Intent.NONE,
        )
        self.offers.keep(replace(after if sent else pull, delivering=()))

    def _lends(self, look: PullLook) -> None:
        """Agents fetch the target as it is now."""
        self.view.yard.lend(look.train.target, look.train.tip.commit)

    def _takes(self, look: PullLook, pull: Pull, head: Commit) -> None:
        task, target = self.view.store.load(pull.task), look.train.target
        self.offers.yard.bring(target, pull.branch, head)
        pinned = replace(task, pinned=look.train.rules)
        found = self.workspaces.change(candidate_of(target.project, pinned, head))
        theirs = Theirs(commit=head, patch=found.patch, files=found.files, size=found.size)
        kept = replace(pull, pushed=head, theirs=head, change="", base="", ready=False, waits="")
        rules, number = look.train.rules, pull.number
        self.offers.keep(replace(kept, intent=Intent.NONE))
        self.offers.turn(pull, lambda seen: turns.taken_over(seen, theirs, number, rules))

    def _merged(self, look: PullLook, pull: Pull, seen: Seen, engine: Engine) -> None:
        """Done only where the fetched target has the change."""
        train, pushed = look.train, Commit(pull.pushed)
        found = self.offers.yard.merged(train.target, Commit(seen.merge_commit), pushed)
        if found is None:
            self._waits(pull, f"{train.target.branch} does not have its merge yet")
            return
        tested = pull.meant_tree if pull.intent is Intent.MERGE else pull.tree
        exact = found.tree == tested
        task = self.view.store.load(pull.task)
        besides = _besides(pull, seen, found, task)
        done = replace(pull, exact=exact, unjudged=besides, intent=Intent.NONE, waits="")
        self.offers.keep(replace(done, ready=False))
        self.offers.turn(pull, turns.lifted)
        self.lander.merged(train, task, found)
        self.offers.yard.delete_branch(train.target, pull.branch, pushed)
        if not exact:
            tip = self.view.train(train.target).tip
            engine.put(TestTree(train.target.project.id, train.name, tip.commit, tip))


def _besides(pull: Pull, seen: Seen, found: Merged, task: Task) -> str:
    """What was merged that no gate judged; empty where nothing was."""
    if seen.head and seen.head != pull.pushed:
        return f"{seen.head[:12]} was merged, {pull.pushed[:12]} was judged"
    if pull.change != task.candidate:
        return f"{pull.pushed[:12]} was merged, an earlier version than the one that waits"
    if not found.whole:
        return f"{found.commit[:12]} does not have all of {pull.pushed[:12]}"
    return ""
