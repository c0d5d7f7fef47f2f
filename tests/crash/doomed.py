"""Run as a program: `lockgate ARGS`, which notes where it touches the world and dies at one point.

`python -m tests.crash.doomed ORDERS ARGS`: ORDERS is a file with JSON: `log`, where each point is
written; `story`, a file that says which story goes on; `kills`: at the first of these, each a
story, a point and its occurrence, the process kills itself (-9). The program itself is unmodified.
"""

import json
import os
import re
import signal
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = re.compile(r"\s*(INSERT INTO|UPDATE|DELETE FROM|REPLACE INTO)\s+(\w+)", re.IGNORECASE)
ENDS = re.compile(r"\s*(BEGIN|COMMIT)\b", re.IGNORECASE)
# Of the names in a path or a command, what differs from run to run.
VARIES = re.compile(
    r"[0-9a-f]{12,}|\b[0-9a-f]{8}\b|(?<=-)[0-9a-f]{4}\b|\d+|(?<=\.room-)\w+|\btmp\w{8}\b"
)
# What Python says it is about to do; see the table of audit events in its documentation.
AUDITED = {
    "os.rename": "rename",
    "os.remove": "unlink",
    "os.mkdir": "mkdir",
    "os.rmdir": "rmdir",
    "os.link": "link",
    "os.symlink": "symlink",
    "os.truncate": "truncate",
    "os.chmod": "chmod",
    "os.kill": "signal",
    "socket.bind": "bind",
    "socket.connect": "connect",
}


class Points:
    def __init__(self, orders: dict[str, Any]) -> None:
        self.log = os.open(orders["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.story = os.open(orders["story"], os.O_RDONLY)
        self.kills = {(story, what, nth) for story, what, nth in orders["kills"]}
        self.root = orders["root"]
        self.seen: dict[tuple[str, str], int] = {}
        self.guard = threading.RLock()
        self.inside = threading.local()

    def reached(self, what: str) -> None:
        if getattr(self.inside, "it", False):
            return
        self.inside.it = True
        try:
            with self.guard:
                story = os.pread(self.story, 100, 0).decode().strip()
                key = (story, what)
                nth = self.seen[key] = self.seen.get(key, 0) + 1
                if (story, what, nth) in self.kills:
                    os.write(self.log, json.dumps(["killed", story, what, nth]).encode() + b"\n")
                    signal.raise_signal(signal.SIGKILL)
                os.write(self.log, json.dumps(["point", story, what, nth]).encode() + b"\n")
        finally:
            self.inside.it = False

    def named(self, path: object) -> str:
        """The path as it is in every run; empty for one that is not of this home."""
        text = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
        if text.startswith("/") and not text.startswith(self.root):
            return ""
        return VARIES.sub("#", text.removeprefix(self.root))

    def audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            if isinstance(flags, int) and flags & WRITING and self.named(path):
                self.reached(f"open {self.named(path)}")
        elif event in AUDITED:
            name = self.named(args[0]) if args else ""
            self.reached(f"{AUDITED[event]} {name}".strip())
        elif event == "subprocess.Popen":
            self.reached(f"spawn {_program([os.fsdecode(it) for it in args[1]])}")


def _program(argv: list[str]) -> str:
    words = [it.rpartition("/")[2] for it in argv[:1]]
    plain = [it for it in argv[1:] if not it.startswith(("-", "/")) and "=" not in it]
    return " ".join([*words, *(VARIES.sub("#", it)[:20] for it in plain[:1])])


def _connection(points: Points) -> type[sqlite3.Connection]:
    class Counted(sqlite3.Connection):
        """Each statement that changes something is a point, and so is the end of a transaction."""

        def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
            change, end = CHANGES.match(sql), ENDS.match(sql)
            if change:
                points.reached(f"sql {change[1].lower()} {change[2]}")
            elif end:
                points.reached(f"sql {end[1].lower()}")
            done = super().execute(sql, *args)
            if end and end[1].upper() == "COMMIT":
                points.reached("sql committed")
            return done

    return Counted


def install(points: Points) -> None:
    connect = sqlite3.connect

    def counted(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        made: sqlite3.Connection = connect(*args, **{"factory": _connection(points), **kwargs})
        return made

    sqlite3.connect = counted  # type: ignore[assignment]  # with a factory of ours
    _around(os, "fsync", lambda: points.reached("fsync"))
    _around(os, "fdatasync", lambda: points.reached("fsync"))
    _around(signal, "pidfd_send_signal", lambda: points.reached("signal"))

    class Socket(socket.socket):
        def sendall(self, *args: Any) -> None:
            points.reached("send")
            super().sendall(*args)

        def send(self, *args: Any) -> int:
            points.reached("send")
            return super().send(*args)

    socket.socket = Socket  # type: ignore[misc]  # the same, counted
    sys.addaudithook(points.audit)


def _around(where: Any, name: str, first: Callable[[], None]) -> None:
    real = getattr(where, name)

    def called(*args: Any, **kwargs: Any) -> Any:
        first()
        return real(*args, **kwargs)

    setattr(where, name, called)


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123 - as early as can be
        points = Points(json.load(file))
    os.environ.pop("PYTHONPATH", None)  # what it starts knows nothing of this
    sys.argv = ["lockgate", *sys.argv[2:]]
    from lockgate.__main__ import main as lockgate  # noqa: PLC0415 - the hook is in place first

    install(points)
    lockgate()


if __name__ == "__main__":
    main()
