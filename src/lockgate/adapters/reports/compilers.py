"""What type checkers, linters and compilers print, down to any `file:line: text`."""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from lockgate.adapters.reports.text import located, number, one_line
from lockgate.core.model.findings import Finding, Priority
from lockgate.core.model.gates import Report
from lockgate.core.model.results import ReportRead

P1, P2, P3 = Priority.P1_MAJOR, Priority.P2_MINOR, Priority.P3_SUGGESTION
WORDS = {"error": P1, "warning": P2, "note": P3, "information": P3}

JSON_LINE = 100_000
_MYPY_END = re.compile(
    r"Success: no issues found in \d+ "
    r"|Found \d+ errors? in \d+ files? \((?:checked|errors prevented) "
)
_MYPY = re.compile(
    r"([^\s:][^:]{0,300}):(\d{1,9})(?::(\d{1,9}))?(?::\d+:\d+)?: (error|warning|note): (.*)\Z"
)
_PYRIGHT_END = re.compile(r"\d+ errors?, \d+ warnings?, \d+ informations?\b")
_PYRIGHT = re.compile(
    r"  (\S[^:]{0,300}):(\d{1,9}):(\d{1,9}) - (error|warning|information): (.*)\Z"
)
_TSC = re.compile(
    r"(?:([^\s(:][^(:]{0,300})(?:\((\d{1,9}),(\d{1,9})\)|:(\d{1,9}):(\d{1,9}))(?:: | - ))?"
    r"(error|warning) (TS\d{1,6}: .*)\Z"
)
_RUFF_END = re.compile(r"(?:Found \d+ errors?(?: \(.*\))?\.|All checks passed!)\Z")
_RUFF = re.compile(
    r"(\S[^:]{0,300}):(\d{1,9}):(\d{1,9}): ([A-Z]{1,5}\d{3,4}|invalid-syntax|SyntaxError):? (.*)\Z"
)
_RUFF_FULL = re.compile(r"([A-Z]{1,5}\d{3,4}|invalid-syntax):? (?:\[\*\] )?(\S.*)\Z")
_RUFF_PLACE = re.compile(r" *--> (\S[^:]{0,300}):(\d{1,9}):(\d{1,9})\Z")
_ESLINT_END = re.compile(r"[✖x] \d+ problems? \(\d+ errors?, \d+ warnings?\)|\d+ problems?\Z")
_ESLINT_LINE = re.compile(  # its forms `compact` and `unix`
    r"([^\s:][^:]{0,1000})(?::(\d{1,9}):(\d{1,9}): (.*) \[(Error|Warning)(?:/(.*))?\]"
    r"|: line (\d{1,9}), col (\d{1,9}), (Error|Warning) - (.*?)(?: \((\S+)\))?)\Z"
)
_ESLINT = re.compile(r" +(\d{1,9}):(\d{1,9}) +(error|warning) +(\S.*)\Z")
_GENERIC = re.compile(
    r"\s{0,8}((?:[\w@+.\-/]{0,300}\.[A-Za-z]\w{0,9})|(?:[\w@+.\-/]{0,300}/)?(?:Make|Docker)file)"
    r":(\d{1,9})(?::(\d{1,9}))?:? +(?:- +)?(\S.*)\Z"
)
_GENERIC_WORD = re.compile(r"(?:fatal )?(error|warning|note|info|hint)\b", re.IGNORECASE)


def read_mypy(lines: Sequence[str], root: str) -> ReportRead | None:
    """Mypy's and pyright's text; nothing where neither has said how it ended."""
    told = [*_mypy_json(lines, root)]
    if not told and not any(_MYPY_END.match(it) or _PYRIGHT_END.match(it) for it in lines):
        return None
    found = [*_mypy(_unwrapped(lines), root), *_pyright(lines, root), *told]
    return ReportRead(format=Report.MYPY, findings=tuple(found))


def read_tsc(lines: Sequence[str], root: str) -> ReportRead | None:
    found = [
        Finding(
            WORDS[it[6]],
            one_line(it[7]),
            located(it[1] or "", root, number(it[2] or it[4]), number(it[3] or it[5])),
        )
        for line in lines
        if (it := _TSC.match(line))
    ]
    return ReportRead(format=Report.TSC, findings=tuple(found)) if found else None


def read_ruff(lines: Sequence[str], root: str) -> ReportRead | None:
    if not any(_RUFF_END.match(line) for line in lines):
        return None
    found = [*_ruff_concise(lines, root), *_ruff_full(lines, root)]
    return ReportRead(format=Report.RUFF, findings=tuple(found))


def read_eslint(lines: Sequence[str], root: str) -> ReportRead | None:
    """The stylish form: a file's name, then its complaints."""
    if not any(_ESLINT_END.match(line) for line in lines):
        return None
    found: list[Finding] = []
    file = ""
    for line in lines:
        found.extend(_eslint_line(line, root))
        match = _ESLINT.match(line)
        if match:
            said, _, rule = match[4].rstrip().rpartition("  ")
            issue = f"{one_line(said)} ({one_line(rule, 100)})" if said else one_line(rule)
            place = located(file, root, number(match[1]), number(match[2]))
            priority = P2 if match[3] == "error" else P3
            found.append(Finding(P1 if "Parsing error" in issue else priority, issue, place))
        elif line and not line.startswith(" "):
            file = line
    plain = any(line.startswith(("✖", "x ")) for line in lines)
    return ReportRead(format=Report.ESLINT, findings=tuple(found)) if found or plain else None


