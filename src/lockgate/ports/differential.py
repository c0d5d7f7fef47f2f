"""The doors of the differential gate: mixed trees, test files as text, measurements of base.

Not among the names of the package: no other command than the orchestrator needs what this loads.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from lockgate.core.differential.plan import Mixed
from lockgate.core.differential.runs import Run
from lockgate.core.differential.strength import Beside, Known
from lockgate.core.differential.table import ChangedFiles, Tests
from lockgate.core.differential.test_files import Runner
from lockgate.ports.store import Project
from lockgate.ports.work import Candidate


class Blend(Struct, frozen=True, kw_only=True):
    """A tree that is nobody's: a commit's, with and without files of another, and files of ours."""

    commit: str
    other: str
    mixed: Mixed
    planted: Mapping[str, str]  # by path


class Trees(Protocol):
    """Both sides of a change out of judge.git, and clones of what is mixed from them."""

    def blend(self, candidate: Candidate, it: Blend, directory: Path) -> None:
        """A clean clone, one commit further on, which has exactly that tree."""
        ...

    def fork(self, candidate: Candidate) -> str:
        """The commit that the change was made on."""
        ...

    def blobs(self, project: Project, commit: str) -> Mapping[str, str]:
        """Every path of a commit with its mode and its blob's id, a space between."""
        ...

    def texts(self, project: Project, blobs: Sequence[str]) -> Mapping[str, str]:
        """What these hold, of plain files that are UTF-8 and not too big."""
        ...


class TestSources(Protocol):
    """Reads test files, and what decides how tests are run; nothing is executed."""

    def tests(self, files: Mapping[str, str]) -> Tests:
        """`files` is path → text."""
        ...

    def beside(self, texts: Mapping[str, str]) -> Beside:
        """By path: what these test files have besides their tests."""
        ...

    def probe(self, runner: Runner | None) -> str:
        """The text of the plug-in that plants faults under this runner; empty: there is none."""
        ...

    def broken(
        self, texts: Mapping[str, str], tests: Tests, word: str
    ) -> tuple[dict[str, str], Tests]:
        """Files of these tests with a failure in each, and the tests where that could be done."""
        ...

    def watch(self, runner: Runner | None) -> str:
        """A program that notes which files tests open; empty: there is none for this runner."""
        ...

    def reporter(self, runner: Runner | None, command: str) -> str:
        """A program that makes this runner name its tests; empty: the command does so itself."""
        ...

    def changes(
        self,
        base: Mapping[str, str],
        candidate: Mapping[str, str],
        patterns: Sequence[str],
        command: str,
    ) -> ChangedFiles: ...
    def command(self, written: str, package: str) -> str:
        """With what `npm test` runs behind it, where it says that; `package` is package.json."""
        ...


class Measurements(Protocol):
    """What base's own tests came to, kept for the next change; never a verdict."""

    def find(self, key: Sequence[str]) -> tuple[Run, Run] | None:
        """Base, and base once more; None where it is not known, damaged, or too old."""
        ...

    def keep(self, key: Sequence[str], base: Run, again: Run) -> None: ...
    def find_known(self, key: Sequence[str]) -> Known:
        """What base's tests came to on planted faults; empty where that is not known."""
        ...

    def keep_known(self, key: Sequence[str], known: Known) -> None: ...
