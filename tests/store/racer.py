"""Run as a program: open a store, wait for the word, commit one turn; say `won` or `stale`."""

import sys

from lockgate.adapters.store import open_store
from lockgate.core.model.task import TaskId
from lockgate.errors import StaleTask
from tests.store.samples import moved


def main() -> None:
    store = open_store(sys.argv[1], wait_seconds=30)
    task = store.load(TaskId("t1"))
    print("ready", flush=True)  # noqa: T201  the test reads it
    sys.stdin.readline()
    try:
        store.commit(moved(task))
    except StaleTask:
        print("stale", flush=True)  # noqa: T201
    else:
        print("won", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
