"""Worlds of people, CI and a forge that answers late, with the real decisions in the middle.

A world is made from a seed. People review, push, rewrite, close, label and merge as they like; CI
fails for the change, for the target or for nothing; an answer may be old, or not come. After some
time people only do what they are asked for, and then every change must come to its end.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from msgspec.structs import replace

from lockgate.core.config.settings import ForgeSettings, MergeMode
from lockgate.core.forge.decide import (
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
    decide,
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


@dataclass
class Change:
    """A pull request as it really is, and the agent that works on it."""

    number: int
    head: str
    heads: dict[str, str]  # each commit with the one that it is on
    ours: set[str]
    pull: Pull
    seen: Seen
    old: list[Seen] = field(default_factory=list)
    working: bool = False  # an agent mends it
    judging: bool = False  # gates look at a person's commits
    held: str = ""
    handed_on: list[str] = field(default_factory=list)
    done: bool = False
    given_up: bool = False
    since: int = 0


class World:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - a simulation
        self.now = 1_800_000_000.0
        self.ids = 0
        self.calm = False
        self.settings = ForgeSettings(settle=self.random.choice((0, 120)), rounds=50)
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
            else:
                self._looks(it)

    # --- what people, CI and the forge do ---

    def _world_moves(self, it: Change) -> None:
        it.old = [*it.old, it.seen][-3:]
        self._ci(it)
        if self.calm:
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

    def _cooperates(self, it: Change) -> None:
        """People undo what holds it, answer what is asked of them, and then leave it alone."""
        it.seen = replace(it.seen, labels=(), draft=False, base="main", open=not it.seen.merged)
        it.seen = replace(it.seen, base_checks=(Check("build", CheckState.PASSED),))
        it.seen = replace(it.seen, mergeable=True)
        if "/lockgate hold" in it.held:
            self._remark(it, Person("ann"), "/lockgate retry")
        if any(one.state is CheckState.UNJUDGED for one in it.seen.checks):
            it.seen = replace(it.seen, checks=(Check("build", CheckState.PENDING),))
        if it.head not in it.ours and it.held:
            self._push(it, "restored by lockgate", ours=True)
        if it.held and not it.seen.merged and not it.working:
            for who in ("ann", "bob"):
                self._review(it, Person(who), ReviewState.APPROVED)
        if "yours to merge" in it.held:
            self._merge(it)

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
                lambda: self._sets(it, draft=self.random.random() < 0.5),
                lambda: self._sets(it, base=self.random.choice(("main", "old"))),
                lambda: self._sets(it, open=self.random.random() < 0.7),
                lambda: self._sets(it, mergeable=self.random.choice((True, None, False))),
                lambda: self._push(it, f"push {self._id()}"),
                lambda: self._push(it, f"rewrite {self._id()}", over=True),
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
            it.ours.add(commit)
            it.pull = replace(it.pull, pushed=commit, since=0.0)
            it.held = ""
        it.head = commit
        it.seen = replace(it.seen, head=commit, checks=(Check("build", CheckState.PENDING),))

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
        if self._may_merge(it):
            it.seen = replace(it.seen, merged=True, open=False, merge_commit=f"M{it.number}")

    # --- what Lockgate does, as its service does it ---

    def _looks(self, it: Change) -> None:
        seen = self.random.choice([it.seen, it.seen, *it.old]) if it.old else it.seen
        if not self.calm and self.random.random() < 0.1:
            return  # no answer
        case = Case(
            pull=it.pull,
            seen=replace(seen, at=self.now),
            rules=RULES,
            me=ME,
            target="main",
            settings=self.settings,
            mode=self.mode,
            relation=self._relation(it, seen.head),
            trusted=TRUSTED,
        )
        self._does(it, case.seen, decide(case))

    def _relation(self, it: Change, head: str) -> Relation:
        if head == it.pull.pushed:
            return Relation.SAME
        if it.pull.pushed in self._line(it, head):
            return Relation.AHEAD
        return Relation.BEHIND if head in self._line(it, it.pull.pushed) else Relation.REWRITTEN

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
        if it.head == it.pull.pushed:
            self._merge(it)

    def _hands_off(self, it: Change) -> None:
        """The new work is pushed on top of what was pushed, and over nobody's commit."""
        if self.random.random() < 0.5:
            return
        it.working = it.judging = False
        if it.seen.merged or not it.seen.open or it.head != it.pull.pushed:
            return  # the lease does not hold: nothing is pushed, and the next look decides
        self._push(it, "ours", ours=True)
        assert it.heads[it.head] in it.heads, "a person's commits were pushed over"

    def _offered(self, number: int) -> Change:
        head = f"first of {number}"
        pull = Pull(
            task=TaskId(f"t{number}"),
            project=ProjectId("p"),
            number=number,
            pushed=head,
            change="c",
        )
        seen = Seen(
            number=number,
            head=head,
            base="main",
            at=self.now,
            mergeable=True,
            checks=(Check("build", CheckState.PENDING),),
            base_checks=(Check("build", CheckState.PASSED),),
        )
        return Change(
            number=number, head=head, heads={head: "base"}, ours={head}, pull=pull, seen=seen
        )

    def _id(self) -> int:
        self.ids += 1
        return self.ids
