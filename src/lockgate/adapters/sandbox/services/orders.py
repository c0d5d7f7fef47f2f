"""How a command is started with its services: what the program beside this one is told."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.sandbox.services import serving
from lockgate.core.config.settings import INSTALLED_BY, Service
from lockgate.errors import Unavailable

PLACE, PREPARED = "/run/services", "/run/prepared"  # in a box: what they write, and start from
READY_WITHIN = 30  # seconds


class Where(Struct, frozen=True, kw_only=True):
    """Paths as the command sees them. `prepared` is empty where nothing was."""

    place: str
    told: str
    prepared: str = ""


def serving_first(
    services: Sequence[Service], where: Where, command: Sequence[str], ports: str = ""
) -> tuple[str, ...]:
    """The command line that starts them and then becomes the command.

    Without a command their data is made, and stays in the place. `ports` comes before all.
    """
    order: serving.Order = {
        "place": where.place,
        "told": where.told,
        "prepared": where.prepared,
        "within": READY_WITHIN,
        "ports": ports,
        "services": [_asked(it) for it in services],
    }
    return (sys.executable, "-I", "-S", serving.__file__, json.dumps(order), *command)


def must_be_installed(services: Sequence[Service]) -> None:
    for it in services:
        lacks = serving.missing(it.kind) if it.kind else ""
        if it.kind and lacks:
            raise Unavailable(
                f"the service {it.name} was not started",
                why=f"its program {lacks} is not installed on this machine",
                fix=f"install {it.kind} (Debian: apt-get install {INSTALLED_BY[it.kind]}), "
                "or start it by command in [[services]]",
            )


def data_version(services: Sequence[Service]) -> str:
    """What of the installed programs the data of these services depends on."""
    programs = [Path(serving.program(it.kind) or "") for it in services if it.kind == "postgres"]
    return " ".join(f"{it} {it.stat().st_size}" for it in map(Path.resolve, programs))


def _asked(it: Service) -> serving.Asked:
    return {
        "name": it.name,
        "kind": it.kind or "",
        "command": it.command,
        "ready": it.ready,
        "port": it.port,
        "env": dict(it.env),
        "prepare": it.prepare,
    }
