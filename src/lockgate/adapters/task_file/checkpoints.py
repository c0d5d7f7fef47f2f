"""A task's checkpoints: numbered files, each written once."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

MOST = 100_000


def add_checkpoint(directory: Path, facts: Mapping[str, object]) -> int:
    """Write the next number's file; of two who write at once each gets its own."""
    directory.mkdir(parents=True, exist_ok=True)
    number = max(_numbers(directory), default=0) + 1
    while True:
        text = json.dumps({"sequence": number, **facts}, indent=2)
        with suppress(FileExistsError):
            with (directory / f"{number:03}.json").open("x", encoding="utf-8") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            return number
        number += 1


def last_checkpoint(directory: Path) -> Mapping[str, object] | None:
    """The newest that can be read; one that a crash cut short is passed over."""
    for number in sorted(_numbers(directory), reverse=True):
        with suppress(OSError, ValueError):
            found: object = json.loads((directory / f"{number:03}.json").read_text("utf-8"))
            if isinstance(found, dict):
                return cast("dict[str, object]", found)  # the keys of a JSON object are texts
    return None


def _numbers(directory: Path) -> list[int]:
    if not directory.is_dir():
        return []
    stems = [it.stem for it in directory.glob("*.json")]
    return [int(stem) for stem in stems if stem.isdecimal() and int(stem) < MOST]
