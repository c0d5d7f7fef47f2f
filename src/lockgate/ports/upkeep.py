"""The doors to what a home keeps on disk: what is there, how large it is, and its removal."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from lockgate.core.orphans import OwnBranch
from lockgate.core.retention import Found
from lockgate.ports.store import Project


class Used(Struct, frozen=True):
    """Bytes on disk of one thing: which folder of the home it lies in, and its name there."""

    place: str
    name: str
    size: int


class Packing(Struct, frozen=True):
    """How a repository of a project lies on disk."""

    project: str
    name: str
    loose: int  # objects in a file of their own
    packs: int
    size: int


class HomeFolders(Protocol):
    """What lies in the folders of a home. Removing is safe to repeat."""

    def found(self) -> Iterable[Found]:
        """All that has an age by which it may go."""
        ...

    def size(self, it: Found) -> int:
        """Bytes on disk."""
        ...

    def remove(self, it: Found, text: str | None) -> bool:
        """Whether it went. `text` is what the database has of the TASK.md of an ended task."""
        ...

    def used(self) -> Iterable[Used]: ...


class TaskRefs(Protocol):
    """The repositories of projects: task branches, earlier changes, and how they are packed."""

    def found(self, project: Project) -> Iterable[Found]:
        """Task branches that Lockgate has set, and earlier changes, by task."""
        ...

    def remove(self, project: Project, it: Found, branch: str) -> bool:
        """Whether it went: a branch only where nobody moved it and its commit is kept by a ref."""
        ...

    def packing(self, project: Project) -> Iterable[Packing]: ...
    def repack(
        self, project: Project, keep_days: float, needed: Sequence[str]
    ) -> Mapping[str, int]:
        """Put loose objects and refs together; the bytes that each repository has now.

        Commits that live tasks need are named by a ref first, whatever else names them.
        judge.git drops what nothing reaches and nobody wrote for so many days; base.git lends its
        objects to clones, and drops none.
        """
        ...


class Inspector(Protocol):
    """Looks at a home as it lies on disk, for what the database knows nothing of."""

    def damage(self) -> Sequence[str]:
        """What the database itself finds wrong with its tables."""
        ...

    def folders(self) -> Mapping[str, Sequence[str]]:
        """The names in each folder that has one for each row."""
        ...

    def is_running(self, session: str) -> bool: ...
    def half_made(self) -> Sequence[str]:
        """Set-up layers that were never finished, by their paths in the home."""
        ...

    def mounts(self) -> Sequence[str]:
        """What is mounted below the home."""
        ...

    def unsound(self, project: Project) -> Sequence[str]:
        """What git finds wrong with the repositories of a project."""
        ...

    def lacking(self, project: Project, commits: Sequence[str], *, theirs: bool) -> Sequence[str]:
        """Those that judge.git has not; or, `theirs`, that the user's repository has not."""
        ...

    def branches(self, project: Project, tasks: Collection[str]) -> Iterable[OwnBranch]:
        """Those in the user's repository that Lockgate set last, for a task that is none of these.

        One that somebody has moved since is not Lockgate's any more.
        """
        ...

    def remove_branch(self, project: Project, it: OwnBranch) -> bool:
        """Whether it went: only where it is still at that commit."""
        ...

    def put_aside(self, name: str) -> str:
        """Move it, named by its path in the home, to the deleted ones; where it is now."""
        ...

    def remove(self, name: str) -> None: ...
