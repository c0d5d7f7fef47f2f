"""JUnit XML, as a stream: no tree, no DTD, no entity, nothing that grows with nesting."""

import html
from collections.abc import Iterator, Mapping
from xml.parsers import expat

from msgspec import Struct, field

from lockgate.adapters.reports.text import failures, located, number, one_line, place_in, test_id
from lockgate.core.model.findings import Location
from lockgate.core.model.gates import Report
from lockgate.core.model.results import FAILING, Outcome, ReportRead, TestResult, merged

ROOTS = frozenset({"testsuites", "testsuite"})
ENCODINGS = frozenset(
    {"utf-8", "utf8", "utf-16", "us-ascii", "ascii", "iso-8859-1", "latin-1", "windows-1252"}
)
CHUNK = 1_000_000
TAG = 2_000_000  # bytes that one tag may have
DEPTH = 100
ELEMENTS = 3_000_000
TESTS = 500_000
STRANGE = 20_000  # elements that JUnit does not have
BODY = 16_000
_SAYS = {"failure": Outcome.FAILED, "error": Outcome.ERROR, "skipped": Outcome.SKIPPED}
_KNOWN = frozenset(
    {*ROOTS, *_SAYS, "testcase", "properties", "property", "system-out", "system-err"}
)
_NODES = frozenset({"test", "suite"})  # all that node says as the class of any case
_EXPECTED_TO_FAIL = frozenset({"pytest.xfail", "todo"})


class _NotJUnit(Exception):
    """Another kind of XML."""


class _Refused(Exception):
    """A file that no test runner writes."""


class _Case(Struct):
    """A test case, or a suite that failed as a whole, while its element is open."""

    attributes: Mapping[str, str]
    outcome: Outcome = Outcome.PASSED
    message: str = ""
    kind: str = ""
    body: str = ""


class _State(Struct):
    root: str
    tests: list[TestResult] = field(default_factory=list[TestResult])
    open: list[str] = field(default_factory=list[str])
    suites: list[str] = field(default_factory=list[str])
    case: _Case | None = None
    listening: bool = False
    strange: int = 0
    announced: int = 0
    begun: bool = False
    dtd: bool = False


def read(data: bytes, root: str) -> ReportRead | None:
    """None for XML of another kind; cut off or refused XML gives what came before."""
    state = _State(root)
    try:
        _parse(data, state)
    except _NotJUnit:
        return None
    except (expat.ExpatError, _Refused, LookupError, ValueError):
        return _report(state, complete=False)
    failing = any(test.outcome in FAILING for test in state.tests)
    return _report(state, complete=failing or not state.announced)


def _report(state: _State, *, complete: bool) -> ReportRead:
    tests = merged(state.tests)
    return ReportRead(format=Report.JUNIT, findings=failures(tests), tests=tests, complete=complete)


def _parse(data: bytes, state: _State) -> None:
    if data.count(b"<") > ELEMENTS or data.count(b"<testcase") > TESTS:
        raise _Refused
    parser = _parser(state)
    for at, chunk in _chunks(data):
        parser.Parse(chunk, False)  # noqa: FBT003 - the C function takes no keywords
        if at + len(chunk) - parser.CurrentByteIndex > TAG:
            raise _Refused
    parser.Parse(b"", True)  # noqa: FBT003 - the C function takes no keywords


def _parser(state: _State) -> expat.XMLParserType:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.XmlDeclHandler = _declared
    parser.EntityDeclHandler = _entity

    def doctype(name: str, system: str | None, public: str | None, internal: int) -> None:
        state.dtd = True

    def started(name: str, attributes: dict[str, str]) -> None:
        _started(state, name, attributes)
        parser.CharacterDataHandler = heard if state.listening else None

    def ended(name: str) -> None:
        _ended(state)
        parser.CharacterDataHandler = None

    def heard(text: str) -> None:
        if state.case and len(state.case.body) < BODY:
            state.case.body += text[:BODY]

    parser.StartDoctypeDeclHandler = doctype
    parser.StartElementHandler = started
    parser.EndElementHandler = ended
    return parser


