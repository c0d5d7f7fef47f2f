"""A checkpoint as text, no longer than it may be, and which of two is the newer one."""

import json
from collections.abc import Mapping
from typing import cast

ONE_BYTES = 1 << 20
SUMMARY, FILES = 1 << 16, 1000  # characters, and names, that one has at most where it is too large


def checkpoint_text(number: int, facts: Mapping[str, object]) -> str:
    """The JSON text of the checkpoint, at most ONE_BYTES long."""
    text = json.dumps({"sequence": number, **facts}, indent=2) + "\n"
    if len(text) <= ONE_BYTES:
        return text
    return json.dumps({"sequence": number, **_cut_short(facts)}, indent=2) + "\n"


def number_of(checkpoint: Mapping[str, object]) -> int:
    """The checkpoint's number; 0 where it has none, as an empty one."""
    number = checkpoint.get("sequence")
    return number if isinstance(number, int) else 0


def newer(
    kept: Mapping[str, object] | None, file: Mapping[str, object] | None
) -> Mapping[str, object]:
    """The one with the higher number, else the database's; empty where there is neither.

    A file has a higher number where an older release wrote it, or the database did not get it.
    """
    return max(kept or {}, file or {}, key=number_of)


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
