"""Says of an orchestrator that does not answer who it is, since when, and what to do about it.

Standard library only: the client that waits for it loads nothing else.
"""

import json
import sys
import time
from typing import Protocol

PULSE = "orchestrator.pulse"  # where the orchestrator writes what it is doing
LOCK = "orchestrator.lock"  # where its pid stands
SHOWN = 3  # of what it is doing
STOPPED = frozenset("Tt")


class Connection(Protocol):
    def getsockopt(self, level: int, option: int, length: int, /) -> bytes: ...


def told(home: str, pid: int | None) -> tuple[str, str]:
    """Why nothing comes, and the command that changes it."""
    pid = pid or _holder(home)
    who = f"orchestrator {pid}" if pid else "the orchestrator"
    why = f"{who} does not answer"
    stopped = pid is not None and state(pid) in STOPPED
    if stopped:
        why += "; its process is stopped"
    why += _last_seen(home, pid)
    if not pid:
        return why, "see: lockgate doctor"
    if stopped:
        return why, f"let it go on: kill -CONT {pid}"
    return why, f"end it: kill -9 {pid}; agents go on, and the next command starts another one"


def peer(connection: Connection) -> int | None:
    """The process that listens there, by the kernel's word."""
    import socket

    asked = getattr(socket, "SO_PEERCRED", None)  # Linux has it
    if asked is None:
        return None
    try:
        said = connection.getsockopt(socket.SOL_SOCKET, asked, 12)  # pid, uid, gid
    except OSError:
        return None
    return int.from_bytes(said[:4], sys.byteorder) or None


def state(pid: int) -> str:
    """The letter that the kernel has for it; empty where it is not there, or nobody says."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - no pathlib here
            return file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _holder(home: str) -> int | None:
    try:
        with open(f"{home}/{LOCK}", encoding="utf-8") as file:  # noqa: PTH123 - as above
            said = file.read().strip()
    except OSError:
        return None
    return int(said) if said.isdecimal() else None


def _last_seen(home: str, pid: int | None) -> str:
    """What its pulse says, where it is this one's."""
    try:
        with open(f"{home}/{PULSE}", encoding="utf-8") as file:  # noqa: PTH123 - as above
            said = json.load(file)
        when, doing = float(said["time"]), [str(it) for it in said["doing"]]
        if pid not in {None, said["pid"]}:
            return ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    clock = time.strftime("%H:%M:%S", time.localtime(when))
    at = f", at work on {', '.join(doing[:SHOWN])}" if doing else ", with nothing to do"
    more = f" and {len(doing) - SHOWN} more" if len(doing) > SHOWN else ""
    return f"; its last sign of life was at {clock}{at}{more}"
