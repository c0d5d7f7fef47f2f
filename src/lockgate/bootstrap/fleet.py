"""The fleet without Temporal: how this host is set up, and what people see and steer."""

import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from lockgate.adapters.hub import GitExchange
from lockgate.adapters.hub.trial import GitTrial
from lockgate.adapters.user_files import fleet_of
from lockgate.bootstrap.app import App
from lockgate.bootstrap.rules import database_of, home_of
from lockgate.core.fleet import (
    FleetSettings,
    HostRole,
    labels_lacking,
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
    home: Path,
    name: str = "",
    labels: Sequence[str] = (),
    slots: int | None = None,
    judges: int | None = None,
    roles: Sequence[str] = (),
) -> FleetSettings:
    """`fleet.toml` of the home, and over it what the command line says; BadConfig else."""
    told = fleet_of(home)
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
        raise BadConfig(NOTHING, why=why, fix=f"change it in {home / 'fleet.toml'}")
    return settings


def open_host(
    it: App,
    settings: FleetSettings,
    answer: Callable[..., None],  # a call at the door
    report: Callable[[str], None],
) -> "AbstractContextManager[Worker | None]":
    """BadConfig where this program or this home cannot take part in a fleet."""
    may_serve(it.caller, NOTHING)
    _must_have_temporalio(NOTHING)
    _must_be_shared(it.home, NOTHING)
    from lockgate.bootstrap.worker import working

    return working(it, settings, answer, report)


def _must_have_temporalio(what: str) -> None:
    if find_spec("temporalio") is None:
        fix = "pip install 'lockgate[temporal]'"
        raise BadConfig(what, why="the library temporalio is not installed", fix=fix)


def _must_be_shared(home: Path, what: str) -> None:
    if not database_of(home, os.environ).startswith("postgres"):
        fix = "lockgate db migrate-to postgresql://user@host/name, or set LOCKGATE_DATABASE"
        raise BadConfig(what, why="several hosts cannot share a database in a file", fix=fix)


class Look(Struct, frozen=True):
    """What `fleet check` found; all empty where it is in order."""

    trouble: str = ""  # what is wrong, and what to do
    note: str = ""  # what works with a limit, or was not looked at


def check_fleet(
    opened: Callable[[], App], environ: Mapping[str, str] = os.environ
) -> Mapping[str, Look]:
    """By what was looked at. Where the database does not open, the rest is looked at all the same.

    Who calls with a session's token is refused then: the database says whose it is.
    """
    try:
        it = opened()
    except LockgateError as error:
        if environ.get("LOCKGATE_TOKEN"):
            raise
        return _without_database(home_of(environ), error)
    must_be_human(it.caller, "the fleet was not checked")
    return {what: _looked(look) for what, look in _looks(it).items()}


def _looks(it: App) -> Mapping[str, Callable[[], Look]]:
    return {
        "settings": lambda: _settings(it.home),
        "database": lambda: _database(it.home),
        "clock": lambda: _clock(it),
        "Temporal": lambda: _temporal(it.home),
        "hosts": lambda: _said(trouble_among(it.hosts.status(it.caller))),
        "jobs": lambda: _jobs(it),
        "labels": lambda: _labels(it),
        "hubs": lambda: _hubs(it),
        "projects": lambda: _projects(it),
    }


def _without_database(home: Path, error: LockgateError) -> Mapping[str, Look]:
    unknown = Look(note="not looked at: that needs the database")
    known = {
        "settings": _looked(lambda: _settings(home)),
        "database": _in_words(error),
        "Temporal": _looked(lambda: _temporal(home)),
    }
    rest = ("clock", "hosts", "jobs", "labels", "hubs", "projects")
    return {**known, **dict.fromkeys(rest, unknown)}


def _looked(look: Callable[[], Look]) -> Look:
    try:
        return look()
    except LockgateError as error:
        return _in_words(error)


def _in_words(error: LockgateError) -> Look:
    return Look(f"{error} ({error.fix})")


def _said(trouble: Iterable[str], notes: Iterable[str] = ()) -> Look:
    return Look("; ".join(trouble), "; ".join(notes))


def _settings(home: Path) -> Look:
    host_settings(home)
    return Look()


def _database(home: Path) -> Look:
    _must_be_shared(home, "no fleet can use this home")
    return Look()


def _clock(it: App) -> Look:
    return Look(clock_trouble("this machine", time.time() - it.witness.clock.now()))


def _temporal(home: Path) -> Look:
    _must_have_temporalio("Temporal was not asked")
    from lockgate.adapters.engine.connection import Connection

    Connection(fleet_of(home).temporal).close()
    return Look()


def _jobs(it: App) -> Look:
    jobs = it.hosts.status(it.caller).jobs
    return _said(f"{row.lane}: {row.why}" for row in jobs if row.why)


def _labels(it: App) -> Look:
    """Also those that no job asks for yet."""
    seen, found = it.hosts.status(it.caller), list[str]()
    for project in it.store.projects():
        try:
            settings = it.configuration.settings_of(project)
        except LockgateError as error:
            found.append(f"{project.name}: {_in_words(error).trouble}")
            continue
        lacking = labels_lacking(settings, seen, hub=bool(project.url))
        fix = "(give a host the label in its fleet.toml, or take it out of needs)"
        found += [f"{project.name}: {why} {fix}" for why in lacking]
    return _said(found)


def _hubs(it: App) -> Look:
    checked = hubs_of(it).checked()
    found = [(f"{name}: {one.text}", one) for name, some in checked.items() for one in some]
    wrong = (text for text, one in found if not one.ok)
    return _said(wrong, (text for text, one in found if one.ok and one.why))


def _projects(it: App) -> Look:
    """Without a hub a project's jobs are done by the leader's host alone."""
    alone = [project.name for project in it.store.projects() if not project.url]
    return Look(note=f"no hub, so one host does it all: {', '.join(alone)}") if alone else Look()
