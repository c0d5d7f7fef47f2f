"""The hosts of a fleet, as people look at them and steer them."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from lockgate.core.fleet import (
    Asked,
    FleetSeen,
    Needed,
    files_at,
    host_with_files,
    needs_at,
    seen_by,
    task_with_files,
    ways_to,
)
from lockgate.core.hosts import Host, HostState
from lockgate.core.jobs import ANY, HostLost, place_of
from lockgate.core.model.people import Right
from lockgate.core.model.task import Session, Task
from lockgate.errors import LockgateError, Refused
from lockgate.ports import Clock, Store
from lockgate.ports.lanes import Hosts, Lanes
from lockgate.services.task.callers import Caller, must_be_human
from lockgate.services.task.projects import task_named


class FleetControl(Struct, frozen=True):
    hosts: Hosts
    lanes: Lanes
    clock: Clock

    def status(self, caller: Caller) -> FleetSeen:
        must_be_human(caller, "the hosts were not shown", Right.LOOK)
        rows, aside = self.lanes.rows(), self.lanes.set_aside()
        return seen_by(self.hosts.all(), rows, self.clock.now(), aside)

    def drain(self, name: str, caller: Caller, *, move: bool = False) -> int:
        """It goes on with what it has, or its tasks go on elsewhere; it gets nothing new."""
        self._mark(name, HostState.DRAINING, caller, f"host {name} was not drained")
        return self._lose(name, moves=True) if move else 0

    def undrain(self, name: str, caller: Caller) -> None:
        self._mark(name, HostState.UP, caller, f"host {name} gets nothing new still")

    def forget(self, name: str, caller: Caller) -> int:
        """It is lost, now; how many tasks go on elsewhere."""
        what = f"host {name} was not forgotten"
        must_be_human(caller, what, Right.ADMIN)
        if not self.hosts.forget(name):
            raise _unknown(name, what)
        return self._lose(name)

    def has_files(self, argv: Sequence[str], store: Store, caller: Caller) -> Host | None:
        """The host that alone has the files which a command needs; None where there is none."""
        asked = task_with_files(argv)
        hosts = self.hosts.all() if asked else ()
        if not (asked and hosts):
            return None
        try:
            task = store.load(task_named(store, asked[0], caller))
        except LockgateError:
            return None  # the command itself says what is wrong with the name
        return host_with_files(argv, task, store.sessions(task.id), hosts)

    def _lose(self, name: str, *, moves: bool = False) -> int:
        """The leader says these to the engine: nobody else need know one."""
        tasks = self.hosts.tasks_at(name)
        for task, project in tasks:
            job = HostLost(task, project, name, moves)
            self.lanes.ask(job, needs_at(place_of(job, None)) or ANY, self.clock.now())
        return len(tasks)

    def _mark(self, name: str, state: HostState, caller: Caller, what: str) -> None:
        must_be_human(caller, what, Right.ADMIN)
        if not self.hosts.mark(name, state):
            raise _unknown(name, what)


class FilesOfHosts(Struct, frozen=True):
    """Whether the files of a task are here, on this start of this machine."""

    hosts: Hosts
    start: Callable[[], str]

    def must_be_here(
        self, asked: Asked, task: Task, needed: Needed, session: Session | None = None
    ) -> None:
        """Refused where another host of a fleet alone has them."""
        name = files_at(needed, task, session)
        host = self.hosts.find(name) if name else None
        if host is None or host.boot == self.start():
            return
        why = f"the files of task {task.id} are on host {host.name}"
        raise Refused(asked.what, why=why, fix=ways_to(host, asked))


def may_serve(caller: Caller, what: str) -> None:
    """A host runs agents and lands changes with the logins of its home."""
    must_be_human(caller, what, Right.ADMIN)


def _unknown(name: str, what: str) -> Refused:
    return Refused(what, why=f"there is no host {name!r}", fix="lockgate fleet status")