def _eslint_line(line: str, root: str) -> Iterator[Finding]:
    match = _ESLINT_LINE.match(line)
    if match is None:
        return
    row, column, said, word, rule = (
        (match[2], match[3], match[4], match[5], match[6])
        if match[2]
        else (match[7], match[8], match[10], match[9], match[11])
    )
    issue = f"{one_line(said)} ({one_line(rule, 100)})" if rule else one_line(said)
    priority = P2 if word == "Error" else P3
    place = located(match[1], root, number(row), number(column))
    yield Finding(P1 if "Parsing error" in issue else priority, issue, place)


def read_any(lines: Sequence[str], root: str, *, may_block: bool) -> ReportRead:
    """Prose is never cut off, and never proves anything."""
    worst = P1 if may_block else P2
    found = [
        Finding(max(worst, _spoken(it[4])), one_line(it[4]), place)
        for line in lines
        if (it := _GENERIC.match(line))
        and (place := located(it[1], root, number(it[2]), number(it[3])))
    ]
    return ReportRead(format=Report.GENERIC, findings=tuple(found))


def _spoken(said: str) -> Priority:
    word = _GENERIC_WORD.match(said)
    if word is None:
        return P2
    return WORDS.get(word[1].lower(), P3)


def _unwrapped(lines: Iterable[str]) -> Iterator[str]:
    """The lines that `--pretty` breaks, whole again; the code that it shows stays apart."""
    waiting = ""
    for line in lines:
        goes_on = waiting and line and not line.startswith(" ") and not _MYPY.match(line)
        if goes_on and not _MYPY_END.match(line):
            waiting = f"{waiting} {line}"
            continue
        if waiting:
            yield waiting
        waiting = line if _MYPY.match(line) and not line.endswith("]") else ""
        if not waiting:
            yield line
    if waiting:
        yield waiting


def _mypy_json(lines: Iterable[str], root: str) -> Iterator[Finding]:
    """`--output=json`: one object a line."""
    for line in lines:
        if not (line.startswith("{") and '"severity"' in line and len(line) < JSON_LINE):
            continue
        try:
            said = _SAID.decode(line)
        except msgspec.DecodeError:
            continue
        code = f" [{said.code}]" if said.code else ""
        place = located(said.file, root, said.line, said.column)
        yield Finding(WORDS.get(said.severity, P3), one_line(f"{said.message}{code}"), place)


class _Said(msgspec.Struct, frozen=True):
    file: str
    line: int
    message: str
    severity: str
    column: int | None = None
    code: str | None = None


_SAID = msgspec.json.Decoder(_Said)


def _mypy(lines: Iterable[str], root: str) -> list[Finding]:
    """A note on the line of the error before it is that error's suggestion."""
    found: list[Finding] = []
    for line in lines:
        match = _MYPY.match(line)
        if match is None:
            continue
        place = located(match[1], root, number(match[2]), number(match[3]))
        said = one_line(match[5])
        before = found[-1] if found else None
        if match[4] == "note" and before and place and before.location == place:
            found[-1] = replace(before, suggestion=before.suggestion or said)
        else:
            found.append(Finding(WORDS[match[4]], said, place))
    return found


def _pyright(lines: Iterable[str], root: str) -> list[Finding]:
    """What is indented further goes on with the complaint above it."""
    found: list[Finding] = []
    open_one = False
    for line in lines:
        match = _PYRIGHT.match(line)
        if match:
            place = located(match[1], root, number(match[2]), number(match[3]))
            found.append(Finding(WORDS[match[4]], one_line(match[5]), place))
        elif open_one and line.replace("\xa0", " ").startswith("    "):
            found[-1] = replace(found[-1], issue=one_line(f"{found[-1].issue} {line}"))
            continue
        open_one = match is not None
    return found


def _ruff_concise(lines: Iterable[str], root: str) -> list[Finding]:
    return [
        _ruff(it[4], it[5], (it[1], it[2], it[3]), root)
        for line in lines
        if (it := _RUFF.match(line))
    ]


def _ruff_full(lines: Iterable[str], root: str) -> list[Finding]:
    """A complaint, its place below it, and further down what would help."""
    found: list[Finding] = []
    said: re.Match[str] | None = None
    for line in lines:
        place = _RUFF_PLACE.match(line)
        if place and said:
            found.append(_ruff(said[1], said[2], (place[1], place[2], place[3]), root))
        elif line.startswith("help: ") and found:
            found[-1] = replace(found[-1], suggestion=one_line(line.removeprefix("help: ")))
        said = _RUFF_FULL.match(line)
    return found


def _ruff(code: str, said: str, place: tuple[str, str, str], root: str) -> Finding:
    file, line, column = place
    syntax = code in {"invalid-syntax", "SyntaxError", "E999"}
    return Finding(
        P1 if syntax else P2,
        f"{one_line(said.removeprefix('[*] '))} ({code})",
        located(file, root, number(line), number(column)),
    )
