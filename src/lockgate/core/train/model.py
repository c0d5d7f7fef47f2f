"""The queue of one target branch as it is, and what is to be done with it; `plan` plans.

What the caller keeps on disk, so that a plan made after any crash goes on where the last one ended:

- an entry for every change that waits to land: in a transaction with the task's status;
- a candidate for every answer of a build, kept by a ref: `onto`, the changes on it in their order,
  and the commit and tree that came of it, or the conflict;
- one result for each tree that was tested by the gates as they are configured now. A test that is
  already failing has failed. Results of other gates are not given;
- how many changes have landed so far.

What it sees with its own eyes: the tip, and which tests are running. A test that died with its
orchestrator is not running any more, and is started again. No place in the queue is stored.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NewType

from msgspec import Struct, field

from lockgate.core.model.task import TaskId

Commit = NewType("Commit", str)
Tree = NewType("Tree", str)
Began = dict[tuple[str, Tree], float]  # when the test of a tree began, by target
Standings = Mapping[TaskId, tuple[int, str]]  # a place in the queue, and how it stands there
PUSH_WITHIN = 180.0  # seconds from before the last look at the epoch until a push is ended
LOST_AFTER = 210.0  # seconds from a new epoch until a push of an earlier one can come no more


class Change(Struct, frozen=True):
    """What a task would add: the commit that its gates judged."""

    task: TaskId
    commit: Commit


class Entry(Struct, frozen=True, kw_only=True):
    """One change in the queue; `entered` is how many changes had landed when it came."""

    change: Change
    since: float
    entered: int = 0
    priority: int = 3
    depends_on: tuple[TaskId, ...] = ()  # of these, the tasks whose changes have not landed
    held: str = ""  # why a human must say yes first
    unjudged: bool = False  # a revert that a human has land at once, if the target is red
    offered: Commit | None = None  # the head of its pull request, which shows this very change
    behind: bool = False  # that head must contain the tip first, and does not
    queued: bool = False  # the forge's own queue tests it: no second test here
    landing: bool = False  # the forge was asked to merge it


class Built(Struct, frozen=True):
    """The changes merge: this commit, with this tree, has them all."""

    commit: Commit
    tree: Tree


class Conflict(Struct, frozen=True):
    """This task's change does not merge onto what is in front of it, in these files."""

    task: TaskId
    others: tuple[TaskId, ...] = ()
    files: tuple[str, ...] = ()


class Candidate(Struct, frozen=True):
    """Changes in their order on top of one commit: the tip, or the candidate in front."""

    onto: Commit
    changes: tuple[Change, ...]
    outcome: Built | Conflict


class Green(Struct, frozen=True):
    """Every gate of the train passed on the tree."""


class Red(Struct, frozen=True):
    """A gate failed on the tree, for good: the retry protocol is behind it."""

    evidence: str


class Broken(Struct, frozen=True):
    """A gate could not judge the tree; that says nothing about the work."""

    why: str


Result = Green | Red | Broken


class Queue(Struct, frozen=True, kw_only=True):
    """All that the planner looks at; `blocked` is why the target cannot be moved, if it cannot."""

    tip: Built
    entries: tuple[Entry, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    results: Mapping[Tree, Result] = field(default_factory=dict[Tree, Result])
    running: frozenset[Tree] = frozenset()
    landed: int = 0
    window: int = 4
    batch: int = 1
    blocked: str = ""
    pulls: bool = False  # changes land by pull requests


class CancelTest(Struct, frozen=True):
    """Nobody needs the answer any more."""

    tree: Tree


class Drop(Struct, frozen=True):
    """The change goes back to its agent; what it met on the tip is the reason."""

    task: TaskId
    reason: Conflict | Red


class SetAside(Struct, frozen=True):
    """The change could not be judged, and the tip could: a human looks; nobody is charged."""

    task: TaskId
    why: str


class Land(Struct, frozen=True):
    """Move the target from `expected` to `commit`, or not at all if it is elsewhere by now."""

    expected: Commit
    commit: Commit
    tree: Tree
    tasks: tuple[TaskId, ...]


class Offer(Struct, frozen=True):
    """Show the change, which passed on the tip, as a pull request; or bring that up to date."""

    task: TaskId
    built: Built
    base: Commit


class Build(Struct, frozen=True):
    """Merge the changes onto the commit, and keep what comes of it as a candidate."""

    onto: Commit
    changes: tuple[Change, ...]


class CheckTip(Struct, frozen=True):
    """Test the target as it is: something failed on it, and it may be the tip's own fault."""

    tip: Built


class StartTest(Struct, frozen=True):
    candidate: Built
    tasks: tuple[TaskId, ...]


class HoldKind(StrEnum):
    """What keeps a queue from moving: the user's files, a red target, one that nothing judges."""

    CHECKOUT = "checkout"
    RED_TIP = "red-tip"
    HELD = "held"


class Hold(Struct, frozen=True):
    """Nothing to do but to say so; it is planned again for as long as it is so."""

    why: str
    kind: HoldKind = HoldKind.CHECKOUT


Step = CancelTest | Drop | SetAside | Land | Offer | Build | CheckTip | StartTest | Hold


class Standing(StrEnum):
    """Where a change stands in the queue, in the word that people read."""

    TESTED = "tested"
    TESTING = "testing"
    NEXT = "next"
    QUEUED = "queued"
    FAILING = "failing"
    CONFLICT = "conflict"
    WAITING = "waiting"
    HELD = "held"


class Place(Struct, frozen=True):
    """The places of a queue are in the order in which its changes would land."""

    task: TaskId
    standing: Standing
    why: str = ""


# Which orchestrator may land, and what it makes of a landing that is not settled.
#
# Each orchestrator raises the epoch when it starts. Only the newest writes down what it is about to
# land, and settles it. An earlier one may be frozen with its push still to come.


class Term(Struct, frozen=True):
    """An orchestrator's epoch, and when it was raised, by a clock that nobody sets."""

    epoch: int = 0
    since: float = 0.0
    lost_after: float = LOST_AFTER

    @property
    def alone_from(self) -> float:
        """When no push of an earlier orchestrator is left, though nothing keeps them out."""
        return self.since + self.lost_after


class Fate(StrEnum):
    LANDED = "landed"
    LOST = "lost"
    UNKNOWN = "unknown"  # its push may still come
    NOT_OURS = "not ours"  # a newer orchestrator settles it


def fate(epoch: int, term: Term, *, there: bool, shut_out: bool, now: float) -> Fate:
    """What became of a landing of this epoch; `there` says whether the target has it.

    `shut_out`: no push of an earlier orchestrator can come any more, whatever the time is.
    """
    if epoch > term.epoch:
        return Fate.NOT_OURS
    if there:
        return Fate.LANDED
    if epoch == term.epoch or shut_out or now >= term.alone_from:
        return Fate.LOST
    return Fate.UNKNOWN
