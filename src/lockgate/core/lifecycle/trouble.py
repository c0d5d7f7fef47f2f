"""What the loop failed to do, and when a human must be told of it."""

from msgspec import Struct

from lockgate.core.model.findings import normalise
from lockgate.core.model.limits import SAME_FAILURES
from lockgate.core.model.task import Task, TaskId


class Trouble(Struct, frozen=True, kw_only=True):
    """Why a lane of the loop failed, and how often in a row it has failed in this way."""

    why: str
    times: int = 1
    task: TaskId | None = None  # the lane's task, where it has one

    @property
    def needs_human(self) -> bool:
        return self.times >= SAME_FAILURES


def failed(before: Trouble | None, why: str, task: TaskId | None = None) -> Trouble:
    """The lane's trouble after one more failure; a failure of another kind is counted from one."""
    same = before is not None and _same(before.why, why)
    return Trouble(why=why, times=before.times + 1 if before and same else 1, task=task)


def is_news(task: Task, trouble: Trouble) -> bool:
    """Whether a human must be told, and the task does not say it yet."""
    return trouble.needs_human and not _same(task.troubled, trouble.why)


def _same(one: str, other: str) -> bool:
    return normalise(one) == normalise(other)
