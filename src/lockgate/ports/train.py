"""The doors of the merge train: candidates in git, the branch they land on, what it remembers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from lockgate.core.config.settings import MergeFence, MergeStrategy
from lockgate.core.model.commits import Author
from lockgate.core.model.task import TaskId
from lockgate.core.train.model import Built, Candidate, Commit, Conflict, Result, Tree
from lockgate.ports.store import Project


class Target(Struct, frozen=True, kw_only=True):
    """A branch that changes land on: this repository's own, or a remote's."""

    project: Project
    branch: str
    remote: str = ""
    fence: MergeFence = MergeFence.WAIT  # what keeps an earlier orchestrator's push out
    identity: str = ""  # who makes merge commits, where it is not the user

    @property
    def name(self) -> str:
        return f"{self.project.id} {self.remote} {self.branch}"


class Load(Struct, frozen=True):
    """A change as it is put on: its commit in judge.git, and what the landed commit says of it."""

    task: TaskId
    commit: Commit
    message: str  # subject, empty line, what is worth saying
    agent: str = ""  # whose work it is
    author: Author = Author.USER  # whose name it carries, where it lands as one commit


class Span(Struct, frozen=True):
    """A change by itself: what is in `commit` and was not in `base`, on which the work began."""

    base: Commit
    commit: Commit


class Reverts(Struct, frozen=True, kw_only=True):
    """A landed change that is to be taken back, and how the commit that does so begins."""

    task: TaskId
    message: str  # subject, empty line, why
    before: Commit  # where the target was before the landing
    landed: Commit  # where the landing moved it to
    change: Commit  # the change as its gates judged it
    alone: bool = True  # the landing brought this change only


def _unchecked() -> None:
    """Where no other orchestrator can be."""


class Leave(Struct, frozen=True):
    """Who lands: an epoch, the landing's number, and a last look that raises Overtaken."""

    epoch: int = 0
    number: int = 0
    check: Callable[[], None] = _unchecked


class Arrived(Struct, frozen=True):
    """The target is at the commit now."""


class Elsewhere(Struct, frozen=True):
    """The target is not where it was expected; nothing was changed."""


class InTheWay(Struct, frozen=True):
    """The user's checkout of the branch cannot follow; nothing was changed."""

    why: str
    files: tuple[str, ...] = ()
    tree: str = ""  # the work tree that they are in


ANYBODY = Leave()
TAKES_PULLS = "takes pull requests only"  # why a remote refuses every push to a branch


class Yard(Protocol):
    """Puts candidates together in judge.git, without a work tree, and moves the target."""

    def tip(self, target: Target) -> Built:
        """Where the target is now; a remote is asked. Unavailable where there is no such branch."""
        ...

    def build(
        self, target: Target, onto: Commit, loads: Sequence[Load], strategy: MergeStrategy
    ) -> Built | Conflict:
        """The changes on that commit, in this order; the same facts give the same commit.

        What was built is kept by a ref until `prune`.
        """
        ...

    def revert(self, target: Target, onto: Commit, it: Reverts) -> Built | Conflict:
        """A commit on `onto` that takes a landed change back; `onto` where nothing of it is left.

        It is kept as `build` keeps.
        """
        ...

    def land(
        self, target: Target, expected: Commit, commit: Commit, leave: Leave = ANYBODY
    ) -> Arrived | Elsewhere | InTheWay:
        """Compare-and-swap: from `expected` to `commit`, or not at all.

        A push is ended within so many seconds of the last look, whatever becomes of us meanwhile.
        """
        ...

    def shut_out(self, target: Target, leave: Leave) -> bool:
        """Whether nothing that an earlier orchestrator began can move the target from now on."""
        ...

    def has(self, target: Target, commit: Commit) -> bool:
        """Whether the target contains it; a remote is asked."""
        ...

    def lend(self, target: Target, commit: Commit) -> None:
        """Let agents fetch it as the target's branch."""
        ...

    def prune(self, target: Target, keep: Sequence[Commit]) -> None:
        """Let go of every candidate of this target but these."""
        ...

    def overlap(self, project: Project, one: Span, other: Span) -> tuple[str, ...]:
        """The files in which these two changes would not merge with each other.

        What either of them was built on is not part of it: a conflict of one change with the
        target is not a conflict with another change that was begun on a newer target.
        """
        ...

    def note(self, project: Project, commit: Commit, text: str) -> None:
        """Keep the evidence beside a landed commit, in refs/notes/lockgate of the repository."""
        ...

    def note_of(self, project: Project, name: str) -> tuple[Commit, str | None] | None:
        """The commit that git takes this name for, and its evidence; None where there is none."""
        ...

    def notes_sound(self, project: Project) -> bool:
        """Whether git has every part of the notes."""
        ...

    def rewrite_notes(self, project: Project, notes: Mapping[Commit, str]) -> int:
        """Write all of them again; how many there are then."""
        ...


class Landing(Struct, frozen=True, kw_only=True):
    """What was meant before the target was moved; its number comes with being written down."""

    expected: Commit
    commit: Commit
    tree: Tree
    tasks: tuple[TaskId, ...]
    number: int = 0
    epoch: int = 0  # of the orchestrator that meant it
    time: float = 0.0  # when it was meant
    seconds: float = 0.0  # that the gates of the train took for it


class TrainLog(Protocol):
    """What the train remembers of one target, named by its project and branch."""

    def candidates(self, target: str) -> tuple[Candidate, ...]: ...
    def add_candidate(self, target: str, it: Candidate) -> None:
        """Once; the same changes on the same commit have one answer."""
        ...

    def drop_candidates(self, target: str, them: Sequence[Candidate]) -> None: ...
    def results(self, target: str, rules: str) -> dict[Tree, Result]:
        """Of the trees that were tested by these rules, which are named by their hash."""
        ...

    def proof(self, target: str, rules: str, tree: Tree) -> str:
        """What was kept of the run that gave the result; empty where there is none."""
        ...

    def put_result(
        self, target: str, rules: str, tree: Tree, result: Result, proof: str = ""
    ) -> None: ...
    def forget_unjudged(self, target: str) -> None:
        """Results that say nothing of their trees; these are tested again."""
        ...

    def drop_results(self, target: str, keep: Sequence[Tree]) -> None: ...
    def raise_epoch(self) -> int:
        """For an orchestrator that starts. From then on no earlier one intends or settles."""
        ...

    def check_epoch(self, epoch: int) -> None:
        """Overtaken where it is not the newest."""
        ...

    def intend(self, target: str, it: Landing, time: float) -> Landing:
        """Before the target is moved; with its number. Overtaken where its epoch is old."""
        ...

    def settle(self, target: str, number: int, *, landed: bool, epoch: int = 0) -> None:
        """Overtaken where the epoch is not the newest; then nothing is settled."""
        ...

    def keep_evidence(self, target: str, number: int, evidence: str) -> None:
        """What the note of this landing says, so that it can be written again."""
        ...

    def evidence(self, target: str) -> Mapping[Commit, str]:
        """Of every landing for which it was kept, the oldest first."""
        ...

    def open_landings(self, target: str) -> tuple[Landing, ...]:
        """Those of which it is not known whether they came to be."""
        ...

    def landed(self, target: str, before: float) -> int:
        """How many changes had landed by then."""
        ...

    def landed_last(self, target: str, limit: int) -> tuple[Landing, ...]:
        """The newest that came to be, the last one first."""
        ...

    def landing_of(self, commit: Commit) -> Landing | None:
        """The landing that moved a target to this very commit, whichever target it was."""
        ...
