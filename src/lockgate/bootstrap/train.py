"""Puts the merge train together."""

from collections.abc import Callable

from lockgate.adapters.clock import SystemClock
from lockgate.adapters.store.train_log import SqlTrainLog
from lockgate.adapters.train import GitYard
from lockgate.bootstrap.app import App
from lockgate.core.lifecycle.trouble import Trouble
from lockgate.core.train.epochs import Term
from lockgate.services.gates.runner import GateRunner
from lockgate.services.train.control import Queueing
from lockgate.services.train.landing import Lander
from lockgate.services.train.queue import MergeQueue, TrainTests
from lockgate.services.train.view import TrainView


def queueing(it: App) -> Queueing:
    """The queue for people, who look at it and steer it."""
    return Queueing(_view(it), it.coordinator, it.projects.repository)


def merge_queue(
    it: App,
    runner: GateRunner,
    stopping: Callable[[], bool],
    held: dict[str, Trouble],
) -> MergeQueue:
    """The train for the orchestrator, which alone acts."""
    view, now = _view(it), SystemClock().now
    term = Term(view.log.raise_epoch(), now())
    return MergeQueue(
        view=view,
        lander=Lander(view, it.coordinator, now, term),
        tests=TrainTests(it.workspaces, runner),
        now=now,
        stopping=stopping,
        held=held,
    )


def _view(it: App) -> TrainView:
    return TrainView(it.store, SqlTrainLog(it.store.database), GitYard(it.home), it.configuration)
