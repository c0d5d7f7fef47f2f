"""Text and places as tools write them, made safe to keep: one line, no escapes, inside the root."""

import hashlib
import json
import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast
from urllib.parse import unquote

from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.results import FAILING, TestResult

ISSUE = 300
ID = 500
PATH = 1000
LINE = 2000
HALF_LINES = 50_000
HALF_TEXT = 2_000_000
BIGGEST = 10**9

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.?"
    r"|#x1B\[[0-9;]*m"  # as pytest writes them into XML
)
_FOREIGN = re.compile(
    r"(?:^|/)(?:node_modules|site-packages|\.venv)/"
    r"|^[^/]+\.(?:go|java|kt|scala|cs)$"  # these name no directory, so they are no place
)
_PLACE = re.compile(
    r"(?<![\w@+.\-/])((?:file://)?[\w@+.\-/]{1,300}\.[A-Za-z]\w{0,9}):(\d{1,9})(?::(\d{1,9}))?"
)


def one_line(text: str, limit: int = ISSUE) -> str:
    """The beginning of the text, without escapes, control characters and line breaks."""
    head = _ESCAPES.sub("", text[: limit * 4]) if "\x1b" in text or "#x1B" in text else text
    words = " ".join(head[: limit * 4].split())
    if not words.isprintable():
        words = " ".join("".join(it if it.isprintable() else " " for it in words).split())
    return words if len(words) <= limit else words[: limit - 1] + "…"


def test_id(*parts: str) -> str:
    """The parts that are not empty, joined; one that is too long keeps its own digest."""
    whole = "::".join(part for part in parts if part)
    id = one_line(whole, ID)
    if len(whole) <= ID:
        return id or "(unnamed)"
    digest = hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{id[: ID - 9]}…{digest}"


def located(
    file: str, root: str, line: int | None = None, column: int | None = None
) -> Location | None:
    """The place relative to the root; None where it is outside of it or no path at all."""
    name = _relative(file, root)
    if name is None:
        return None
    good_line = line if line is not None and 0 < line < BIGGEST else None
    good_column = column if good_line and column is not None and 0 < column < BIGGEST else None
    return Location(name, good_line, good_column)


def place_in(text: str, root: str) -> Location | None:
    """The first `file:line` in the text that is the project's own."""
    for match in _PLACE.finditer(text):
        found = located(match[1], root, int(match[2]), number(match[3]))
        if found and not _FOREIGN.search(found.file):
            return found
    return None


def number(digits: str | None) -> int | None:
    """Digits as a number; None where there are none, or more than a place can have."""
    return (
        int(digits) if digits and digits.isdecimal() and len(digits) < len(str(BIGGEST)) else None
    )


def lines_of(text: str) -> list[str]:
    """The lines without escapes; of a text that is too long those at its two ends."""
    return list(_lines(text))


def _lines(text: str) -> Iterator[str]:
    for line in _ends(text):
        cut = line[:LINE].rstrip("\r")
        yield _ESCAPES.sub("", cut) if "\x1b" in cut else cut


def _ends(text: str) -> list[str]:
    if len(text) <= 2 * HALF_TEXT and text.count("\n") <= 2 * HALF_LINES:
        return text.split("\n")
    head = text[:HALF_TEXT].split("\n", HALF_LINES)[:HALF_LINES]
    tail = text[-HALF_TEXT:].rsplit("\n", HALF_LINES)[-HALF_LINES:]
    return [*head, *tail]


def _relative(file: str, root: str) -> str | None:
    if not file or len(file) > PATH:
        return None
    path = unquote(file.removeprefix("file://")) if file.startswith("file://") else file
    if "://" in path or not path.isprintable():
        return None
    whole = posixpath.normpath(posixpath.join(root, path))
    base = posixpath.normpath(root).rstrip("/") + "/"
    return whole.removeprefix(base) if whole.startswith(base) else None


# Failing tests as findings.


def failures(tests: Iterable[TestResult]) -> tuple[Finding, ...]:
    """One finding a failing test; a parent that only repeats what its subtest says has none."""
    failing = [test for test in tests if test.outcome in FAILING]
    ids = sorted(test.id for test in failing)
    return tuple(
        Finding(
            Priority.P1_MAJOR,
            one_line(f"{test.id}: {test.message}" if test.message else test.id),
            test.location,
        )
        for test in failing
        if not _has_child(ids, test.id)
    )


def _has_child(ids: list[str], parent: str) -> bool:
    at = bisect_left(ids, f"{parent}/")
    return at < len(ids) and ids[at].startswith(f"{parent}/")


# JSON of unknown shape and origin, read without surprises.


VALUES = 3_000_000
_NOTHING: Mapping[str, object] = {}


class Refused(Exception):
    """Not JSON, cut off, or built to be expensive."""


def parsed(text: str) -> object:
    """The first JSON value of the text."""
    if text.count("{") + text.count("[") + text.count(",") > VALUES:
        raise Refused
    try:
        return cast("object", json.JSONDecoder(parse_float=_float).raw_decode(text)[0])
    except (ValueError, RecursionError, MemoryError) as error:
        raise Refused from error


def mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else _NOTHING


def items(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list) else ()


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _float(digits: str) -> float:
    return float(digits[:40])
