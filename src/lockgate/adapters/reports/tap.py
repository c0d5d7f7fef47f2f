"""TAP 13 and 14, with subtests in both their forms."""

import re
from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.adapters.reports.text import failures, located, number, one_line, place_in, test_id
from lockgate.core.model.findings import Location
from lockgate.core.model.gates import Report
from lockgate.core.model.results import FAILING, Outcome, ReportRead, TestResult, merged

DEPTH = 20
_RESULT = re.compile(r"(not )?ok\b ?(\d{1,9})?(?: ?- | )?(.*)\Z")
_PLAN = re.compile(r"1\.\.(\d{1,9})(?: *#.*)?\Z")
_DIRECTIVE = re.compile(r"(?<!\\)# ?(SKIP|TODO)\b", re.IGNORECASE)
_TIME = re.compile(r" # time=[\d.]+m?s\b")
_DETAIL = re.compile(r"""['"]?(message|error|location|at|file|line)['"]?: *(.*)\Z""")


class _State(Struct):
    root: str
    waiting: dict[int, list[TestResult]] = field(
        default_factory=dict[int, list[TestResult]]
    )  # by depth, without parent
    done: list[TestResult] = field(default_factory=list[TestResult])
    opened: dict[int, str] = field(default_factory=dict[int, str])
    plan: int | None = None
    top: int = 0
    whole: bool = True
    details: dict[str, str] = field(default_factory=dict[str, str])
    yaml: bool = False
    last: tuple[int, str, Outcome] | None = None  # depth, name, outcome; details may follow


def seen_in(lines: Sequence[str]) -> bool:
    if any(re.match(r"TAP version 1[34]\b", line) for line in lines[:200]):
        return True
    results = any(re.match(r"(?:not )?ok \d", line) for line in lines)
    return results and any(_PLAN.match(line) for line in lines)


def read(lines: Sequence[str], root: str) -> ReportRead | None:
    """Complete only if all planned tests came and the last line came to its end."""
    if not seen_in(lines):
        return None
    state = _State(root)
    for line in lines[:-1]:
        _take(state, line)
    _settle(state)
    left = [it for depth, group in state.waiting.items() if depth for it in group]
    failed = [it for it in left if it.outcome in FAILING]  # whose they are is not known
    tests = merged([*state.done, *state.waiting.get(0, []), *failed])
    complete = state.whole and not lines[-1] and not left and state.plan == state.top
    return ReportRead(
        format=Report.TAP,
        findings=failures(tests),
        tests=tests,
        complete=complete,
    )


def _take(state: _State, line: str) -> None:
    body = line.lstrip(" ")
    indent = len(line) - len(body)
    if state.yaml:
        _take_detail(state, body)
        return
    if body == "---" and state.last:
        state.yaml = True
        return
    depth, odd = divmod(indent, 4)
    if odd or depth > DEPTH:
        return
    if body.startswith("Bail out!"):
        state.whole = False
    plan = _PLAN.match(body)
    if plan and depth == 0:
        state.plan = int(plan[1])
    result = _RESULT.match(body)
    if result:
        _settle(state)
        _take_result(state, result, depth)


def _take_detail(state: _State, body: str) -> None:
    if body == "...":
        state.yaml = False
        return
    detail = _DETAIL.match(body)
    if detail:
        state.details.setdefault(detail[1], detail[2].strip().strip("'\""))
    elif state.details.get("error") in {"|-", "|", ">-", ">"}:
        state.details["error"] = body


def _take_result(state: _State, result: re.Match[str], depth: int) -> None:
    said = _TIME.sub("", result[3])
    opens = said.endswith("{")
    directive = _DIRECTIVE.search(said)
    words = said[: directive.start()] if directive else said.removesuffix("{")
    name = words.replace("\\#", "#").strip() or f"test {result[2] or '(unnamed)'}"
    if state.opened:
        state.opened = {at: known for at, known in state.opened.items() if at < depth}
    state.top += depth == 0
    state.last = depth, name, _outcome(failed=bool(result[1]), directive=directive)
    if opens:
        state.opened[depth] = name


def _outcome(*, failed: bool, directive: re.Match[str] | None) -> Outcome:
    kind = directive[1].upper() if directive else ""
    if kind == "SKIP":
        return Outcome.SKIPPED
    if kind == "TODO":
        return Outcome.XFAILED if failed else Outcome.XPASSED
    return Outcome.FAILED if failed else Outcome.PASSED


def _settle(state: _State) -> None:
    """The result before this line has all its details now; its children get their prefix."""
    if state.last is None:
        return
    depth, name, outcome = state.last
    prefix = [it for at, it in sorted(state.opened.items()) if at < depth]
    test = TestResult(
        id=test_id("/".join([*prefix, name])),
        outcome=outcome,
        message=one_line(state.details.get("message") or state.details.get("error", "")),
        location=_place(state.details, state.root) if state.details else None,
    )
    children = state.waiting.pop(depth + 1, [])
    named = [replace(it, id=test_id(f"{test.id}/{it.id}")) for it in children]
    group = state.done if prefix else state.waiting.setdefault(depth, [])
    group += [*named, test]
    state.last, state.details, state.yaml = None, {}, False


def _place(details: dict[str, str], root: str) -> Location | None:
    for key in ("location", "at"):
        found = place_in(details.get(key, ""), root)
        if found:
            return found
    return located(details.get("file", ""), root, number(details.get("line")))
