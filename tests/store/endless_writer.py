"""Run as a program: commit turn after turn, and print each rev once it is acknowledged."""

import sys

from msgspec.structs import replace

from lockgate.adapters.store import open_store
from lockgate.core.lifecycle.decision import MirrorTask
from lockgate.core.model.task import TaskId
from tests.store.samples import moved


def main() -> None:
    store = open_store(sys.argv[1])
    task = store.load(TaskId("t1"))
    while True:
        decision = replace(moved(task), effects=(MirrorTask(),))
        store.commit(decision)
        task = decision.task
        print(task.rev, flush=True)  # noqa: T201  the test reads it


if __name__ == "__main__":
    main()
