"""The hosts that share a home's database, and which of them this home is."""

from functools import partial
from pathlib import Path

from lockgate.adapters.store.database import Database
from lockgate.adapters.store.hosts import SqlHosts
from lockgate.adapters.store.lanes import SqlLanes
from lockgate.adapters.system import id_of
from lockgate.ports import Clock
from lockgate.services.task.fleet import FilesOfHosts, FleetControl


def fleet_control(database: Database, clock: Clock) -> FleetControl:
    return FleetControl(SqlHosts(database), SqlLanes(database), clock)


def files_of(home: Path, database: Database) -> FilesOfHosts:
    return FilesOfHosts(SqlHosts(database), partial(start_of, home))


def start_of(home: Path) -> str:
    """Which start of which machine this home is on: two hosts never say the same.

    Containers of one machine share its start, and may have their homes at one path.
    """
    from lockgate.adapters.sessions.runner.proc import boot  # only a host of a fleet needs it

    return f"{boot()} {id_of(home)}"
