"""Both sides of a change as the differential gate sees them, and where its runs are made."""

import shlex
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from lockgate.core.config.settings import SandboxLevel, protected_paths
from lockgate.core.differential.plan import (
    BASE_ALONE,
    Ended,
    Plan,
    Sides,
    TestRules,
    Which,
    canaries_in,
    files_of,
    planted_in,
    run_of,
    tree_of,
)
from lockgate.core.differential.runs import AnyRun
from lockgate.core.differential.table import ChangedFiles, Tests
from lockgate.core.differential.test_files import files_of_tests
from lockgate.core.model.gates import CommandGate, DifferentialGate
from lockgate.core.model.spans import UNTRACED
from lockgate.ports import Attempt, Cut, GateRun, GateRuns, Workspaces
from lockgate.ports.differential import Blend, TestSources, Trees
from lockgate.services.gates.runner import Evaluation

# Both sides of a change as the differential gate sees them: their files, tests and harness.


PACKAGE = "package.json"


class Compared(Struct, frozen=True, kw_only=True):
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


class SideReader(Struct, frozen=True):
    trees: Trees
    sources: TestSources

    def compared(self, it: Evaluation, gate: DifferentialGate) -> Compared:
        fork = self.trees.fork(it.candidate)
        base = self.trees.blobs(it.project, fork)
        candidate = self.trees.blobs(it.project, it.candidate.commit)
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


# The runs of the differential gate: each on a tree made for it, in a sandbox of its own.


AT_ONCE = 2
TAIL = 1000


class Measured(Struct, frozen=True):
    run: AnyRun
    seconds: float = 0.0
    level: str = ""


class Bench(Struct, frozen=True, kw_only=True):
    """Where one gate's runs on one change are made."""

    place: Path  # beside which each run has its tree
    workspaces: Workspaces
    trees: Trees
    gates: GateRuns
    it: Evaluation
    gate: DifferentialGate
    compared: Compared
    plan: Plan
    cancelled: Callable[[], bool]

    def measure(self, wanted: Iterable[Which]) -> dict[Which, Measured]:
        """Two at a time, unless they could get in each other's way."""
        every = tuple(wanted)
        bare = self.it.settings.sandbox.level is SandboxLevel.NONE
        alone = bare or bool(self.gate.place.exclusive)
        with ThreadPoolExecutor(1 if alone else AT_ONCE) as pool:
            return dict(zip(every, pool.map(self._measured, every), strict=True))

    def _measured(self, which: Which) -> Measured:
        place = self.place.with_name(f"{self.place.name}-{which.name.lower()}")
        files = files_of(tree_of(which, self.plan), self.compared.sides)
        planted = planted_in(which, self.plan, self.compared.known(files))
        try:
            self.lay(which, {it.path: it.text for it in planted}, place)
            attempt = self.gates.attempt(self._command(), self.run(which, place), self.cancelled)
            read = self.gates.read(attempt, self.gate.report)
        finally:
            self.workspaces.discard(place)
        canaries, alone = canaries_in(planted), which in BASE_ALONE
        run = run_of(_ended(attempt), read, canaries, on_base=alone)
        return Measured(run, attempt.seconds, attempt.level)

    def lay(self, which: Which, planted: Mapping[str, str], place: Path) -> None:
        tree = tree_of(which, self.plan)
        ours, theirs = self.compared.base, self.it.candidate.commit
        blend = Blend(
            commit=theirs if tree.of_change else ours,
            other=ours if tree.of_change else theirs,
            mixed=tree.mixed,
            planted=planted,
        )
        self.workspaces.discard(place)
        self.trees.blend(self.it.candidate, blend, place)
        of = (self.it.candidate, self.it.settings)
        self.workspaces.set_up(*of, place, own=tree.of_change)

    def _command(self) -> CommandGate:
        told = (f"{name}={shlex.quote(it)}" for name, it in self.plan.environment)
        exported = "".join(f"export {it}\n" for it in told)
        return CommandGate(
            name=self.gate.name,
            place=self.gate.place,
            command=exported + self.gate.command,
            attempts=1,
            timeout=self.gate.timeout,
            report=self.gate.report,
        )

    def run(self, which: Which, place: Path) -> GateRun:
        candidate = self.it.candidate
        of_change = tree_of(which, self.plan).of_change
        commit = candidate.commit if of_change else self.compared.base
        return GateRun(
            checkout=place,
            base=self.workspaces.base(self.it.project),
            commit=candidate.commit,
            tree="",  # nobody's
            config_hash=candidate.config_hash,
            sandbox=self.it.settings.sandbox,
            services=self.it.settings.services,
            data=self.workspaces.service_data(candidate, self.it.settings, commit),
            span=self.it.spans.get(self.gate.name, UNTRACED),
        )


def _ended(attempt: Attempt) -> Ended:
    said = f"{attempt.out}\n{attempt.err}".strip()[-TAIL:]
    if attempt.cut is Cut.DEADLINE:
        return Ended(exit_code=None, overtime=attempt.why, said=said)
    not_run = attempt.why if attempt.cut else ""
    return Ended(exit_code=attempt.exit_code, not_run=not_run, said=said)
