"""DBOS on SQLite, settings as they come: one step of a workflow that is under way."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from dbos import DBOS

from bench.harness import Work, say

NAME = "DBOS step"
STEPS = 5  # of one workflow; its own start and end are not counted


@contextmanager
def opened(where: Path) -> Iterator[Work]:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": f"sqlite:///{where / 'dbos.db'}",
            "log_level": "ERROR",
        }
    )
    DBOS.launch()
    say(f"  dbos {version('dbos')}: {STEPS} steps a workflow")
    try:
        yield workflow
    finally:
        DBOS.destroy()


@DBOS.step()
def step(number: int) -> int:
    return number


@DBOS.workflow()
def workflow() -> float:
    begin = time.perf_counter()
    for number in range(STEPS):
        step(number)
    return (time.perf_counter() - begin) / STEPS
