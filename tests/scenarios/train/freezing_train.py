"""Run as a program: the train of a home, whose gates pass; it may stop itself after a look.

It prints how its last turn ended: `done`, or the name of the error.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from lockgate.adapters.store.train_log import SqlTrainLog
from lockgate.adapters.system import SystemClock
from lockgate.adapters.train import GitYard
from lockgate.adapters.train.targets import Pushes
from lockgate.bootstrap import open_app
from lockgate.core.train.model import Green, Result, Term
from lockgate.errors import LockgateError
from lockgate.services.train.landing import Lander
from lockgate.services.train.queue import MergeQueue, Tested
from lockgate.services.train.view import TrainView
from tests.scenarios.train.at_once import TestsAtOnce

TURNS = 5


class Passing:
    """Gates that cost nothing."""

    def run(self, it: Tested, cancelled: Callable[[], bool]) -> tuple[Result, str]:
        return Green(), "[]"


class FreezingLog(SqlTrainLog):
    """Stops its process right after the n-th look at the epoch."""

    looks = 0
    freezes_at = 0

    def check_epoch(self, epoch: int) -> None:
        super().check_epoch(epoch)
        self.looks += 1
        if self.looks == self.freezes_at:
            os.kill(os.getpid(), signal.SIGSTOP)


def main() -> None:
    home, root, within, freezes_at = sys.argv[1:]
    app = open_app({"LOCKGATE_HOME": home})
    log = FreezingLog(app.store.database)
    log.freezes_at = int(freezes_at)
    yard = GitYard(Path(home), Pushes(float(within)))
    view = TrainView(app.store, log, yard, app.configuration)
    term = Term(log.raise_epoch(), time.monotonic())
    trains = MergeQueue(
        view=view,
        lander=Lander(view, app.coordinator, SystemClock(), term),
        tests=Passing(),  # type: ignore[arg-type]  # a gate that costs nothing
        elapsed=time.monotonic,
        held={},
    )
    ended = ""
    for _ in range(TURNS):
        try:
            trains.turn(app.projects.here(Path(root)), TestsAtOnce(trains))
            ended = "done"
        except LockgateError as error:
            ended = type(error).__name__
    print(ended, flush=True)  # noqa: T201  the test reads it


if __name__ == "__main__":
    main()
