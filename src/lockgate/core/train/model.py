"""The queue of one target branch as it is, and what is to be done with it; `merging` plans.

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
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

from lockgate.core.model.task import TaskId

Commit = NewType("Commit", str)
Tree = NewType("Tree", str)


@dataclass(frozen=True, slots=True)
class Change:
    """What a task would add: the commit that its gates judged."""

    task: TaskId
    commit: Commit


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One change in the queue; `entered` is how many changes had landed when it came."""

    change: Change
    since: float
    entered: int = 0
    priority: int = 3
    depends_on: tuple[TaskId, ...] = ()  # of these, the tasks whose changes have not landed
    held: str = ""  # why a human must say yes first


@dataclass(frozen=True, slots=True)
class Built:
    """The changes merge: this commit, with this tree, has them all."""

    commit: Commit
    tree: Tree


@dataclass(frozen=True, slots=True)
class Conflict:
    """This task's change does not merge onto what is in front of it, in these files."""

    task: TaskId
    others: tuple[TaskId, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """Changes in their order on top of one commit: the tip, or the candidate in front."""

    onto: Commit
    changes: tuple[Change, ...]
    outcome: Built | Conflict


@dataclass(frozen=True, slots=True)
class Green:
    """Every gate of the train passed on the tree."""


@dataclass(frozen=True, slots=True)
class Red:
    """A gate failed on the tree, for good: the retry protocol is behind it."""

    evidence: str


@dataclass(frozen=True, slots=True)
class Broken:
    """A gate could not judge the tree; that says nothing about the work."""

    why: str


Result = Green | Red | Broken


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
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


@dataclass(frozen=True, slots=True)
class CancelTest:
    """Nobody needs the answer any more."""

    tree: Tree


@dataclass(frozen=True, slots=True)
class Drop:
    """The change goes back to its agent; what it met on the tip is the reason."""

    task: TaskId
    reason: Conflict | Red


@dataclass(frozen=True, slots=True)
class SetAside:
    """The change could not be judged, and the tip could: a human looks; nobody is charged."""

    task: TaskId
    why: str


@dataclass(frozen=True, slots=True)
class Land:
    """Move the target from `expected` to `commit`, or not at all if it is elsewhere by now."""

    expected: Commit
    commit: Commit
    tree: Tree
    tasks: tuple[TaskId, ...]


@dataclass(frozen=True, slots=True)
class Build:
    """Merge the changes onto the commit, and keep what comes of it as a candidate."""

    onto: Commit
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class CheckTip:
    """Test the target as it is: something failed on it, and it may be the tip's own fault."""

    tip: Built


@dataclass(frozen=True, slots=True)
class StartTest:
    candidate: Built
    tasks: tuple[TaskId, ...]


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing to do but to say so; it is planned anew for as long as it is so."""

    why: str


Step = CancelTest | Drop | SetAside | Land | Build | CheckTip | StartTest | Hold


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


@dataclass(frozen=True, slots=True)
class Place:
    """The places of a queue are in the order in which its changes would land."""

    task: TaskId
    standing: Standing
    why: str = ""
