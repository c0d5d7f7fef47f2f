"""Both sides of a change as the differential gate sees them: their files, tests and harness."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lockgate.core.config.settings import protected_paths
from lockgate.core.differential.matching import Tests
from lockgate.core.differential.plan import Sides, TestRules
from lockgate.core.differential.table import ChangedFiles
from lockgate.core.differential.test_files import files_of_tests
from lockgate.core.model.gates import DifferentialGate
from lockgate.ports.comparing import TestSources, Trees
from lockgate.services.gate_runner import Evaluation

PACKAGE = "package.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    base: str  # its commit, as the change left it
    sides: Sides
    rules: TestRules
    texts: Mapping[str, str]  # by blob
    base_tests: Tests
    candidate_tests: Tests
    changed: ChangedFiles

    def known(self, files: Mapping[str, str]) -> dict[str, str]:
        """Path → text of those that have one."""
        return _known(files, self.texts)


@dataclass(frozen=True, slots=True)
class SideReader:
    trees: Trees
    sources: TestSources

    def compared(self, it: Evaluation, gate: DifferentialGate) -> Compared:
        fork = self.trees.fork(it.project, it.task, it.task.candidate)
        base = self.trees.blobs(it.project, fork)
        candidate = self.trees.blobs(it.project, it.task.candidate)
        patterns = it.settings.test_paths
        wanted = _to_read(base, candidate, files_of_tests((*base, *candidate), patterns))
        texts = self.trees.texts(it.project, wanted)
        package = texts.get(base.get(PACKAGE, ""), "")
        command = self.sources.command(gate.command, package)
        changed = self.sources.changes(
            _told(base, candidate, texts), _told(candidate, base, texts), patterns, command
        )
        return Compared(
            base=fork,
            sides=Sides(
                base=base,
                candidate=candidate,
                harness=frozenset(it.file for it in changed.harness),
            ),
            rules=TestRules(
                command=command, patterns=patterns, protected=protected_paths(it.settings)
            ),
            texts=texts,
            base_tests=self._tests(base, texts, patterns),
            candidate_tests=self._tests(candidate, texts, patterns),
            changed=changed,
        )

    def _tests(
        self, files: Mapping[str, str], texts: Mapping[str, str], patterns: tuple[str, ...]
    ) -> Tests:
        known = _known(files, texts)
        return self.sources.tests({path: known[path] for path in files_of_tests(known, patterns)})


def _to_read(
    base: Mapping[str, str], candidate: Mapping[str, str], tests: Iterable[str]
) -> tuple[str, ...]:
    """What differs, all tests, and what `npm test` means; what changed comes first."""
    differing = (it for it in {**base, **candidate} if base.get(it) != candidate.get(it))
    paths = dict.fromkeys((*differing, PACKAGE, *tests))
    found = (side.get(path) for path in paths for side in (base, candidate))
    return tuple(dict.fromkeys(it for it in found if it))


def _told(
    mine: Mapping[str, str], other: Mapping[str, str], texts: Mapping[str, str]
) -> dict[str, str]:
    """Only what differs; for what is no text its blob, which then differs too."""
    return {path: texts.get(blob, blob) for path, blob in mine.items() if other.get(path) != blob}


def _known(files: Mapping[str, str], texts: Mapping[str, str]) -> dict[str, str]:
    return {path: texts[blob] for path, blob in files.items() if blob in texts}
