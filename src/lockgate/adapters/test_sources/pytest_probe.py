"""Runs chosen tests with faults planted in the code, one after another, under pytest or unittest.

It is a program of its own: it is copied into a judged tree and loaded by that tree's Python, by
pytest as a plug-in, by unittest through what reports its tests. What to do stands in the JSON file
of its own name beside it; what it saw it leaves in $OUT as JUnit. Each fault has a process of its
own, forked after the runner has collected the tests.
"""

import gc
import json
import linecache
import os
import re
import select
import signal
import sys
import threading
import time
import types
import unittest
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, cast
from xml.sax.saxutils import quoteattr

BEGAN = time.monotonic()
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
AT = HERE / "at"  # says where reports go
OUT = AT.read_text("utf-8") if AT.is_file() else ""
TEXT = 240  # characters of what a failing test says
FEW = 5  # faults; with so many, those in functions that no test came by are left out
SHORTEST = 2.0  # seconds that one fault may take at least

Json = dict[str, Any]
Theirs = Any  # an object of pytest's, which the judged tree brings
Key = tuple[str, int]  # a file and the line where a function begins


class Said:
    """How the tests of one process ended: the first failure, and each test by its name."""

    def __init__(self) -> None:
        self.failure = ""
        self.green: dict[str, bool] = {}

    def pytest_runtest_logreport(self, report: Theirs) -> None:
        passed = report.passed or (report.skipped and not hasattr(report, "wasxfail"))
        known = self.green.get(report.nodeid, True)
        self.green[report.nodeid] = known and bool(passed)
        if report.failed and not self.failure:
            self.failure = _failure(report)


def pytest_configure(config: Theirs) -> None:
    """One process: xdist would share the tests out."""
    alone: Json = {"dist": "no", "numprocesses": None, "tx": []}
    for name, value in alone.items():
        if hasattr(config.option, name):
            setattr(config.option, name, value)


def pytest_collection_finish(session: Theirs) -> None:
    items: dict[str, Theirs] = {it.nodeid: it for it in session.items}
    names = {id: _name(it) for id, it in items.items()}

    def play(ids: list[str], *, until_failure: bool) -> Said:
        return _with_pytest(session.config, [items[it] for it in ids], until_failure=until_failure)

    _measure(names, play)


def measure_cases(suite: Theirs) -> None:
    """All cases of a suite of unittest's."""
    cases: dict[str, Theirs] = {str(it.id()): it for it in _cases(suite)}
    names = {id: _case_name(it) for id, it in cases.items()}

    def play(ids: list[str], *, until_failure: bool) -> Said:
        return _with_unittest([cases[it] for it in ids], until_failure=until_failure)

    _measure(names, play)


class Play(Protocol):
    def __call__(self, ids: list[str], *, until_failure: bool) -> Said: ...


def _measure(names: dict[str, str], play: Play) -> None:
    plan: Json = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
    try:
        lines = list(Probe(names, play, plan).lines())
    except Exception as error:  # noqa: BLE001 - whatever it is, nothing was measured
        lines = [_line(plan, "trouble", "error", repr(error))]
    _leave(plan, lines)
    sys.stdout.flush()
    os._exit(0)


