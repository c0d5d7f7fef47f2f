"""Run as a program: a client that stops itself inside a turn, and says how the turn ended."""

import os
import signal
import sys
from collections.abc import Callable

from lockgate.adapters.store import sql
from lockgate.adapters.store.database import Database, Run
from lockgate.adapters.store.fenced import FencedDatabase
from lockgate.adapters.store.postgres import PostgresDatabase
from lockgate.errors import Unavailable


def freeze() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def after_an_answer(run: Run) -> None:
    run(sql.TAKE_NUMBERS, {"count": 0}).fetchone()
    freeze()


def after_a_statement_without_answer(run: Run) -> None:
    run(sql.TAKE_NUMBERS, {"count": 0})
    freeze()


def between_an_answer_and_the_end(run: Run) -> None:
    row = run(sql.TAKE_NUMBERS, {"count": 0}).fetchone() or {}
    run(sql.MOVE_HEAD, {"hash": str(row["hash"])})
    freeze()
    run(sql.MOVE_HEAD, {"hash": str(row["hash"])})


TURNS: dict[str, Callable[[Run], None]] = {
    it.__name__: it
    for it in (after_an_answer, after_a_statement_without_answer, between_an_answer_and_the_end)
}


def main() -> None:
    url, name, seconds, how, *claim = sys.argv[1:]
    database: Database = PostgresDatabase(url, float(seconds))
    if claim:
        database = FencedDatabase(database, *claim)
    try:
        getattr(database, how)(TURNS[name])
    except Unavailable:
        print("refused", flush=True)  # noqa: T201  the test reads it
    else:
        print("done", flush=True)  # noqa: T201  the test reads it


if __name__ == "__main__":
    main()
