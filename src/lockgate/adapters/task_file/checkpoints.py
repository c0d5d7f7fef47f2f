"""A task's checkpoints: numbered files, each written once; the newest are kept."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

MOST = 1_000_000_000
KEPT = 100  # checkpoints of one task
KEPT_BYTES = 8 << 20  # of all of them
ONE_BYTES = 1 << 20
SUMMARY, FILES = 1 << 16, 1000  # characters, and names, that one has at most where it is too large


def add_checkpoint(directory: Path, facts: Mapping[str, object]) -> int:
    """Write the next number's file; of two who write at once each gets its own."""
    directory.mkdir(parents=True, exist_ok=True)
    number = max(_numbers(directory), default=0) + 1
    while True:
        text = _text(number, facts)
        with suppress(FileExistsError):
            with _file(directory, number).open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            _remove_oldest(directory)
            return number
        number += 1


def last_checkpoint(directory: Path) -> Mapping[str, object] | None:
    """The newest that can be read; one that a crash cut short is passed over."""
    for number in sorted(_numbers(directory), reverse=True):
        with suppress(OSError, ValueError):
            found: object = json.loads(_file(directory, number).read_text("utf-8"))
            if isinstance(found, dict):
                return cast("dict[str, object]", found)  # the keys of a JSON object are texts
    return None


def _text(number: int, facts: Mapping[str, object]) -> str:
    text = json.dumps({"sequence": number, **facts}, indent=2) + "\n"
    if len(text) <= ONE_BYTES:
        return text
    return json.dumps({"sequence": number, **_cut_short(facts)}, indent=2) + "\n"


def _cut_short(facts: Mapping[str, object]) -> dict[str, object]:
    summary, files = str(facts.get("work_summary") or ""), facts.get("files_modified")
    names = (
        [str(it) for it in cast("list[object]", files)] if isinstance(files, list | tuple) else []
    )
    short = [it for it in names if len(it) < ONE_BYTES // FILES // 8][:FILES]
    left_out = f"\n… {len(summary) - SUMMARY} characters left out …"
    return {
        **facts,
        "work_summary": summary[:SUMMARY] + (left_out if len(summary) > SUMMARY else ""),
        "files_modified": short,
        "files_left_out": len(names) - len(short),
    }


def _remove_oldest(directory: Path) -> None:
    """Never the newest, which the next agent is told of."""
    kept = room = 0
    for number in sorted(_numbers(directory), reverse=True):
        with suppress(OSError):
            kept, room = kept + 1, room + _file(directory, number).stat().st_size
            if kept > 1 and (kept > KEPT or room > KEPT_BYTES):
                _file(directory, number).unlink()


def _file(directory: Path, number: int) -> Path:
    return directory / f"{number:03}.json"


def _numbers(directory: Path) -> list[int]:
    if not directory.is_dir():
        return []
    stems = [it.stem for it in directory.glob("*.json")]
    return [int(stem) for stem in stems if stem.isdecimal() and int(stem) < MOST]
