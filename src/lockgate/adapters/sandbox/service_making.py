"""Makes the data that instances of services start from, once, in a box."""

import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.run import Finished
from lockgate.adapters.sandbox.bubblewrap import Box, Mount, boxed, owner
from lockgate.adapters.sandbox.process import Boxed, run_boxed
from lockgate.adapters.sandbox.services.orders import PLACE, PREPARED, Where, serving_first
from lockgate.core.config.settings import Service
from lockgate.core.model.agents import WORKSPACE
from lockgate.errors import Unavailable

SECONDS = 1800.0
TAIL = 2000
TOLD = "/run/told"


class Making(Struct, frozen=True, kw_only=True):
    """What is made, of what, and what it may see."""

    services: Sequence[Service]
    target: Path  # is there whole, or not at all
    start_from: Path | None = None
    tree: Path | None = None  # a checkout that nobody else uses; `prepare` runs in it
    mounts: tuple[Mount, ...] = ()
    hidden: tuple[str, ...] = ()
    sandboxed: bool = True


def make(it: Making) -> None:
    """Unavailable, with the last words of what failed, where it cannot be made."""
    new = it.target.with_name(f".new-{it.target.name}-{secrets.token_hex(4)}")
    new.mkdir(parents=True, mode=0o711)
    for part in ("place", "told"):
        (new / part).mkdir(mode=0o700)
        if it.sandboxed:
            os.chown(new / part, *owner())
    done = run_boxed(_boxed(it, new) if it.sandboxed else _bare(it, new), deadline=SECONDS)
    if done.code != 0 or done.cut:
        raise _not_made(it, done)
    (new / "place").rename(it.target)


def _boxed(it: Making, new: Path) -> Boxed:
    seen = (
        Mount(source=new / "place", target=PLACE, writable=True),
        Mount(source=new / "told", target=TOLD, writable=True),
        *((Mount(source=it.start_from, target=PREPARED),) if it.start_from else ()),
        *((Mount(source=it.tree, target=WORKSPACE, writable=True),) if it.tree else ()),
    )
    box = Box(
        mounts=(*it.mounts, *seen),
        directory=WORKSPACE if it.tree else "/",
        env={"CI": "1"},
        hidden=it.hidden,
    )
    where = Where(place=PLACE, told=TOLD, prepared=PREPARED if it.start_from else "")
    return boxed(box, serving_first(it.services, where, ()))


def _bare(it: Making, new: Path) -> Boxed:
    where = Where(place=f"{new}/place", told=f"{new}/told", prepared=str(it.start_from or ""))
    return Boxed(
        program=(),
        options=(),
        argv=serving_first(it.services, where, ()),
        directory=str(it.tree or "/"),
        environment={
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": f"{new}/told",
            "LANG": "C.UTF-8",
            "CI": "1",
        },
    )


def _not_made(it: Making, done: Finished) -> Unavailable:
    names = ", ".join(service.name for service in it.services)
    why = f"it took longer than {SECONDS:g} s" if done.cut else done.err.strip()[-TAIL:]
    return Unavailable(
        f"the data of the service {names} was not prepared",
        why=why or f"it exited {done.code}",
        fix="mend [[services]] in .lockgate/config.toml, or what its prepare runs, then try again",
    )
