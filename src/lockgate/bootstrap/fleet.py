"""The fleet without Temporal: how this host is set up, and what people see and steer."""

import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from msgspec.structs import replace

from lockgate.adapters.hub import GitExchange
from lockgate.adapters.hub.trial import GitTrial
from lockgate.adapters.user_files import fleet_of
from lockgate.bootstrap.app import App
from lockgate.bootstrap.rules import database_of
from lockgate.core.fleet import (
    FleetSettings,
    HostRole,
    problem_in,
    trouble_among,
)
from lockgate.core.hosts import clock_trouble
from lockgate.errors import BadConfig, LockgateError
from lockgate.services.setup.hubs import Hubs
from lockgate.services.task.callers import must_be_human
from lockgate.services.task.fleet import may_serve

if TYPE_CHECKING:
    from lockgate.bootstrap.worker import Worker

NOTHING = "the host was not started"


def hubs_of(it: App) -> Hubs:
    """A host that waits after each change of leader needs no atomic push."""
    return Hubs(it.store, GitExchange(it.home), GitTrial(), fleet_of(it.home).fleet.fenced)


def host_settings(
    it: App,
    name: str = "",
    labels: Sequence[str] = (),
    slots: int | None = None,
    judges: int | None = None,
    roles: Sequence[str] = (),
) -> FleetSettings:
    """`fleet.toml` of the home, and over it what the command line says; BadConfig else."""
    told = fleet_of(it.home)
    own = told.host
    own = replace(
        own,
        name=name or own.name or platform.node(),
        labels=tuple(labels) or own.labels,
        slots=own.slots if slots is None else slots,
        judges=own.judges if judges is None else judges,
        roles=tuple(HostRole(role) for role in roles) or own.roles,
    )
    settings = replace(told, host=own)
    why = problem_in(settings)
    if why:
        raise BadConfig(NOTHING, why=why, fix=f"change it in {it.home / 'fleet.toml'}")
    return settings


def open_host(
    it: App,
    settings: FleetSettings,
    answer: Callable[..., None],  # a call at the door
    report: Callable[[str], None],
) -> "AbstractContextManager[Worker | None]":
    """BadConfig where this program or this home cannot take part in a fleet."""
    may_serve(it.caller, NOTHING)
    _must_be_able(it, NOTHING)
    from lockgate.bootstrap.worker import working

    return working(it, settings, answer, report)


def _must_be_able(it: App, what: str) -> None:
    if find_spec("temporalio") is None:
        fix = "pip install 'lockgate[temporal]'"
        raise BadConfig(what, why="the library temporalio is not installed", fix=fix)
    if not database_of(it.home, os.environ).startswith("postgres"):
        fix = "lockgate db migrate-to postgresql://user@host/name, or set LOCKGATE_DATABASE"
        raise BadConfig(what, why="several hosts cannot share a database in a file", fix=fix)


def check_fleet(it: App) -> tuple[tuple[str, str], ...]:
    """What was looked at, and what is wrong with it in words; empty where nothing is."""
    must_be_human(it.caller, "the fleet was not checked")
    return tuple((what, _trouble(look)) for what, look in _looks(it))


def _looks(it: App) -> tuple[tuple[str, Callable[[], str]], ...]:
    return (
        ("settings", lambda: _settings(it)),
        ("database", lambda: _database(it)),
        ("clock", lambda: clock_trouble("this machine", time.time() - it.witness.clock.now())),
        ("Temporal", lambda: _temporal(it)),
        ("hosts", lambda: _hosts(it)),
        ("jobs", lambda: _jobs(it)),
        ("hubs", lambda: _hubs(it)),
        ("projects", lambda: _projects(it)),
    )


def _trouble(look: Callable[[], str]) -> str:
    try:
        return look()
    except LockgateError as error:
        return f"{error} ({error.fix})"


def _settings(it: App) -> str:
    host_settings(it)
    return ""


def _database(it: App) -> str:
    _must_be_able(it, "no fleet can use this home")
    return ""


def _temporal(it: App) -> str:
    _must_be_able(it, "Temporal was not asked")
    from lockgate.adapters.engine.connection import Connection

    Connection(fleet_of(it.home).temporal).close()
    return ""


def _hosts(it: App) -> str:
    return "; ".join(trouble_among(it.hosts.status(it.caller)))


def _jobs(it: App) -> str:
    return "; ".join(f"{row.lane}: {row.why}" for row in it.hosts.status(it.caller).jobs if row.why)


def _hubs(it: App) -> str:
    checked = hubs_of(it).checked()
    bad = ((name, one) for name, found in checked.items() for one in found if not one.ok)
    return "; ".join(f"{name}: {one.what}: {one.why} ({one.fix})" for name, one in bad)


def _projects(it: App) -> str:
    """Without a hub a project's jobs are done by the leader's host alone."""
    alone = [project.name for project in it.store.projects() if not project.url]
    return f"no hub, so one host does it all: {', '.join(alone)}" if alone else ""
