"""Both sides of a change as the differential gate sees them, and where its runs are made."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.config.settings import SandboxLevel, protected_paths
from lockgate.core.differential.appearance import ORDER, PLAIN, Look, look_of
from lockgate.core.differential.plan import (
    BASE_ALONE,
    Ended,
    Plan,
    Sides,
    TestRules,
    Which,
    canaries_in,
    files_of,
    opened,
    planted_in,
    run_of,
    tree_of,
    watched,
)
from lockgate.core.differential.runs import AnyRun, Run
from lockgate.core.differential.table import ChangedFiles, Tests
from lockgate.core.differential.test_files import files_of_tests
from lockgate.core.model.gates import CommandGate, DifferentialGate
from lockgate.core.model.spans import UNTRACED
from lockgate.core.wrappers.entries import commands_behind
from lockgate.ports import Attempt, Cut, GateRun, GateRuns, Workspaces
from lockgate.ports.differential import Blend, TestSources, Trees
from lockgate.services.gates.runner import Evaluation

# Both sides of a change as the differential gate sees them: their files, tests and harness.


PACKAGE = "package.json"
SETTINGS = ("pyproject.toml", "pytest.ini", ".pytest.ini", "setup.cfg", "tox.ini")


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
        settings = (texts.get(base.get(path, ""), "") for path in SETTINGS)
        doctests = ("--doctest-modules",) if any("doctest" in it for it in settings) else ()
        command = "\n".join((command, *self._wrapped(it, gate.command, base), *doctests))
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

    def _wrapped(self, it: Evaluation, command: str, files: Mapping[str, str]) -> tuple[str, ...]:
        """What the command runs by make, tox or a script of its own, as base has it."""

        def read(path: str) -> str | None:
            blob = files.get(path)
            return self.trees.texts(it.project, (blob,)).get(blob) if blob else None

        return commands_behind(command, read)

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
    paths = dict.fromkeys((*differing, PACKAGE, *SETTINGS, *tests))
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
START = "sitecustomize.py"  # what Python loads whenever it starts
_FIRST = 'export PYTHONPATH="$PLANTED${PYTHONPATH:+:$PYTHONPATH}"'
_AT = 'mkdir -p "$PLANTED"; printf %s "$OUT" >"$PLANTED/at"'  # for programs of ours
_OUT = re.compile(r"\bOUT\b")
_HIDDEN = ("_out=$OUT; unset OUT; OUT=$_out; unset _out",)  # known to the shell, and not passed on
_PATHS = re.compile(r"\bPYTHONPATH=")
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
    reporter: str = ""  # a program that makes the test runner name its tests
    watch: str = ""  # a program that notes which files base's tests open
    cancelled: Callable[[], bool]

    def measure(self, wanted: Iterable[Which]) -> dict[Which, Measured]:
        """Two at a time, unless they could get in each other's way."""
        every = tuple(wanted)
        with self.pool() as pool:
            return dict(zip(every, pool.map(self._measured, every), strict=True))

    def pool(self) -> ThreadPoolExecutor:
        bare = self.it.settings.sandbox.level is SandboxLevel.NONE
        alone = bare or bool(self.gate.place.exclusive)
        return ThreadPoolExecutor(1 if alone else AT_ONCE)

    def _measured(self, which: Which) -> Measured:
        place = self.place.with_name(f"{self.place.name}-{which.name.lower()}")
        files = files_of(tree_of(which, self.plan), self.compared.sides)
        texts = self.compared.known(files)
        planted = planted_in(which, self.plan, self.compared.sides, texts)
        try:
            watch = self._watching(which)
            self.lay(which, {**watch, **{it.path: it.text for it in planted}}, place)
            command = self.command((f"export UNITTEST_WATCH={self.word}",) if watch else ())
            attempt = self.gates.attempt(command, self.run(which, place), self.cancelled)
            seen = self.gates.read(attempt, self.gate.report)
        finally:
            self.workspaces.discard(place)
        canaries, alone = canaries_in(planted), which in BASE_ALONE
        read = watched(seen, self.word)
        run = run_of(_ended(attempt), read, canaries, on_base=alone)
        if isinstance(run, Run):
            run = replace(run, opened=opened(seen, self.word))
        return Measured(run, attempt.seconds, attempt.level)

    def measure_broken(self, texts: Mapping[str, str]) -> AnyRun:
        """Base's tests on the change, with these texts in place of some of its files."""
        place = self.place.with_name(f"{self.place.name}-broken")
        try:
            self.lay(Which.OF_BASE, texts, place)
            run = self.run(Which.OF_BASE, place)
            attempt = self.gates.attempt(self.command(), run, self.cancelled)
            read = self.gates.read(attempt, self.gate.report)
        finally:
            self.workspaces.discard(place)
        return run_of(_ended(attempt), read, None, on_base=False)

    def measure_disguised(self, which: Which, seed: str) -> AnyRun:
        """A tree once more in a run that looks another way, with other canaries."""
        place = self.place.with_name(f"{self.place.name}-{seed}")
        look = look_of(self.plan, self.gate.command, seed)
        files = files_of(tree_of(which, self.plan), self.compared.sides)
        texts = self.compared.known(files)
        planted = planted_in(which, self.plan, self.compared.sides, texts, seed)
        order = {f"{self.folder}/{look.plug_in}.py": ORDER} if look.plug_in else {}
        try:
            self.lay(which, {**order, **{it.path: it.text for it in planted}}, place)
            command = self.command(look=look)
            attempt = self.gates.attempt(command, self.run(which, place), self.cancelled)
            read = self.gates.read(attempt, self.gate.report)
        finally:
            self.workspaces.discard(place)
        return run_of(_ended(attempt), read, canaries_in(planted), on_base=False)

    def _watching(self, which: Which) -> dict[str, str]:
        """On base alone: what notes the files that tests open."""
        if which not in BASE_ALONE or not self.watch:
            return {}
        tests = files_of_tests(self.compared.sides.base, self.compared.rules.patterns)
        name = f"{self.folder}/{self.word}"
        return {
            f"{name}.py": self.watch,
            f"{name}.json": json.dumps({"nonce": self.word, "tests": tests}),
            f"{self.folder}/{START}": self.reporter or f"import {self.word}\n",
        }

    @property
    def word(self) -> str:
        """The name of the program that notes opened files."""
        return f"w{self.plan.nonce}"

    def lay(self, which: Which, planted: Mapping[str, str], place: Path) -> None:
        tree = tree_of(which, self.plan)
        ours, theirs = self.compared.base, self.it.candidate.commit
        blend = Blend(
            commit=theirs if tree.of_change else ours,
            other=ours if tree.of_change else theirs,
            mixed=tree.mixed,
            planted={**planted, **self._reporting()},
        )
        self.workspaces.discard(place)
        self.trees.blend(self.it.candidate, blend, place)
        of = (self.it.candidate, self.it.settings)
        self.workspaces.set_up(*of, place, own=tree.of_change)

    def _reporting(self) -> dict[str, str]:
        return {f"{self.folder}/{START}": self.reporter} if self.reporter else {}

    def command(
        self,
        told: Iterable[str] = (),
        timeout: int | None = None,
        look: Look = PLAIN,
        instead: str = "",
    ) -> CommandGate:
        """The gate's own, with what is planted first wherever it sets Python's path."""
        lines = [f'export {name}="{it}"' for name, it in self.plan.environment]
        lines = [*(_HIDDEN if self._hides_out else ()), *lines, *look.lines]
        command = self.gate.command
        if self.reporter or told or look.plug_in:
            lines = [f'PLANTED="$PWD/{self.folder}"', _FIRST, *lines, *told, _AT]
            command = instead or _PATHS.sub('PYTHONPATH="$PLANTED":', command)
        return CommandGate(
            name=self.gate.name,
            place=self.gate.place,
            command="\n".join((*lines, command)),
            attempts=1,
            timeout=timeout or self.gate.timeout,
            report=self.gate.report,
        )

    @property
    def _hides_out(self) -> bool:
        """Only the shell must know `$OUT`, if the command names it and nothing behind it."""
        behind = self.compared.rules.command.replace(self.gate.command, "")
        return bool(_OUT.search(self.gate.command)) and not _OUT.search(behind)

    @property
    def folder(self) -> str:
        """Where programs of ours lie in a tree."""
        return f".{self.plan.nonce}"

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
