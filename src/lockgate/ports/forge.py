"""The doors to a forge: its pull requests and issues, our rows about them, and git's side of it."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from lockgate.core.forge.model import (
    Access,
    Check,
    Failure,
    Identity,
    Issue,
    Pull,
    Relation,
    Rules,
    Seen,
    Unknown,
)
from lockgate.core.forge.pace import Budget
from lockgate.core.model.task import ProjectId, TaskId
from lockgate.core.train.model import Commit, Tree
from lockgate.ports.train import Target


class PullRequest(Struct, frozen=True, kw_only=True):
    """As a search by its branch finds it."""

    number: int
    head: str
    url: str
    body: str = ""
    open: bool = True
    merged: bool = False


class NewPull(Struct, frozen=True, kw_only=True):
    branch: str
    base: str
    title: str
    body: str
    draft: bool = False


class Asked(Struct, frozen=True):
    """The forge was asked to merge this head; whether it did is for a look to say."""


class NotYet(Struct, frozen=True):
    """The forge refuses for now, in its words; `final` where asking again cannot help."""

    why: str
    final: bool = False


class Moved(Struct, frozen=True):
    """The head is another one than the one that was to be merged."""


class How(StrEnum):
    """How a pull request is merged."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"
    QUEUE = "queue"
    AUTO = "auto"


class Verdict(Struct, frozen=True):
    """What Lockgate says of a commit: a status or a check under its own name."""

    target: str
    passed: bool
    summary: str


class Forge(Protocol):
    """Unavailable where it does not answer; Unknown where one look did not come to its end."""

    def budget(self) -> Budget:
        """What its limit leaves, as far as its last answer said."""
        ...

    def whoami(self) -> Identity: ...
    def rules(self, branch: str) -> Rules: ...
    def find(self, branch: str) -> PullRequest | None:
        """The newest pull request of this branch, whatever became of it."""
        ...

    def open(self, new: NewPull) -> PullRequest:
        """Made once: where it was made meanwhile, that one."""
        ...

    def amend(self, number: int, *, body: str = "", reopen: bool = False) -> None: ...
    def ready(self, number: int) -> None:
        """A draft is one no more."""
        ...

    def look(self, numbers: Iterable[int]) -> Mapping[int, Seen | Unknown]: ...
    def failures(self, seen: Seen, checks: Sequence[Check]) -> tuple[Failure, ...]: ...
    def rerun(self, seen: Seen, checks: Sequence[Check]) -> None: ...
    def report(self, commit: str, verdict: Verdict) -> None: ...
    def land(self, number: int, head: str, how: How) -> Asked | NotYet | Moved: ...
    def reply(self, number: int, thread: int, words: str) -> None: ...
    def issues(self, label: str, since: str) -> tuple[Issue, ...]: ...
    def comment(self, issue: int, key: str, words: str) -> None:
        """Says it in the one comment of ours that has this key, which is edited in place."""
        ...

    def close_issue(self, number: int) -> None: ...
    def may(self, login: str) -> Access: ...


class Pulls(Protocol):
    """What is kept of pull requests, one row a task."""

    def of(self, task: TaskId) -> Pull | None: ...
    def all(self, project: ProjectId) -> tuple[Pull, ...]: ...
    def projects(self) -> tuple[ProjectId, ...]:
        """Those that have a row."""
        ...

    def put(self, pull: Pull) -> None: ...
    def drop(self, task: TaskId) -> None: ...


class Refused(Struct, frozen=True):
    """The remote did not take the push, in its words."""

    why: str


class Overwrites(Struct, frozen=True):
    """The branch is not where Lockgate left it: nothing was pushed."""


class Pushed(Struct, frozen=True):
    """The branch is at the commit now."""


class OfferedCommit(Struct, frozen=True, kw_only=True):
    """One commit of ours: the judged tree on the pushed head and the newest target commit."""

    tree: Tree
    parents: tuple[Commit, ...]
    message: str
    like: Commit  # whose date it has, so that the same facts give the same commit
    sign: bool = False


class PullYard(Protocol):
    """Git's side of a pull request: branches of the remote that Lockgate made."""

    def compose(self, target: Target, it: OfferedCommit) -> Commit: ...
    def push_branch(
        self, target: Target, branch: str, commit: Commit, expected: Commit | None
    ) -> Pushed | Overwrites | Refused:
        """From `expected` (None: it must not exist) to the commit, or not at all."""
        ...

    def branch_at(self, target: Target, branch: str) -> Commit | None:
        """Where the remote's branch is now, fetched; None where it has none."""
        ...

    def relation(self, target: Target, pushed: Commit, head: Commit) -> Relation: ...
    def fork(self, target: Target, head: Commit) -> Commit | None:
        """The newest commit of the target that this head is built on; None where there is none."""
        ...

    def bring(self, target: Target, branch: str, head: Commit) -> None:
        """A person's commit, fetched before, to where gates and agents find it."""
        ...

    def tree_of(self, target: Target, commit: Commit) -> Tree | None:
        """Of a commit of the remote's, fetched to where gates find it; None where it is gone."""
        ...

    def contains(self, target: Target, commit: Commit, other: Commit) -> bool:
        """Whether `commit` has `other` in its history."""
        ...

    def delete_branch(self, target: Target, branch: str, expected: Commit) -> bool: ...
    def merged(self, target: Target, merge: Commit, head: Commit) -> "Merged | None":
        """The merge in the fetched target; None where the target does not have it yet."""
        ...


class Merged(Struct, frozen=True, kw_only=True):
    """`whole`: merging the head again adds nothing to it, so that all of the head is in it."""

    commit: Commit
    tree: Tree
    onto: Commit
    whole: bool
