"""`doctor --deep`: the database against the files and refs of a home; what is safe is repaired."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress

from msgspec import Struct

from lockgate.core.lifecycle.decision import MirrorTask
from lockgate.core.lifecycle.records import ENDED
from lockgate.core.model.task import ProjectId, SessionId, Task, TaskId
from lockgate.core.orphans import Known, Orphan, orphans
from lockgate.core.text.task_file import Missing, frontmatter
from lockgate.errors import LockgateError
from lockgate.ports import Project, Store, TaskFiles, of_project
from lockgate.ports.upkeep import Inspector
from lockgate.services.setup.doctor import Part

BATCH = 1000
SHOWN = 3  # names that are told of many
REPAIR = "lockgate doctor --deep --repair"


class Inspection(Struct, frozen=True, kw_only=True):
    """With `repair` what is safe is put right, and each part says what was done."""

    store: Store
    files: TaskFiles
    inspector: Inspector
    repair: bool

    def parts(self) -> Iterator[Part]:
        tasks = tuple(self._tasks())
        yield self._damage()
        yield self._texts(tasks)
        yield self._commits(tasks)
        yield self._repositories()
        yield self._sessions()
        yield self._orphans(tasks)
        yield self._branches(frozenset(it.id for it in tasks))
        yield self._layers()
        yield self._mounts()

    def _damage(self) -> Part:
        found = self.inspector.damage()
        return _part("database tables", found, "restore the database from a backup")

    def _texts(self, tasks: Iterable[Task]) -> Part:
        """The database has the text of each TASK.md, so one that is gone can be written again."""
        gone = [it for it in tasks if it.status not in ENDED and self._has_none(it)]
        for it in gone if self.repair else ():
            self.files.write(it.id, frontmatter(it), self.store.body(it.id) or "")
        return self._repaired("TASK.md of live tasks", [it.id for it in gone], "written again")

    def _has_none(self, task: Task) -> bool:
        pending = self.store.pending_effects(task.id, BATCH)
        to_write = any(isinstance(it.effect, MirrorTask) for it in pending)
        return not to_write and isinstance(self.files.read(task.id), Missing)

    def _commits(self, tasks: Iterable[Task]) -> Part:
        """What is judged, or lands next, must be in judge.git; what landed, in the repository."""
        judged, landed = (
            defaultdict[ProjectId, set[str]](set),
            defaultdict[ProjectId, set[str]](set),
        )
        for it in tasks:
            if it.candidate and it.status not in ENDED:
                judged[it.project].add(it.candidate)
            if it.landed:
                landed[it.project].add(it.landed)
        found = list[str]()
        for project in self.store.projects():
            for known, theirs in ((judged, False), (landed, True)):
                asked = sorted(known[project.id])
                lacking = self.inspector.lacking(project, asked, theirs=theirs)
                found += [f"{project.name}: {it}" for it in lacking]
        fix = "git fsck there; bring the commits back from another clone or a backup"
        return _part("commits of tasks", found, fix)

    def _repositories(self) -> Part:
        found = [f"{it.name}: {why}" for it in self.store.projects() for why in self._unsound(it)]
        return _part("repositories of Lockgate", found, "restore repos/ from a backup")

    def _unsound(self, project: Project) -> Iterable[str]:
        return self.inspector.unsound(project)

    def _sessions(self) -> Part:
        """A row that says that a session runs is right only where its runner does."""
        lost = [it.id for it in self.store.sessions_alive() if not self.inspector.is_running(it.id)]
        return _part("sessions at work", lost, "lockgate up: it takes them up again")

    def _orphans(self, tasks: Iterable[Task]) -> Part:
        folders = self.inspector.folders()
        sessions = [it for it in folders["sessions"] if self._is_known(it)]
        known = Known(
            tasks=frozenset(it.id for it in tasks),
            sessions=frozenset(sessions),
            projects=frozenset(it.id for it in self.store.projects()),
        )
        found = tuple(orphans(folders, known))
        if self.repair:
            for it in found:
                self._put_right(it)
        names = [f"{it.folder}/{it.name}" for it in found]
        return self._repaired("directories of nothing known", names, "moved to deleted/ or removed")

    def _branches(self, tasks: frozenset[str]) -> Part:
        """In the user's repositories; one that stays is told with the reason."""
        name, found, left = "branches of tasks that are gone", list[str](), list[str]()
        for project in self.store.projects():
            try:
                branches = tuple(self.inspector.branches(project, tasks))
            except LockgateError as error:
                left.append(f"{project.name}: {error}")
                continue
            for it in branches:
                why = it.why_it_stays
                stays = why or (self.repair and not self.inspector.remove_branch(project, it))
                told = f"{project.name}: {it.name} of {it.task}"
                found.append(f"{told} ({why or 'it moved'})" if stays else told)
                left += found[-1:] if stays else ()
        if left and self.repair:
            return _part(name, left, "look at each, then: git branch --delete --force NAME")
        return self._repaired(name, [*found, *(it for it in left if it not in found)], "removed")

    def _is_known(self, session: str) -> bool:
        row = self.store.session(SessionId(session))
        return row is not None or self.inspector.is_running(session)

    def _put_right(self, it: Orphan) -> None:
        """What somebody wrote is moved; the rest can be made again."""
        name = f"{it.folder}/{it.name}"
        with suppress(LockgateError):
            if it.is_work:
                self.inspector.put_aside(name)
            else:
                self.inspector.remove(name)

    def _layers(self) -> Part:
        found = self.inspector.half_made()
        for it in found if self.repair else ():
            self.inspector.remove(it)
        return self._repaired("set-up layers", list(found), "half-made, and removed")

    def _mounts(self) -> Part:
        found = self.inspector.mounts()
        return _part("mounts below the home", found, f"umount {' '.join(found)}")

    def _repaired(self, name: str, found: list[str] | list[TaskId], done: str) -> Part:
        if found and self.repair:
            return Part(name=name, found=f"{_named(found)}: {done}")
        return _part(name, found, REPAIR)

    def _tasks(self) -> Iterator[Task]:
        after: TaskId | None = None
        while True:
            page = self.store.page(of_project(None), after, BATCH)
            yield from page.tasks
            after = page.after
            if after is None:
                return


def _part(name: str, found: Iterable[str], fix: str) -> Part:
    told = _named(list(found))
    if not told:
        return Part(name=name, found="nothing wrong")
    return Part(name=name, found="not as the database has it", costs=told, fix=fix)


def _named(found: list[str] | list[TaskId]) -> str:
    shown = ", ".join(found[:SHOWN])
    more = len(found) - SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
