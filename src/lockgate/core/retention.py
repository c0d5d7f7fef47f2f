"""What of a home may go and when: how long each kind of thing is kept after its last use."""

from collections.abc import Callable, Mapping
from enum import StrEnum

from msgspec import Struct

from lockgate.core.lifecycle.records import ENDED, IDLE
from lockgate.core.model.task import Status, Task

DAY = 86400.0


class Keep(Struct, frozen=True, kw_only=True):
    """`[keep]` of the home's settings.toml: days after the last use, by kind."""

    workspaces: float = 30.0
    sessions: float = 14.0
    tasks: float = 30.0
    branches: float = 30.0
    snapshots: float = 90.0
    logs: float = 30.0
    deleted: float = 90.0
    backups: float = 90.0
    hub: float = 7.0  # the refs of an ended task at the project's hub
    leftovers: float = 1.0
    unreachable: float = 14.0  # objects of judge.git that nothing names


class Kind(StrEnum):
    """Named as the key that says how long such a thing is kept."""

    WORKSPACE = "workspaces"  # a clone in which nobody works; its work is kept first
    SESSION = "sessions"  # what was started, its output, how it ended
    TASK = "tasks"  # the files of an ended task, which the database has too
    BRANCH = "branches"  # of a landed task, in the user's repository
    SNAPSHOT = "snapshots"  # earlier changes of an ended task, and the texts they came with
    LOG = "logs"
    DELETED = "deleted"  # the files of a deleted task
    BACKUP = "backups"  # of the database, from before a migration
    HUB = "hub"  # refs of an ended task at the hub by which hosts hand over its work
    LEFTOVER = "leftovers"  # directories that a killed process has left


class Found(Struct, frozen=True, kw_only=True):
    """A thing that may go: `name` is its path in the home, or its name in git."""

    kind: Kind
    name: str
    last: float  # when it was used last, as far as its files tell
    task: str = ""  # whose it is
    project: str = ""  # whose it is, where it lies in git
    used: bool = False  # by something that runs, or as the newest of its kind


class Owner(Struct, frozen=True):
    """What decides about the things of a task."""

    status: Status
    updated: float
    landed: bool
    busy: bool  # somebody works on it, or something is still to be done for it

    @property
    def ended(self) -> bool:
        return self.status in ENDED


def owner_of(task: Task, *, alive: bool, to_do: bool) -> Owner:
    """`alive`: a session of it runs. `to_do`: an effect of it waits."""
    busy = alive or to_do or task.taken_over
    return Owner(task.status, task.updated, bool(task.landed), busy)


def is_old(it: Found, keep: Keep, now: float) -> bool:
    """Whether its own files let it go; asked first, as it costs nothing."""
    return not it.used and now - it.last >= _days(it.kind, keep) * DAY


def may_go(it: Found, owner: Owner | None, keep: Keep, now: float) -> bool:
    """Nothing that a live task or a running session uses, and nothing before its time."""
    if not is_old(it, keep, now) or not _ALLOWS[it.kind](owner):
        return False
    if owner is None:
        return True
    return not owner.busy and now - owner.updated >= _days(it.kind, keep) * DAY


def _days(kind: Kind, keep: Keep) -> float:
    days: float = getattr(keep, kind.value)
    return days


def _anyway(owner: Owner | None) -> bool:
    del owner  # it belongs to no task
    return True


def _nobodys(owner: Owner | None) -> bool:
    return owner is None or owner.ended


def _ended(owner: Owner | None) -> bool:
    return owner is not None and owner.ended


def _landed(owner: Owner | None) -> bool:
    return owner is not None and owner.status is Status.DONE and owner.landed


def _unused(owner: Owner | None) -> bool:
    return owner is not None and (owner.ended or owner.status in IDLE)


_ALLOWS: Mapping[Kind, Callable[[Owner | None], bool]] = {
    Kind.WORKSPACE: _unused,
    Kind.SESSION: _nobodys,
    Kind.TASK: _ended,
    Kind.BRANCH: _landed,
    Kind.SNAPSHOT: _ended,
    Kind.LOG: _anyway,
    Kind.DELETED: _anyway,
    Kind.BACKUP: _anyway,
    Kind.HUB: _ended,
    Kind.LEFTOVER: _nobodys,
}
