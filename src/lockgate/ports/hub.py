"""The door to a project's hub, the bare repository by which hosts hand commits to each other."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from lockgate.core.hub import Refs, Tried
from lockgate.ports.store import Project


class Exchange(Protocol):
    """Between the repositories of this host and the hub; nothing happens where a project has none.

    Unavailable where the hub does not answer, or does not have what is asked for.
    """

    def follow(self, project: Project, commit: str = "") -> None:
        """The mirror of this host has the hub's branches as they are now, and that commit.

        It is made where it is missing. With a commit that is there already, nobody is asked.
        """
        ...

    def refs(self, project: Project, *patterns: str) -> Refs:
        """Those of the hub that match, as it has them now."""
        ...

    def send(self, project: Project, refs: Refs, drop: Sequence[str] = ()) -> None:
        """Commits of judge.git to the hub, under these names; and let go of others there.

        All or, where the hub can do so, none.
        """
        ...

    def bring(self, project: Project, commits: Iterable[str], task: str = "") -> None:
        """Into judge.git, with all that they reach, those that it lacks; `task` is whose they are.

        A commit that the hub has not is Unavailable.
        """
        ...

    def bring_refs(self, project: Project, root: str) -> None:
        """Into judge.git, under their own names, all below it."""
        ...

    def publish(
        self, project: Project, branch: str, commit: str, was: str | None, mark: str
    ) -> str | None:
        """A branch of the hub from where it was to a commit, with the ref that says whose it is.

        Why it was not moved; None where it was.
        """
        ...

    def bring_notes(self, project: Project, ref: str) -> None:
        """The notes of the mirror become those of the hub."""
        ...

    def send_notes(self, project: Project, ref: str, *, replace: bool = False) -> bool:
        """Whether the hub took them: not where it has others meanwhile, unless they `replace`."""
        ...


class HubTrial(Protocol):
    def tried(self, url: str) -> Tried:
        """What comes of two refs that are pushed there at once, and taken away again."""
        ...


class NoHub:
    """The `Exchange` of a home whose projects have none."""

    def follow(self, project: Project, commit: str = "") -> None: ...

    def refs(self, project: Project, *patterns: str) -> Refs:
        del project, patterns
        nothing: Mapping[str, str] = {}
        return nothing

    def send(self, project: Project, refs: Refs, drop: Sequence[str] = ()) -> None: ...
    def bring(self, project: Project, commits: Iterable[str], task: str = "") -> None: ...
    def bring_refs(self, project: Project, root: str) -> None: ...
    def publish(
        self, project: Project, branch: str, commit: str, was: str | None, mark: str
    ) -> str | None: ...
    def bring_notes(self, project: Project, ref: str) -> None: ...
    def send_notes(self, project: Project, ref: str, *, replace: bool = False) -> bool:
        del project, ref, replace
        return True


NO_HUB = NoHub()