def _chunks(data: bytes) -> Iterator[tuple[int, bytes]]:
    for at in range(0, len(data), CHUNK):
        yield at, data[at : at + CHUNK]


def _declared(version: str, encoding: str | None, standalone: int) -> None:
    if encoding and encoding.lower() not in ENCODINGS:
        raise _Refused


def _entity(*_: object) -> None:
    raise _Refused


def _started(state: _State, name: str, attributes: dict[str, str]) -> None:
    if not state.begun:
        _begin(state, name, attributes)
    state.open.append(name)
    state.strange += name not in _KNOWN
    if len(state.open) > DEPTH or state.strange > STRANGE:
        raise _Refused
    state.listening = False
    if name == "testsuite":
        state.suites.append(attributes.get("name", ""))
    elif name == "testcase":
        if state.case or "name" not in attributes:
            raise _Refused
        state.case = _Case(attributes)
    elif name in _SAYS:
        _said(state, name, attributes)


def _begin(state: _State, name: str, attributes: dict[str, str]) -> None:
    """The root element decides; the name in a DTD need not be the root's."""
    if name.rpartition(":")[2] not in ROOTS:
        raise _NotJUnit
    if state.dtd or name not in ROOTS:
        raise _Refused
    state.begun = True
    totals = (number(attributes.get(it)) or 0 for it in ("failures", "errors"))
    state.announced = sum(totals)


def _said(state: _State, name: str, attributes: dict[str, str]) -> None:
    """A failure outweighs a skip, and what stands outside of any case is the suite's."""
    if state.case is None:
        if name == "skipped":
            return
        suite = state.suites[-1] if state.suites else ""
        state.case = _Case({"name": suite or "(suite)"})
    case = state.case
    expected = _EXPECTED_TO_FAIL & {attributes.get("type", ""), case.kind}
    outcome = Outcome.XFAILED if expected else _SAYS[name]
    if case.outcome is Outcome.ERROR or (case.outcome in FAILING and name == "skipped"):
        return
    case.outcome = outcome
    case.message = attributes.get("message", "")
    case.kind = attributes.get("type", "") if name == "skipped" else case.kind
    case.body = ""
    state.listening = True


def _ended(state: _State) -> None:
    ended = state.open.pop()
    within_case = "testcase" in state.open
    if state.case and not within_case:
        state.tests.append(_result(state.case, state))
        state.case = None
    if ended == "testsuite":
        state.suites.pop()


def _result(case: _Case, state: _State) -> TestResult:
    return TestResult(
        id=_id(case.attributes, state),
        outcome=case.outcome,
        location=_place(case, state.root),
        message=one_line(_why(case)),
    )


def _id(given: Mapping[str, str], state: _State) -> str:
    """Node's class says nothing, so its suites stand there; it escapes their names twice."""
    file = located(given["file"], state.root) if "file" in given else None
    place, suite, name = file.file if file else "", given.get("classname", ""), given["name"]
    if suite not in _NODES:
        return test_id(place, suite, name)
    return test_id(place, suite, *(html.unescape(it) for it in (*state.suites, name)))


def _why(case: _Case) -> str:
    """Gotestsum's message is always the same; what the test logged is not."""
    if case.message not in {"", "Failed"}:
        return case.message
    said = (line for line in case.body.split("\n") if not line.lstrip().startswith(("===", "---")))
    return "\n".join(said)


def _place(case: _Case, root: str) -> Location | None:
    """Where it failed by its own words, else where the runner says that it stands."""
    failed = place_in(case.body, root) if case.outcome in FAILING else None
    given = case.attributes
    if failed or "file" not in given:
        return failed
    return located(given["file"], root, number(given.get("line")))
