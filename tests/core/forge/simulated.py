"""Worlds of people, CI and a forge that answers late, with the real decisions in the middle.

A world is made from a seed. People review, push, rewrite, close, label and merge as they like; CI
fails for the change, for the target or for nothing; an answer may be old, or not come. In some
worlds a change is shown as a draft before it is tested; in some the forge's own queue merges, takes
changes out and builds its commits again. After some time people only do what they are asked for,
and then every change must come to its end.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from msgspec.structs import replace

from lockgate.core.config.settings import DraftMode, ForgeSettings, MergeMode
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
    of_other_head,
)
from lockgate.core.forge.model import (
    HOLD_LABEL,
    Check,
    CheckState,
    Comment,
    Identity,
    Person,
    Pull,
    Relation,
    Remark,
    Review,
    ReviewState,
    Rules,
    Seen,
)
from lockgate.core.model.task import ProjectId, TaskId

RULES = Rules(checks=("build",), approvals=1, pull_request=True)
ME = Identity(login="lockgate[bot]", kind="app")
TRUSTED = frozenset({"ann", "bob"})
PEOPLE = (Person("ann"), Person("bob"), Person("eve"), Person("ann", bot=True))
TICK = 60.0
WILD = 60  # ticks in which people do as they like
CALM = 400  # ticks within which all must have ended
ASKED_FOR = 10  # ticks for which an asked merge is waited for


@dataclass
class Change:
    """A pull request as it really is, and the agent that works on it."""

    number: int
    head: str
    heads: dict[str, str]  # each commit with the one that it is on
    pull: Pull
    seen: Seen
    old: list[Seen] = field(default_factory=list)
    working: bool = False  # an agent mends it
    judging: bool = False  # gates look at a person's commits
    offering: bool = False  # a newer change is tested and then pushed
    approved: bool = False  # a human let it land, here
    asked: int = 0  # ticks since the forge was asked to merge
    queued: int = 0  # ticks in the forge's queue without a verdict of ours
    falls: int = 0  # times that the forge's queue takes it out
    verdicts: list[str] = field(default_factory=list)
    held: str = ""
    handed_on: list[str] = field(default_factory=list)
    done: bool = False
    given_up: bool = False


class World:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - a simulation
        self.now = 1_800_000_000.0
        self.ids = 0
        self.calm, self.kind = False, self.random.choice((0.0, 0.2, 0.5))
        draft = self.random.choice(tuple(DraftMode))
        self.settings = ForgeSettings(settle=self.random.choice((0, 120)), rounds=50, draft=draft)
        self.rules = replace(RULES, queue=self.random.random() < 0.5)
        self.mode = self.random.choice(tuple(MergeMode))
        self.main = CheckState.PASSED
        self.changes = [self._offered(number) for number in range(1, self.random.randint(2, 4))]

    def run(self) -> None:
        for _ in range(WILD):
            self._tick()
        self.calm, self.main = True, CheckState.PASSED
        for _ in range(CALM):
            if all(it.done or it.given_up for it in self.changes):
                return
            self._tick()
        left = [(it.number, it.held, it.pull.waits) for it in self.changes if not it.done]
        raise AssertionError(f"these never ended: {left}")

    def _tick(self) -> None:
        self.now += TICK
        for it in self.changes:
            if it.done or it.given_up:
                continue
            self._world_moves(it)
            if it.working or it.judging:
                self._hands_off(it)
            elif it.offering:
                self._offers(it)
            else:
                self._looks(it)

    # --- what people, CI and the forge do ---

    def _world_moves(self, it: Change) -> None:
        it.old = [*it.old, it.seen][-3:]
        self._ci(it)
        self._queue_moves(it)
        if self.calm or self.random.random() < self.kind:
            self._cooperates(it)
        elif self.random.random() < 0.5:
            self._mischief(it)

    def _ci(self, it: Change) -> None:
        pending = [one for one in it.seen.checks if one.state is CheckState.PENDING]
        if not pending or self.random.random() < 0.5:
            return
        states = (CheckState.PASSED,) * 3 + (CheckState.FAILED, CheckState.UNJUDGED)
        state = CheckState.PASSED if self.calm else self.random.choice(states)
        it.seen = replace(it.seen, checks=(Check("build", state, self._id()),))

    def _queue_moves(self, it: Change) -> None:
        """A commit that waits too long for our verdict is taken out; so is what may not merge."""
        if not it.seen.place:
            return
        told = it.seen.entry in it.verdicts
        it.queued = 0 if told else it.queued + 1
        fails = it.falls and self.random.random() < 0.5  # with those before it
        if it.queued > ASKED_FOR or fails or not self._may_merge(it):
            it.falls -= fails
            self._leaves_queue(it)
        elif not self.calm and self.random.random() < 0.1:
            it.seen = replace(it.seen, entry=f"entry {self._id()}")  # one before it was taken out
        elif it.seen.place > 1:
            it.seen = replace(it.seen, place=it.seen.place - 1)
        elif told:
            assert not it.pull.draft, "an untested draft got our verdict"
            self._merged(it)

    def _leaves_queue(self, it: Change) -> None:
        it.seen, it.queued = replace(it.seen, place=0, entry=""), 0

    def _cooperates(self, it: Change) -> None:
        """People undo what holds it, answer what is asked of them, and then leave it alone."""
        draft = it.seen.draft and it.pull.draft
        it.seen = replace(it.seen, labels=(), draft=draft, base="main", open=not it.seen.merged)
        it.seen = replace(it.seen, base_checks=(Check("build", CheckState.PASSED),))
        it.seen = replace(it.seen, mergeable=True)
        if "/lockgate hold" in it.held:
            self._remark(it, Person("ann"), "/lockgate retry")
        if any(one.state is CheckState.UNJUDGED for one in it.seen.checks):
            it.seen = replace(it.seen, checks=(Check("build", CheckState.PENDING),))
        if it.head != it.pull.pushed and it.held:
            self._restored(it)
        if it.held and not it.seen.merged and not it.working:
            for who in ("ann", "bob"):
                self._review(it, Person(who), ReviewState.APPROVED)
        if "yours to merge" in it.held:
            self._merge(it)
        it.approved = it.approved or TAKEN_OUT in it.held

    def _mischief(self, it: Change) -> None:
        who = self.random.choice(PEOPLE)
        writes = who.login in TRUSTED and not who.bot
        acts = [
            lambda: self._review(it, who, self.random.choice(tuple(ReviewState)[:3])),
            lambda: self._comment(it, who),
            lambda: self._remark(it, who),
        ]
        if writes:
            acts += [
                lambda: self._sets(it, labels=self.random.choice(((), (HOLD_LABEL,)))),
                lambda: self._sets(it, draft=self.random.random() < 0.7),
                lambda: self._sets(it, base=self.random.choice(("main", "old"))),
                lambda: self._sets(it, open=self.random.random() < 0.7),
                lambda: self._sets(it, mergeable=self.random.choice((True, None, False))),
                lambda: self._push(it, f"push {self._id()}"),
                lambda: self._push(it, f"rewrite {self._id()}", over=True),
                lambda: self._set_back(it),
                lambda: self._leaves_queue(it),
                self._main_turns,
            ]
            if self._may_merge(it) and self.random.random() < 0.2:
                acts.append(lambda: self._merge(it))
        self.random.choice(acts)()

    def _main_turns(self) -> None:
        self.main = self.random.choice((CheckState.PASSED, CheckState.FAILED))
        for it in self.changes:
            it.seen = replace(it.seen, base_checks=(Check("build", self.main),))

    def _sets(self, it: Change, **fields: object) -> None:
        if not it.seen.merged:
            it.seen = replace(it.seen, **fields)

    def _review(self, it: Change, who: Person, state: ReviewState) -> None:
        one = Review(id=self._id(), by=who, state=state, body="words", at=self.now)
        it.seen = replace(it.seen, reviews=(*it.seen.reviews, one))

    def _comment(self, it: Change, who: Person) -> None:
        one = Comment(id=self._id(), by=who, body="words", updated=self.now, path="a", line=1)
        it.seen = replace(it.seen, comments=(*it.seen.comments, one))

    def _remark(self, it: Change, who: Person, body: str = "") -> None:
        some = ("hello", "/lockgate fix", "/lockgate hold", "/lockgate retry")
        said = body or self.random.choice(some)
        one = Remark(id=self._id(), by=who, body=said, updated=self.now)
        it.seen = replace(it.seen, remarks=(*it.seen.remarks, one))

    def _push(self, it: Change, name: str, *, over: bool = False, ours: bool = False) -> None:
        if it.seen.merged or not it.seen.open:
            return
        commit = f"{name} {self._id()}"
        it.heads[commit] = "" if over else it.head
        if ours:
            it.pull = replace(it.pull, pushed=commit, since=0.0)
            it.held = ""
        self._moves(it, commit)

    def _moves(self, it: Change, commit: str) -> None:
        """The branch has another commit: CI begins, and the forge's queue lets go of it."""
        it.head = commit
        it.seen = replace(it.seen, head=commit, checks=(Check("build", CheckState.PENDING),))
        self._leaves_queue(it)

    def _set_back(self, it: Change) -> None:
        before = it.heads.get(it.head, "")
        if before in it.heads and it.seen.open:
            self._moves(it, before)

    def _restored(self, it: Change) -> None:
        """By `lockgate pr restore`."""
        if it.seen.open:
            self._moves(it, it.pull.pushed)
            it.held = ""

    def _may_merge(self, it: Change) -> bool:
        """As the forge's own rules have it."""
        last = {
            one.by: one.state
            for one in it.seen.reviews
            if one.state is not ReviewState.COMMENTED and one.by.login in TRUSTED and not one.by.bot
        }
        approved = ReviewState.APPROVED in last.values()
        refused = ReviewState.CHANGES_REQUESTED in last.values()
        green = all(one.state is CheckState.PASSED for one in it.seen.checks)
        ready = it.seen.open and not it.seen.draft and it.seen.mergeable is True
        return approved and not refused and green and ready and it.seen.base == "main"

    def _merge(self, it: Change) -> None:
        """Where the forge has a queue, it goes into that."""
        if not self._may_merge(it) or it.seen.place:
            return
        if self.rules.queue:
            place, entry = self.random.randint(1, 3), f"entry {self._id()}"
            it.seen = replace(it.seen, place=place, entry=entry)
        else:
            self._merged(it)

    def _merged(self, it: Change) -> None:
        it.seen = replace(it.seen, merged=True, open=False, merge_commit=f"M{it.number}", place=0)

    # --- what Lockgate does, as its service does it ---

    def _looks(self, it: Change) -> None:
        seen = self.random.choice([it.seen, it.seen, *it.old]) if it.old else it.seen
        if not self.calm and self.random.random() < 0.1:
            return  # no answer
        self._in_queue(it, seen)
        dequeued = it.pull.evicted == it.pull.pushed and not seen.place
        case = Case(
            pull=it.pull,
            seen=replace(seen, at=self.now, dequeued=dequeued),
            rules=self.rules,
            me=ME,
            target="main",
            settings=self.settings,
            mode=self.mode,
            approved=it.approved,
            relation=self._relation(it, seen.head),
            trusted=TRUSTED,
        )
        self._does(it, case.seen, decide(case))

    def _in_queue(self, it: Change, seen: Seen) -> None:
        """Each commit of the forge's queue gets one verdict; who is taken out has lost its yes."""
        if it.pull.place and not seen.place and seen.open:
            it.pull, it.approved, it.asked = replace(it.pull, evicted=it.pull.pushed), False, 0
        it.pull = replace(it.pull, place=seen.place)
        known = self.random.random() < 0.5  # else its tree is tested first
        if seen.entry and it.pull.reported != seen.entry and known:
            it.verdicts.append(seen.entry)
            it.pull = replace(it.pull, reported=seen.entry)

    def _relation(self, it: Change, head: str) -> Relation:
        if head == it.pull.pushed:
            return Relation.SAME
        if it.pull.pushed in self._line(it, head):
            return Relation.AHEAD
        behind = head in self._line(it, it.pull.pushed)
        found = Relation.BEHIND if behind else Relation.REWRITTEN
        return as_the_remote_has_it(found, head, it.head)

    def _line(self, it: Change, commit: str) -> Iterator[str]:
        while commit:
            yield commit
            commit = it.heads.get(commit, "")

    def _does(self, it: Change, seen: Seen, act: Act) -> None:  # noqa: C901 - one case an act
        it.held = act.why if isinstance(act, NeedPeople) else ""
        match act:
            case Wait(why):
                it.pull = replace(it.pull, waits=why)
            case NeedPeople() | Reopen():
                pass
            case Ready():
                self._lands(it, seen)
            case CheckMerged():
                it.done = True
            case FetchFailures():
                it.working = True
            case Rerun():
                it.pull = replace(it.pull, reran=it.pull.pushed)
                it.seen = replace(it.seen, checks=(Check("build", CheckState.PENDING),))
            case SendBack():
                self._sends_back(it, act)
            case TryMerge():
                it.seen = replace(it.seen, mergeable=True)
            case TakeCommits(head):
                it.pull = replace(it.pull, pushed=head, theirs=head, since=0.0)
                it.judging = True

    def _sends_back(self, it: Change, act: SendBack) -> None:
        for mark in act.marks:
            assert mark not in it.handed_on, f"{mark} was handed on twice"
        spoke = [it.by for it in act.reviews] + [it.by for it in act.comments]
        for by in spoke + [it.by for it in act.remarks]:
            assert by.login in TRUSTED, f"{by} reached an agent"
            assert not by.bot, f"{by} reached an agent"
        it.handed_on += act.marks
        it.pull = replace(
            it.pull, delivered=(*it.pull.delivered, *act.marks), rounds=it.pull.rounds + 1
        )
        it.working = True

    def _lands(self, it: Change, seen: Seen) -> None:
        """The forge merges one head only, and by its own rules; what is asked for must be right."""
        assert seen.head == it.pull.pushed, "an unknown head was to land"
        assert all(one.state is CheckState.PASSED for one in seen.checks), "red was to land"
        assert not seen.draft, "a draft was to land"
        assert not it.pull.draft, "what was not tested was to land"
        assert not seen.place, "what is in the queue was to go into it"
        assert it.approved or it.pull.evicted != seen.head, "it was put in again by nobody's yes"
        it.asked = (it.asked + 1) % ASKED_FOR  # asked once, and again where nothing follows
        if it.head == it.pull.pushed and it.asked == 1:
            self._merge(it)

    def _hands_off(self, it: Change) -> None:
        if self.random.random() < 0.5:
            return
        it.working = it.judging = False
        it.offering = True

    def _offers(self, it: Change) -> None:
        """Tested, then pushed on top of what was pushed, and over nobody's commit."""
        if it.seen.merged:
            it.done = True
        if it.held or not it.seen.open or self.random.random() < 0.5:
            return
        if it.head != it.pull.pushed:
            self._lease_is_lost(it)
            return
        self._push(it, "ours", ours=True)
        assert it.heads[it.head] in it.heads, "a person's commits were pushed over"
        if it.pull.draft:
            it.seen = replace(it.seen, draft=False)
        it.pull = replace(it.pull, draft=False, place=0)
        it.offering, it.asked = False, 0

    def _lease_is_lost(self, it: Change) -> None:
        match of_other_head(self._relation(it, it.head), it.head):
            case TakeCommits(theirs):  # and its agent is told to merge them
                it.pull = replace(it.pull, pushed=theirs, theirs=theirs)
                it.working, it.offering = True, False
            case NeedPeople(why):
                it.held = why
            case Wait(why):
                raise AssertionError(f"it waits for ever: {why}")

    def _offered(self, number: int) -> Change:
        """As it is first shown: tested, or as a draft that is being tested."""
        head, early = f"first of {number}", self.settings.draft is DraftMode.EARLY
        pull = Pull(
            task=TaskId(f"t{number}"),
            project=ProjectId("p"),
            number=number,
            pushed=head,
            change="c",
            draft=early,
        )
        seen = Seen(
            number=number,
            head=head,
            base="main",
            at=self.now,
            draft=early,
            mergeable=True,
            checks=(Check("build", CheckState.PENDING),),
            base_checks=(Check("build", CheckState.PASSED),),
        )
        return Change(
            number=number,
            head=head,
            heads={head: "base"},
            pull=pull,
            seen=seen,
            offering=early,
            falls=self.random.randint(0, 2),
        )

    def _id(self) -> int:
        self.ids += 1
        return self.ids
