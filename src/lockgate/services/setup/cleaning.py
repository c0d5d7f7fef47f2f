"""Frees disk space that nothing needs, in small steps, and says where space goes."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

from msgspec import Struct

from lockgate.core.lifecycle.records import ENDED, is_elsewhere
from lockgate.core.model.task import Status, Task, TaskId
from lockgate.core.retention import Found, Keep, Kind, Owner, is_old, may_go, owner_of
from lockgate.errors import LockgateError
from lockgate.ports import Clock, Project, Store, Workspaces, of_project
from lockgate.ports.upkeep import HomeFolders, Packing, TaskRefs, Used

BATCH = 1000
STEP = 100  # things that go at once
LIVE = frozenset(Status) - ENDED
MANY = 2000  # loose objects, and as many refs, from which a repository is packed by itself
PACKS = 50
BY_PROJECT = ("repos", "layers", "caches", "services", "trust")  # folders named by project
BY_TASK = ("sessions", "tasks", "workspaces", "homes", "reviews", "runs")
OF_HOME = ""  # what belongs to no project


class Going(Struct, frozen=True, kw_only=True):
    """A thing that may go, or went."""

    kind: Kind
    name: str
    project: str
    task: str
    size: int


class Usage(Struct, frozen=True, kw_only=True):
    """Bytes on disk; `project` is empty for what belongs to all of the home."""

    project: str
    kind: str
    size: int


class Cleaner(Struct, frozen=True, kw_only=True):
    store: Store
    folders: HomeFolders
    refs: TaskRefs
    workspaces: Workspaces
    keep: Callable[[], Keep]
    clock: Clock
    host: str = ""  # this one's name, where there are several
    leads: bool = True  # else rows, which all hosts share, are left to the host that leads

    def due(self) -> Iterator[Found]:
        """What may go now, the folders of the home first."""
        keep, now = self.keep(), self.clock.now()
        owners = dict[str, Owner | None]()
        for it in self._all():
            if not is_old(it, keep, now):
                continue
            if it.task not in owners:
                owners[it.task] = self._owner(it.task)
            if may_go(it, owners[it.task], keep, now):
                yield it

    def plan(self) -> tuple[Going, ...]:
        """What would go, with its size; nothing is touched."""
        return tuple(self._going(it) for it in self.due())

    def clean(self, most: int) -> tuple[Going, ...]:
        """Remove so many things at most. What cannot be removed now is left for the next time."""
        gone = list[Going]()
        for it in self.due():
            if len(gone) >= most:
                break
            with suppress(LockgateError, OSError):
                told = self._going(it)
                if self._removed(it):
                    gone.append(told)
        return tuple(gone)

    def step(self) -> tuple[int, int]:
        """How many things went, and their bytes; where that was all, a project is packed too."""
        gone = self.clean(STEP)
        project = next(self.to_pack(), None) if len(gone) < STEP else None
        if project:
            self.pack(project)
        return len(gone), sum(it.size for it in gone)

    def to_pack(self, loose: int = MANY, packs: int = PACKS) -> Iterator[Project]:
        """The projects one of whose repositories has more loose objects, or packs, than that."""
        for project in self.store.projects():
            found = self._packing(project)
            if any(it.loose > loose or it.packs > packs for it in found):
                yield project

    def pack(self, project: Project) -> int:
        """The bytes that its repositories take less now."""
        before = sum(it.size for it in self._packing(project))
        needed = tuple(dict.fromkeys(self._candidates(project)))
        after = self.refs.repack(project, self.keep().unreachable, needed)
        return before - sum(after.values())

    def usage(self) -> tuple[Usage, ...]:
        """By project and kind, the largest first."""
        names = {str(it.id): it.name for it in self.store.projects()}
        found = Counter[tuple[str, str]]()
        for it in self.folders.used():
            found[names.get(self._project_of(it), OF_HOME), _kind_of(it)] += it.size
        rows = [Usage(project=project, kind=kind, size=n) for (project, kind), n in found.items()]
        return tuple(sorted(rows, key=lambda it: (-it.size, it.project, it.kind)))

    def _all(self) -> Iterator[Found]:
        yield from self.folders.found()
        for project in self.store.projects():
            with suppress(LockgateError):
                yield from self.refs.found(project)

    def _candidates(self, project: Project) -> Iterator[str]:
        """The commits that are judged, land next, or revert another."""
        after: TaskId | None = None
        while True:
            page = self.store.page(of_project(project.id, LIVE), after, BATCH)
            for it in page.tasks:
                named = (it.candidate, it.reverts.commit if it.reverts else "")
                yield from filter(None, named)
            after = page.after
            if after is None:
                return

    def _packing(self, project: Project) -> tuple[Packing, ...]:
        with suppress(LockgateError):
            return tuple(self.refs.packing(project))
        return ()

    def _owner(self, task: str) -> Owner | None:
        found = self.store.find(TaskId(task)) if task else None
        if found is None:
            return None
        alive = any(it.ended is None for it in self.store.sessions(found.id))
        return owner_of(found, alive=alive, to_do=bool(self.store.pending_effects(found.id, 1)))

    def _going(self, it: Found) -> Going:
        task = self.store.find(TaskId(it.task)) if it.task else None
        project = it.project or (task.project if task else "")
        size = 0 if it.project else self.folders.size(it)
        return Going(kind=it.kind, name=it.name, project=project, task=it.task, size=size)

    def _removed(self, it: Found) -> bool:
        task = self.store.find(TaskId(it.task)) if it.task else None
        match it.kind:
            case Kind.WORKSPACE:
                return task is not None and self._released(task)
            case Kind.BRANCH | Kind.SNAPSHOT | Kind.HUB:
                return task is not None and self._unnamed(it, task)
            case Kind.TASK:
                return self.folders.remove(it, self.store.body(task.id) if task else None)
            case Kind.SESSION | Kind.LOG | Kind.DELETED | Kind.BACKUP | Kind.LEFTOVER:
                return self.folders.remove(it, None)

    def _released(self, task: Task) -> bool:
        """With work that is unfit to be kept it stays; an old clone here has none that counts."""
        project, counts = self.store.project(task.project), not is_elsewhere(task, self.host)
        self.workspaces.release(project, task, counts=counts)
        return not self.workspaces.place(task.id).exists()

    def _unnamed(self, it: Found, task: Task) -> bool:
        """With earlier changes go the texts of TASK.md that these were judged with."""
        if it.kind is Kind.SNAPSHOT and self.leads:
            self.store.forget_texts(task.id)
        return self.refs.remove(self.store.project(task.project), it, task.branch)

    def _project_of(self, it: Used) -> str:
        if it.place in BY_PROJECT:
            return it.name.partition(".")[0]
        if it.place not in BY_TASK:
            return OF_HOME
        task = self.store.find(TaskId(it.name.partition(".")[0]))
        return task.project if task else OF_HOME


def _kind_of(it: Used) -> str:
    if it.place:
        return "repositories" if it.place == "repos" else it.place
    return "database" if it.name.startswith("lockgate.db") else "other"
