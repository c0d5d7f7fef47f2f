"""The doors to what a home keeps on disk: what is there, how large it is, and its removal."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec import Struct

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


class Shelves(Protocol):
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


class Stacks(Protocol):
    """The repositories of projects: task branches, earlier changes, and how they are packed."""

    def found(self, project: Project) -> Iterable[Found]:
        """Task branches that Lockgate has set, and earlier changes, by task."""
        ...

    def remove(self, project: Project, it: Found, branch: str) -> bool:
        """Whether it went: a branch only where nobody moved it and its commit is kept by a ref."""
        ...

    def packing(self, project: Project) -> Iterable[Packing]: ...
    def repack(self, project: Project, keep_days: float) -> Mapping[str, int]:
        """Put loose objects and refs together; the bytes that each repository has now.

        judge.git drops what nothing reaches and nobody wrote for so many days; base.git lends its
        objects to clones, and drops none.
        """
        ...
