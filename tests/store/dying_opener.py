"""Run as a program: open an SQLite store and kill oneself as the nth statement begins."""

import os
import signal
import sqlite3
import sys

from lockgate.adapters.store.sqlite import SqliteStore

_connect = sqlite3.connect
_left = int(sys.argv[2])


def _step(_statement: str) -> None:
    global _left  # noqa: PLW0603  a countdown for the whole program
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)


def _dying_connect(*args, **options):
    connection = _connect(*args, **options)
    connection.set_trace_callback(_step)
    return connection


def main() -> None:
    sqlite3.connect = _dying_connect
    try:
        SqliteStore(sys.argv[1])
    finally:
        sqlite3.connect = _connect  # what measures coverage has a database too


if __name__ == "__main__":
    main()
