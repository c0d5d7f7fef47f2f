"""What base's own tests came to, as JSON files; whatever is not as we wrote it is not there."""

import hashlib
import json
import os
import secrets
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from lockgate.core.differential.runs import Canaries, Run
from lockgate.core.differential.strength import Known
from lockgate.core.model.facts import as_facts
from lockgate.core.model.findings import Location
from lockgate.core.model.results import Outcome, TestResult

FORM = 3  # of the file; a file of another form is measured again
DAY = 86_400.0  # seconds; tools outside of the repository change too
LARGEST = 200_000_000  # bytes


_NOT_OURS = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)


class FileMeasurements:
    """One file a key, under a directory of ours that no sandbox shows."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def find(self, key: Sequence[str]) -> tuple[Run, Run] | None:
        try:
            facts = _read(self._file(key), tuple(key))
            return _run(_fields(facts["base"])), _run(_fields(facts["again"]))
        except _NOT_OURS:
            return None

    def keep(self, key: Sequence[str], base: Run, again: Run) -> None:
        self._write(key, {"base": as_facts(base), "again": as_facts(again)})

    def find_known(self, key: Sequence[str]) -> Known:
        try:
            facts = _fields(_read(self._file(key), tuple(key))["known"])
            return {mark: _known(it) for mark, it in facts.items()}
        except _NOT_OURS:
            return {}

    def keep_known(self, key: Sequence[str], known: Known) -> None:
        self._write(key, {"known": dict(known)})

    def _write(self, key: Sequence[str], values: Mapping[str, object]) -> None:
        """Whole or not at all; where it cannot be kept, base is measured again next time."""
        facts = {"form": FORM, "key": list(key), **values}
        file = self._file(key)
        beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
        with suppress(OSError):
            self.directory.mkdir(parents=True, exist_ok=True)
            self._sweep()
            try:
                beside.write_text(json.dumps(facts), encoding="utf-8")
                beside.replace(file)
            finally:
                beside.unlink(missing_ok=True)

    def _file(self, key: Sequence[str]) -> Path:
        named = hashlib.sha256("\0".join(key).encode("utf-8", "surrogatepass")).hexdigest()
        return self.directory / f"{named}.json"

    def _sweep(self) -> None:
        for file in self.directory.iterdir():
            with suppress(OSError):
                if not _fresh(file.lstat()):
                    file.unlink()


def _read(file: Path, key: tuple[str, ...]) -> Mapping[str, object]:
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as opened:
        found = os.fstat(opened.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST or not _fresh(found):
            raise ValueError("nothing that may be used")
        facts = _fields(json.loads(opened.read()))
    if facts["form"] != FORM or facts["key"] != list(key):
        raise ValueError("of another form or another key")
    return facts


def _fresh(found: os.stat_result) -> bool:
    return abs(time.time() - found.st_mtime) <= DAY


def _run(facts: Mapping[str, object]) -> Run:
    code, canaries = facts["exit_code"], facts["canaries"]
    if not isinstance(code, int) or facts["complete"] is not True or facts["overtime"] != "":
        raise ValueError("no run that would have been kept")
    return Run(
        opened=tuple(map(_text, _items(facts["opened"]))),
        exit_code=code,
        tests=tuple(_test(_fields(it)) for it in _items(facts["tests"])),
        canaries=None if canaries is None else _canaries(_fields(canaries)),
    )


def _test(facts: Mapping[str, object]) -> TestResult:
    place = facts["location"]
    return TestResult(
        id=_text(facts["id"]),
        outcome=Outcome(_text(facts["outcome"])),
        location=None if place is None else _location(_fields(place)),
        message=_text(facts["message"]),
    )


def _location(facts: Mapping[str, object]) -> Location:
    line, column = (it if isinstance(it, int) else None for it in (facts["line"], facts["column"]))
    return Location(_text(facts["file"]), line, column)


def _canaries(facts: Mapping[str, object]) -> Canaries:
    return Canaries(
        tuple(_text(it) for it in _items(facts["must_fail"])),
        tuple(_text(it) for it in _items(facts["must_pass"])),
        tuple(_text(it) for it in _items(facts["hosted"])),
    )


def _known(value: object) -> tuple[str, ...]:
    outcome, message, *tests = (_text(it) for it in _items(value))
    return (Outcome(outcome), message, *tests)


def _fields(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return cast("Mapping[str, object]", value)


def _items(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return cast("Sequence[object]", value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value
