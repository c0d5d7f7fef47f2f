"""Measures whether changed tests notice as much as base's: faults planted, both versions run."""

import json
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.core.differential.faults import Fault, drawn, equal_functions, faults_in
from lockgate.core.differential.plan import (
    Which,
    canary_directory,
    files_of,
    nonce_of,
    tree_of,
)
from lockgate.core.differential.script_faults import equal_lines, script_faults_in
from lockgate.core.differential.strength import (
    EXAMPLES,
    MOST,
    BaseSeen,
    Known,
    Side,
    Strength,
    Subject,
    base_seen,
    confirmed,
    known_of,
    loading,
    measured_on,
    strength_of,
    subject_of,
    weighed,
    worth,
)
from lockgate.core.differential.table import Tests
from lockgate.core.differential.test_files import (
    SCRIPTED,
    SCRIPTS,
    Runner,
    files_of_tests,
    harness_files,
)
from lockgate.core.differential.verdict import Asked, Kept, Verdict
from lockgate.core.model.results import ReportRead, Unreadable
from lockgate.ports import Chance
from lockgate.ports.differential import Measurements, TestSources
from lockgate.services.gates.comparing import Bench
from lockgate.services.gates.runner import measured_as

CONFTEST = "conftest.py"
ENDINGS = tuple(f".{it}" for it in SCRIPTS)
KNOWN = "faults"  # in a key: what base's tests notice
BUSY = 2  # times as long as asked, where other programs have the processor
GRACE = 20  # seconds to start and to end, beyond what is measured


class Weighed(Struct, frozen=True):
    verdict: Verdict
    said: str = ""  # for the proof


class Order(Struct, frozen=True, kw_only=True):
    """What one run is to try, for the plug-in."""

    nonce: str
    tests: tuple[str, ...]
    support: tuple[str, ...]
    faults: tuple[Fault, ...]
    seconds: float
    side: str
    enough: int
    command: str = ""  # what a script's program runs
    each: bool = False  # every test that notices a fault is named
    known: Known = field(default_factory=dict[str, tuple[str, ...]])

    @property
    def text(self) -> str:
        faults = [{**_as_json(it), "known": self.known.get(it.mark)} for it in self.faults]
        return json.dumps(
            {
                "nonce": self.nonce,
                "tests": self.tests,
                "support": self.support,
                "faults": faults,
                "seconds": self.seconds,
                "side": self.side,
                "enough": self.enough,
                "command": self.command,
                "each": self.each,
            }
        )


class Ratchet(Struct, frozen=True):
    sources: TestSources
    chance: Chance
    measurements: Measurements

    def weighed(self, bench: Bench, verdict: Verdict) -> Weighed:
        seconds = bench.it.settings.differential.strength_seconds
        if not seconds or not isinstance(verdict, Kept | Asked):
            return Weighed(verdict)
        subject = self._subject(bench, verdict)
        if subject is None or not (subject.before or subject.support):
            return Weighed(verdict)
        seed = nonce_of(self.chance.token())
        strength = self._strength(bench, subject, seed)
        said = f"{strength.words} (seed {seed})"
        return Weighed(weighed(verdict, subject, strength, seed), said)

    def _subject(self, bench: Bench, verdict: Kept | Asked) -> Subject | None:
        compared = bench.compared
        known = (compared.known(compared.sides.base), compared.known(compared.sides.candidate))
        tests = (worth(compared.base_tests, verdict.rows), compared.candidate_tests)
        every = (*compared.base_tests, *compared.candidate_tests)
        files = {it.file for it in every}
        base, change = (
            self._side(own, texts, files, compared.changed.tests)
            for own, texts in zip(tests, known, strict=True)
        )
        return subject_of(base, change, compared.changed)

    def _side(
        self, tests: Tests, texts: Mapping[str, str], files: Iterable[str], changed: Sequence[str]
    ) -> Side:
        with_tests = frozenset(files)
        others = {it: texts[it] for it in changed if it in texts and it not in with_tests}
        return Side(
            tests=tests,
            beside=self.sources.beside(
                {it: texts[it] for it in changed if it in texts and it in with_tests}
            ),
            others=others,
            used=self.sources.beside(others),
        )

    def _strength(self, bench: Bench, subject: Subject, seed: str) -> Strength:
        probe = self.sources.probe(bench.plan.runner)
        if not probe:
            runner = bench.plan.runner or "this test command"
            return Strength(why=f"there are no planted faults for {runner}")
        faults = _faults(bench, seed)
        whole = float(bench.it.settings.differential.strength_seconds)
        first = Order(
            nonce=seed,
            tests=subject.before,
            support=subject.support,
            faults=faults,
            seconds=whole / 2,
            side="base",
            enough=MOST,
            command=bench.gate.command,
            each=bool(subject.support),
        )
        on_base = self._on_base(bench, subject, first, probe)
        base = base_seen(faults, seed, on_base.read, on_base.why)
        if not base.noticed:
            return strength_of(base, seed, Unreadable("nothing to try"))
        left = max(whole / 2, whole - on_base.seconds)
        on_change = _on_change(bench, subject, base, replace(first, seconds=left), probe)
        found = strength_of(base, seed, on_change.read)
        if not found.missed:
            return found
        missed = tuple(it.fault for it in found.missed)
        again = _tried(bench, Which.OF_BASE, replace(first, faults=missed), probe)
        return confirmed(found, base_seen(missed, seed, again.read, again.why))

    def _on_base(self, bench: Bench, subject: Subject, order: Order, probe: str) -> "Tried":
        """Which faults is drawn each time; one that is known from an earlier time is not run."""
        files = files_of(tree_of(Which.OF_BASE, bench.plan), bench.compared.sides)
        tree = measured_on(files, subject)
        key = measured_as(bench.it, tree, bench.gate.command, KNOWN)
        known = self.measurements.find_known(key)
        tried = _tried(bench, Which.OF_BASE, replace(order, known=known), probe)
        found = known_of(order.faults, order.nonce, tried.read)
        if found.keys() - known.keys():
            self.measurements.keep_known(key, {**known, **found})
        return tried


