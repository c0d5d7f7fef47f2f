"""Ends what a killed process of ours was starting: a sandbox half-way up outlives its starter."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from lockgate.adapters.run import STARTER, namespace, started_at


def sweep() -> tuple[int, ...]:
    """The processes that were ended: those that carry the mark of a starter who is gone."""
    ended: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and _is_orphan(entry):
            with suppress(OSError):
                os.kill(int(entry.name), signal.SIGKILL)
                ended.append(int(entry.name))
    return tuple(ended)


def _is_orphan(entry: Path) -> bool:
    try:
        marks = [it for it in (entry / "environ").read_bytes().split(b"\0") if it.startswith(_MARK)]
    except OSError:
        return False
    mark = marks[0].removeprefix(_MARK).decode("ascii", "replace") if marks else ""
    where, pid, start, *_ = (*mark.split("."), "", "", "")
    known = where == namespace() and pid.isdecimal() and start.isdecimal()
    return known and started_at(int(pid)) != int(start)


_MARK = f"{STARTER}=".encode()