class Probe:
    def __init__(self, names: dict[str, str], play: Play, plan: Json) -> None:
        self.names = names
        self.play = play
        self.plan = plan
        self.ran: dict[Key, list[str]] = {}  # which tests run a function
        self.found: dict[Key, list[types.FunctionType]] = {}
        self.each = bool(plan.get("each"))  # whether every test that notices a fault is named
        self.noticing: list[str] = []  # those of the last fault, by name

    @property
    def deadline(self) -> float:
        """Time for which a busy machine left it without a processor does not count, to a point."""
        seconds = float(self.plan["seconds"])
        return BEGAN + seconds + min(seconds, sum(_lost) + _waited("self"))

    def lines(self) -> Iterator[str]:
        wanted = set(self.plan["tests"])
        direct = [id for id, name in self.names.items() if name in wanted]
        seen = self._traced(list(self.names) if self.plan["support"] else direct)
        if seen is None:
            yield _line(self.plan, "trouble", "error", "the tests do not end in time")
            return
        chosen = list(dict.fromkeys((*direct, *self._supported(seen))))
        chosen = [id for id in chosen if seen[id]["green"]]
        for id in chosen:
            yield _line(self.plan, f"test {self.names[id]}", "passed", "")
        self._learn(chosen, seen)
        yield from self._measured(chosen)

    def _traced(self, ids: list[str]) -> dict[str, Json] | None:
        """Which functions of the tree each test runs, and which files it opens."""

        def traced() -> Json:
            return {id: self._trace(id) for id in ids}

        answer = _apart(traced, self.deadline - time.monotonic())
        return cast("dict[str, Json] | None", answer)

    def _trace(self, id: str) -> Json:
        functions: set[Key] = set()
        files: set[str] = set()
        _watched.append(files)

        def profile(frame: types.FrameType, event: str, _arg: object) -> None:
            if event == "call":
                functions.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

        started = time.monotonic()
        threading.setprofile(profile)
        sys.setprofile(profile)
        try:
            said = self.play([id], until_failure=False)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            _watched.pop()
        own: set[Key] = {(_local(file), line) for file, line in functions}
        return {
            "green": said.green.get(id, False),
            "functions": sorted(it for it in own if it[0]),
            "files": sorted({_local(it) for it in files} - {""}),
            "seconds": time.monotonic() - started,
        }

    def _supported(self, seen: dict[str, Json]) -> list[str]:
        """Tests that use one of the files beside tests; all, where it is not known who will."""
        found: list[str] = []
        for path in self.plan["support"]:
            wide = path.endswith("conftest.py")
            users = [] if wide else [id for id, it in seen.items() if _uses(it, path)]
            found += users or list(seen)
        return found

    def _learn(self, chosen: list[str], seen: dict[str, Json]) -> None:
        for id in sorted(chosen, key=lambda it: float(seen[it]["seconds"])):
            for path, line in seen[id]["functions"]:
                self.ran.setdefault((path, line), []).append(id)
        for it in gc.get_objects():
            if isinstance(it, types.FunctionType):
                key = (_local(it.__code__.co_filename), it.__code__.co_firstlineno)
                if key[0]:
                    self.found.setdefault(key, []).append(it)

    def _measured(self, chosen: list[str]) -> Iterator[str]:
        """Faults where a chosen test comes by; then the others, which a program may show.

        On the change the others are first: base's tests notice them in code that its own leave out.
        """
        faults: list[Json] = self.plan["faults"]
        numbered = list(enumerate(faults))
        known = [it for it in numbered if _key(it[1]) in self.ran]
        rest = [it for it in numbered if _key(it[1]) not in self.ran]
        on_base = self.plan["side"] == "base"
        counted = 0
        for number, fault in (*known, *rest) if on_base else (*rest, *known):
            if time.monotonic() > self.deadline or counted >= int(self.plan["enough"]):
                return
            if on_base and counted >= FEW and _key(fault) not in self.ran:
                break
            outcome, message = self._twice(fault, self.ran.get(_key(fault), chosen))
            wanted = "failed" if on_base else "passed"
            counted += int(outcome == wanted and not fault["neutral"])
            yield _line(self.plan, str(number), outcome, message)
            for name in self.noticing if outcome == "failed" else ():
                yield _line(self.plan, f"{number} by {name}", "passed", "")
        yield _line(self.plan, "all", "passed", "")

    def _twice(self, fault: Json, ids: list[str]) -> tuple[str, str]:
        """What the question turns on must happen twice: the change does not notice a fault.

        That base does is tried again in another run, for those that the change does not.
        """
        if fault.get("known"):  # from an earlier run of the same tests on the same code
            outcome, message, *self.noticing = fault["known"]
            return outcome, message
        seen = self._once(fault, ids)
        if seen is None:
            return "skipped", "it did not end in time, or could not be planted"
        on_base = self.plan["side"] == "base"
        doubted = not on_base and (bool(seen) if fault["neutral"] else not seen)
        again = self._once(fault, ids) if doubted else seen
        if again is None or bool(again) != bool(seen):
            return "skipped", "two runs differ"
        return ("failed", seen) if seen else ("passed", "")

    def _once(self, fault: Json, ids: list[str]) -> str | None:
        path = ROOT / str(fault["path"])
        before = path.read_bytes()
        text = _edited(before, fault)
        codes = _compiled(text, path, self.found.get(_key(fault), []))
        if codes is None:
            return None

        def tried() -> Json:
            for function, code in codes:
                function.__code__ = code
            said = self.play(ids, until_failure=not self.each)
            red = [id for id, green in said.green.items() if not green]
            return {"failure": said.failure, "red": red}

        limit = min(max(SHORTEST, self._limit()), self.deadline + SHORTEST - time.monotonic())
        written = _written(path, text)
        try:
            answer = _apart(tried, limit)
        finally:
            if written:
                _written(path, before)
        red: list[str] = answer["red"] if answer and self.each else []
        self.noticing = sorted({self.names[it] for it in red if it in self.names})
        return None if answer is None else str(answer["failure"])

    def _limit(self) -> float:
        return float(self.plan["seconds"]) / 4


