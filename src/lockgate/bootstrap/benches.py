"""Where commits are judged one after the other: what was set up for one serves the next."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from lockgate.adapters.workspaces import GitWorkspaces
from lockgate.adapters.workspaces.moving import Checkouts
from lockgate.adapters.workspaces.throw_away import throw_away_home
from lockgate.bootstrap.spot_check import Bench, bench_in
from lockgate.core.model.task import ProjectId, Task
from lockgate.ports import Project

MOST = 4  # that are kept


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A throw-away home that stays until it `goes`."""

    project: ProjectId
    workspaces: GitWorkspaces
    goes: ExitStack
    seen: dict[Path, bytes] = field(default_factory=dict[Path, bytes])


@dataclass(slots=True)
class Benches:
    """Those that nobody is at."""

    home: Path
    _idle: list[Kept] = field(default_factory=list[Kept])
    _lock: Lock = field(default_factory=Lock)
    _closed: bool = False

    @contextmanager
    def spot_checking(self, project: Project, task: Task) -> Generator[Bench]:
        """What cannot be set up, or ends in an error, is not kept."""
        kept = self._taken(project.id) or _made(self.home, project.id)
        with ExitStack() as on_error:
            on_error.callback(kept.goes.close)
            yield bench_in(kept.workspaces, project, task, kept.seen)
            on_error.pop_all()
        self._keep(kept)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle.pop().goes.close()

    def _taken(self, project: ProjectId) -> Kept | None:
        with self._lock:
            found = next((it for it in self._idle if it.project == project), None)
            if found:
                self._idle.remove(found)
            return found

    def _keep(self, kept: Kept) -> None:
        with self._lock:
            self._idle.append(kept)
            while self._idle and (self._closed or len(self._idle) > MOST):
                self._idle.pop(0).goes.close()


def _made(home: Path, project: ProjectId) -> Kept:
    goes = ExitStack()
    place = goes.enter_context(throw_away_home(home))
    return Kept(project, GitWorkspaces(place, check_out=Checkouts().check_out), goes)
