"""The folders of a home: what in them may be old, how large it is, and its removal."""

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from lockgate.adapters.sessions.sessions import ProcessSessions
from lockgate.adapters.task_file import TaskFiles
from lockgate.adapters.workspaces.files import discard, remove, size_of
from lockgate.adapters.workspaces.repositories import task_lock
from lockgate.core.model.task import SessionId, TaskId
from lockgate.core.retention import Found, Kind
from lockgate.core.text.task_file import Readable
from lockgate.ports.upkeep import Used

# The rooms that a task leaves behind only where something was killed.
ROOMS = ("homes", "reviews", "runs", "trials", "workspaces")
COPIED = ("history.jsonl", "checkpoints")  # of a task: what is needed is in the database
_HALF_MADE = re.compile(r"\.(?:new|old|take|copy)-(.+)-[0-9a-f]{8}")
_NAME = re.compile(r"[a-z0-9-]{1,40}")
ONE_LOG = "orchestrator.log"
BLOCK = 512  # bytes in which a file's space is counted


class DiskFolders:
    """The HomeFolders port. Times of files are told by the clock `now`, not by this machine's."""

    def __init__(self, home: Path, now: Callable[[], float] = time.time) -> None:
        self._now, self._behind = now, 0.0
        self._home, self._sessions, self._files = home, ProcessSessions(home), TaskFiles(home)

    def found(self) -> Iterator[Found]:
        self._behind = self._now() - time.time()
        yield from self._rooms()
        for it in self._in("sessions"):
            yield self._thing(Kind.SESSION, it, it.name.partition(".")[0])
        for it in self._in("tasks"):
            yield self._thing(Kind.TASK, it, it.name)
        for it in self._in("deleted"):
            yield self._thing(Kind.DELETED, it)
        yield from self._but_newest(Kind.LOG, "logs", lambda it: it.name == ONE_LOG)
        newest = max(self._in("backups"), key=_changed, default=None)
        yield from self._but_newest(Kind.BACKUP, "backups", lambda it: it == newest)

    def size(self, it: Found) -> int:
        return _on_disk(self._home / it.name)

    def remove(self, it: Found, text: str | None) -> bool:
        """A session that runs stays, whatever was said of it; so does a TASK.md that is new."""
        place = self._home / it.name
        match it.kind:
            case Kind.SESSION:
                return self._remove_session(SessionId(place.name))
            case Kind.TASK:
                return self._remove_files(TaskId(place.name), text)
            case Kind.LEFTOVER:
                self._remove_room(place, it.task)
            case Kind.LOG | Kind.DELETED | Kind.BACKUP:
                remove(place)
            case Kind.WORKSPACE | Kind.BRANCH | Kind.SNAPSHOT | Kind.HUB:
                pass  # they go by git
        return not place.exists()

    def used(self) -> Iterator[Used]:
        """Every entry of the home, one level down where it is a folder."""
        for place in sorted(self._home.iterdir()):
            if not place.is_dir() or place.is_symlink():
                yield Used("", place.name, _on_disk(place))
                continue
            yield Used(place.name, "", _own(place))
            for it in self._in(place.name, hidden=True):
                yield Used(place.name, it.name, _on_disk(it))

    def _rooms(self) -> Iterator[Found]:
        """A workspace is one where it is whole; what a killed process left beside it is not."""
        for room in ROOMS:
            for it in self._in(room, hidden=True):
                half = _HALF_MADE.fullmatch(it.name)
                name = half[1] if half else it.name
                if not _NAME.fullmatch(name):
                    continue
                whole = room == "workspaces" and not half
                yield self._thing(Kind.WORKSPACE if whole else Kind.LEFTOVER, it, name)

    def _but_newest(self, kind: Kind, folder: str, used: Callable[[Path], bool]) -> Iterator[Found]:
        for it in self._in(folder):
            yield self._thing(kind, it, used=used(it))

    def _in(self, folder: str, *, hidden: bool = False) -> Iterator[Path]:
        with suppress(FileNotFoundError):
            listed = sorted((self._home / folder).iterdir())
            yield from (it for it in listed if hidden or not it.name.startswith("."))

    def _thing(self, kind: Kind, path: Path, task: str = "", *, used: bool = False) -> Found:
        name = str(path.relative_to(self._home))
        last = _changed(path) + self._behind
        return Found(kind=kind, name=name, last=last, task=task, used=used)

    def _remove_session(self, id: SessionId) -> bool:
        place = self._home / "sessions" / id
        if self._sessions.started(id) and self._sessions.exit_of(id) is None:
            return False
        shutil.rmtree(place, ignore_errors=True)
        return not place.exists()

    def _remove_files(self, id: TaskId, text: str | None) -> bool:
        """TASK.md goes only where the database has the very text: it can be written again."""
        place = self._home / "tasks" / id
        for name in COPIED:
            remove(place / name)
        found = self._files.read(id)
        if isinstance(found, Readable) and found.body == text:
            remove(place / "TASK.md")
            with suppress(OSError):  # something else is in it
                place.rmdir()
        return not place.exists()

    def _remove_room(self, place: Path, task: str) -> None:
        with task_lock(self._home, task):
            discard(place)


def _changed(path: Path) -> float:
    """When it, or what lies in it, was made, renamed or removed last."""
    times = [_time(path)]
    with suppress(OSError), os.scandir(path) as entries:
        times += [_time(Path(it.path)) for it in entries]
    return max(times)


def _time(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def _on_disk(path: Path) -> int:
    """With what it takes itself."""
    return _own(path) + (size_of(path) if path.is_dir() and not path.is_symlink() else 0)


def _own(path: Path) -> int:
    try:
        return path.lstat().st_blocks * BLOCK
    except OSError:
        return 0