def _with_pytest(config: Theirs, items: list[Theirs], *, until_failure: bool) -> Said:
    said = Said()
    config.pluginmanager.register(said)
    for item in items:
        config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        if until_failure and said.failure:
            break
    config.pluginmanager.unregister(said)
    return said


def _with_unittest(cases: list[Theirs], *, until_failure: bool) -> Said:
    said = Said()
    for case in cases:
        result = unittest.TestResult()
        unittest.TestSuite([case])(result)
        bad = [*result.failures, *result.errors]
        said.green[str(case.id())] = not bad
        if bad and not said.failure:
            said.failure = f"{case.id()} | {_noticing(case, bad[0][1])}"[:TEXT]
        if until_failure and said.failure:
            break
    return said


def _cases(suite: Theirs) -> Iterator[Theirs]:
    if isinstance(suite, unittest.TestCase):
        yield suite
        return
    for it in suite:
        yield from _cases(it)


def _case_name(case: Theirs) -> str:
    """Its file and the names it stands in."""
    module = sys.modules.get(type(case).__module__)
    file = _local(str(getattr(module, "__file__", "")))
    return "::".join((file, *type(case).__qualname__.split("."), str(case.id()).rpartition(".")[2]))


def _noticing(case: Theirs, told: str) -> str:
    """The line of the test in a traceback, else its end."""
    file = str(getattr(sys.modules.get(type(case).__module__), "__file__", ""))
    own = re.search(rf'File "{re.escape(file)}", line \d+.*\n\s*(.+)', told)
    return own[1].strip() if own else told.strip().rpartition("\n")[2]


_watched: list[set[str]] = []


def _opened(event: str, args: tuple[Any, ...]) -> None:
    if event == "open" and _watched and isinstance(args[0], str | bytes):
        _watched[-1].add(str(Path(os.fsdecode(args[0])).absolute()))


sys.addaudithook(_opened)


def _apart(work: Callable[[], Json], seconds: float) -> Json | None:
    """What it comes to in a process of its own; None where that takes too long or dies."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # threads of the tests' own
        child = os.fork()
    if child == 0:
        os.close(reading)
        _child(work, writing)
    os.close(writing)
    try:
        said = _read(reading, time.monotonic() + seconds)
    finally:
        os.close(reading)
        _lost.append(_waited(str(child)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    try:
        answer = json.loads(said)
    except ValueError:
        return None
    return cast("Json", answer) if isinstance(answer, dict) else None


_lost: list[float] = []  # of each process that has ended


def _waited(process: str) -> float:
    """Seconds for which it was ready to run and had no processor; 0 where that is not told."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text("utf-8").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _child(work: Callable[[], Json], writing: int) -> None:
    try:
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        answer = json.dumps(work()).encode()
        while answer:
            answer = answer[os.write(writing, answer) :]
    finally:
        os._exit(0)


