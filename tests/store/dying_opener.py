"""Run as a program: open SQLite stores in children that kill themselves as a statement begins.

Each line of its input is the number of that statement and the path; it answers with the child's
exit code.
"""

import os
import signal
import sqlite3
import sys

from lockgate.adapters.store.sqlite import SqliteStore

_connect = sqlite3.connect
_left = 0


def _step(_statement: str) -> None:
    global _left  # noqa: PLW0603  a countdown for the whole program
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)


def _dying_connect(*args, **options):
    connection = _connect(*args, **options)
    connection.set_trace_callback(_step)
    return connection


def _open_and_die(path: str, killed_at: int) -> None:
    global _left  # noqa: PLW0603  a countdown for the whole program
    _left = killed_at
    sqlite3.connect = _dying_connect
    code = 1
    try:
        SqliteStore(path)
        code = 0
    finally:
        os._exit(code)


def main() -> None:
    for line in sys.stdin:
        killed_at, _, path = line.rstrip("\n").partition(" ")
        child = os.fork()
        if child == 0:
            _open_and_die(path, int(killed_at))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201  the test reads it


if __name__ == "__main__":
    main()
