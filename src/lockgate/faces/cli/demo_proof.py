"""What must be in the log and beside the commits for the demo's story to be true."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from lockgate.bootstrap import App
from lockgate.bootstrap.train import queueing
from lockgate.core.model.task import Task, TaskId
from lockgate.errors import LockgateError

# How often each event is there, once all have passed their gates, and once all have landed.
PASSED = {
    "fix-login": {"agent.crashed": 0, "GateFailedRetrying": 1, "HumanReviewCompleted": 1},
    "tidy-names": {"agent.crashed": 0, "GateFailedRetrying": 1, "HumanReviewCompleted": 1},
    "add-export": {"agent.crashed": 1, "GateFailedRetrying": 1, "HumanReviewCompleted": 0},
}
LANDED = {
    "fix-login": {"AllGatesPassed": 1, "attempt.failed": 1, "change.landed": 1},
    "tidy-names": {"AllGatesPassed": 1, "attempt.failed": 1, "change.landed": 1},
    "add-export": {"AllGatesPassed": 2, "attempt.failed": 3, "change.landed": 1},
}


class StoryBroke(LockgateError):
    def __init__(self, why: str) -> None:
        fix = "run it again with --keep, look around there, and report what you see"
        super().__init__("the demo did not go as it should", why=why, fix=fix)


def require(claim: str, *, holds: bool) -> None:
    if not holds:
        raise StoryBroke(f"it should be so that {claim}")


def check_log(app: App, ids: Mapping[str, TaskId], table: Mapping[str, Mapping[str, int]]) -> None:
    """The story again, from what the store has of it."""
    for branch, expected in table.items():
        counts = Counter(it.type for it in app.views.all_events(ids[branch]))
        for type, times in expected.items():
            holds = counts[type] == times
            require(f"{branch} has {times} {type} in its log, not {counts[type]}", holds=holds)
    broken = app.store.first_broken_event()
    require(f"the log's chain holds, also at {broken}", holds=broken is None)


def check_evidence(app: App, root: Path, tasks: Iterable[Task]) -> None:
    """Each commit that the target was at came through the queue."""
    project = app.projects.here(root)
    for task in tasks:
        found = queueing(app).verify(project, task.landed)
        proved = found is not None and not found.problem
        require(f"{task.id} landed with its evidence", holds=proved)