def _read(descriptor: int, deadline: float) -> bytes:
    """All of it, or what came before the deadline."""
    parts: list[bytes] = []
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            return b""
        part = os.read(descriptor, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _compiled(
    text: bytes, path: Path, functions: list[types.FunctionType]
) -> list[tuple[types.FunctionType, types.CodeType]] | None:
    """Each loaded function with its new code; None where the text is no Python."""
    try:
        module = compile(text, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    known = {(it.co_firstlineno, it.co_name): it for it in _codes(module)}
    pairs = [(it, known.get((it.__code__.co_firstlineno, it.__code__.co_name))) for it in functions]
    return [(it, code) for it, code in pairs if code and _fits(it, code)]


def _fits(function: types.FunctionType, code: types.CodeType) -> bool:
    return len(code.co_freevars) == len(function.__code__.co_freevars)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for it in code.co_consts:
        if isinstance(it, types.CodeType):
            yield from _codes(it)


def _edited(before: bytes, fault: Json) -> bytes:
    line, column, end_line, end_column = (int(it) for it in fault["span"])
    lines = before.split(b"\n")
    head, tail = lines[line - 1][:column], lines[end_line - 1][end_column:]
    lines[line - 1 : end_line] = [head + str(fault["new"]).encode() + tail]
    return b"\n".join(lines)


def _written(path: Path, text: bytes) -> bool:
    """For programs that a test starts, and for what is loaded later."""
    try:
        path.write_bytes(text)
    except OSError:
        return False
    return True


def _uses(seen: Json, path: str) -> bool:
    return path in seen["files"] or any(path == it[0] for it in seen["functions"])


def _key(fault: Json) -> Key:
    return str(fault["path"]), int(fault["starts"])


def _name(item: Theirs) -> str:
    """Its file and the names it stands in, without parameters."""
    names: list[str] = []
    node = item
    while node is not None and hasattr(node, "obj") and not isinstance(node.obj, types.ModuleType):
        names.insert(0, str(getattr(node, "originalname", None) or node.name))
        node = node.parent
    return "::".join((_local(str(item.path)), *names))


_places: dict[str, str] = {}


def _local(path: str) -> str:
    """Its place in the tree; empty for what is elsewhere."""
    if path not in _places:
        real = Path(path).resolve()
        inside = real.is_relative_to(ROOT) and not real.is_relative_to(HERE)
        _places[path] = str(real.relative_to(ROOT)) if inside else ""
    return _places[path]


def _failure(report: Theirs) -> str:
    """The line of the test that noticed it, else what it said."""
    traceback = getattr(report.longrepr, "reprtraceback", None)
    file = ROOT / str(report.location[0])
    places = [getattr(it, "reprfileloc", None) for it in getattr(traceback, "reprentries", ())]
    own = [it.lineno for it in places if it and str(it.path).endswith(file.name)]
    line = linecache.getline(str(file), own[0]).strip() if own else ""
    crash = getattr(report.longrepr, "reprcrash", None)
    said = line or (str(crash.message) if crash else str(report.longrepr))
    return f"{report.nodeid} | {' '.join(said.split())}"[:TEXT]


def _line(plan: Json, name: str, outcome: str, message: str) -> str:
    inner = "" if outcome == "passed" else f"<{_TAGS[outcome]} message={quoteattr(message)}/>"
    return (
        f"<testcase classname={quoteattr(plan['nonce'])} name={quoteattr(name)}>{inner}</testcase>"
    )


_TAGS = {"failed": "failure", "error": "error", "skipped": "skipped"}


def _leave(plan: Json, lines: Iterable[str]) -> None:
    text = f"<testsuite name={quoteattr(plan['nonce'])}>{''.join(lines)}</testsuite>"
    (Path(OUT) / f"{plan['nonce']}.xml").write_text(text, "utf-8")