class Tried(Struct, frozen=True):
    read: ReportRead | Unreadable
    why: str
    seconds: float


def _on_change(bench: Bench, subject: Subject, base: BaseSeen, first: Order, probe: str) -> Tried:
    order = Order(
        nonce=first.nonce,
        tests=tuple(dict.fromkeys((*subject.after, *base.tests))),
        support=(),
        faults=base.faults,
        seconds=first.seconds,
        side="change",
        enough=EXAMPLES,
        command=first.command,
        each=first.each,
    )
    return _tried(bench, Which.CHANGE, order, probe)


def _tried(bench: Bench, which: Which, order: Order, probe: str) -> Tried:
    """One run of the test command with the plug-in, in a place of its own."""
    name = f"x{order.nonce}"
    place = bench.place.with_name(f"{bench.place.name}-strength-{order.side}")
    timeout = min(bench.gate.timeout, BUSY * int(order.seconds) + GRACE)
    support = _loaded(bench, which, name)
    scripted = bench.plan.runner in SCRIPTED
    planted = {
        f"{bench.folder}/{name}.{'mjs' if scripted else 'py'}": probe,
        f"{bench.folder}/{name}.json": order.text,
        **support,
    }
    try:
        bench.lay(which, planted, place)
        told = _told(bench, name, by_option=not support)
        instead = f'node "$PLANTED/{name}.mjs"' if scripted else ""
        command = bench.command(told, timeout, instead=instead)
        attempt = bench.gates.attempt(command, bench.run(which, place), bench.cancelled)
        read = bench.gates.read(attempt, None)
    finally:
        bench.workspaces.discard(place)
    return Tried(read, attempt.why, attempt.seconds)


def _loaded(bench: Bench, which: Which, name: str) -> dict[str, str]:
    """The conftest.py beside the tests, which loads the program whatever the command is."""
    files = files_of(tree_of(which, bench.plan), bench.compared.sides)
    tests = files_of_tests(files, bench.compared.rules.patterns)
    folder = canary_directory(tests, Runner.PYTEST)
    path = f"{folder}/{CONFTEST}" if folder else CONFTEST
    text = bench.compared.known(files).get(path, "")
    if bench.plan.runner is not Runner.PYTEST or folder is None or (path in files and not text):
        return {}
    return {path: f"{text}\n\n{loading(bench.folder, path.count('/'), name)}"}


def _told(bench: Bench, name: str, *, by_option: bool) -> tuple[str, ...]:
    options = dict(bench.plan.environment).get("PYTEST_ADDOPTS", "")
    plug_in = (f'export PYTEST_ADDOPTS="{options} -p {name}"',) if by_option else ()
    return (f"export UNITTEST_PROBE={name}", *plug_in)


def _faults(bench: Bench, seed: str) -> tuple[Fault, ...]:
    """In code of the change that base has too, then in the rest of it."""
    compared, it = bench.compared, bench.it
    patterns = it.settings.test_paths
    sides = (compared.sides.base, compared.sides.candidate)
    endings = ENDINGS if bench.plan.runner in SCRIPTED else (".py",)
    code = [_code(side, patterns, endings) for side in sides]
    wanted = dict.fromkeys(blob for side in code for blob in side.values())
    texts = bench.trees.texts(it.project, tuple(wanted))
    base, change = ({path: texts[it] for path, it in side.items() if it in texts} for side in code)
    scripted = bench.plan.runner in SCRIPTED
    equal = equal_lines(base) if scripted else equal_functions(base)
    faults = script_faults_in if scripted else faults_in

    def of(*, edited: bool) -> tuple[Fault, ...]:
        every = change.items()
        found = (it for path, text in every for it in faults(path, text, equal, edited=edited))
        return drawn(found, seed)

    return (*of(edited=False), *of(edited=True))


def _code(
    files: Mapping[str, str], patterns: tuple[str, ...], endings: tuple[str, ...]
) -> dict[str, str]:
    """Neither tests nor what decides how they are run."""
    others = frozenset((*files_of_tests(files, patterns), *harness_files(files)))
    return {it: blob for it, blob in files.items() if it.endswith(endings) and it not in others}


def _as_json(it: Fault) -> dict[str, object]:
    span = it.span
    return {
        "path": it.path,
        "starts": it.starts,
        "span": (span.line, span.column, span.end_line, span.end_column),
        "new": it.new,
        "neutral": it.neutral,
    }
