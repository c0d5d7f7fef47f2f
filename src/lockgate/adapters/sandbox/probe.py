"""Whether bubblewrap works here, and an overlay in it, found by running them."""

import functools
import os
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from lockgate.adapters.run import Cut, Finished
from lockgate.adapters.sandbox.bubblewrap import Box, boxed, closes_sockets, owner, uplink
from lockgate.adapters.sandbox.process import run_boxed
from lockgate.adapters.sandbox.scratch import OVER, Keeper, Room
from lockgate.adapters.sandbox.toolchain import PACKAGES, NotTrusted, trusted
from lockgate.core.model.agents import WORKSPACE
from lockgate.errors import Unavailable

WROTE = 99
ATTACK = f"if (: > /usr/lockgate-was-here) 2>/dev/null; then exit {WROTE}; fi"
CHANGES = 'test "$(cat file)" = before && echo after > file && test "$(cat file)" = after'


@functools.cache
def trouble(bwrap: str | None = None) -> str | None:
    """Why nothing can be enclosed here; None where a program ran and could not write outside."""
    if not sys.platform.startswith("linux"):
        return f"bubblewrap is made for Linux, and this is {sys.platform}"
    try:
        for program in PACKAGES:
            trusted(program)
        made = boxed(_PROBE, ("/bin/sh", "-c", ATTACK), bwrap=bwrap)
        done = run_boxed(made, deadline=20.0)
    except NotTrusted as error:
        return f"{error.why}; {error.fix}"
    except Unavailable as error:
        return str(error)
    if done.code == WROTE:
        return "a program in the sandbox wrote outside of it"
    if done.cut is None and done.code == 0:
        return None
    said = done.err.strip() or f"it ended with {done.code}"
    return f"bubblewrap does not work here: {said}{_HINT if done.cut is Cut.BOX else ''}"


def sockets_closed_by() -> str:
    """What keeps an agent from the abstract sockets of its user; empty where nothing does."""
    if trouble() is not None:
        return ""
    if closes_sockets(trusted("bwrap")):
        return "Landlock"
    return "a network of their own (pasta)" if uplink() else ""


def can_overlay(directory: Path) -> bool:
    """Whether a tree on that disk can be laid under one that is thrown away."""
    device = directory.stat().st_dev
    if device not in _OVERLAYS:
        _OVERLAYS[device] = _overlay_works(directory)
    return _OVERLAYS[device]


def _overlay_works(directory: Path) -> bool:
    with tempfile.TemporaryDirectory(prefix=".lockgate-probe-", dir=directory) as name:
        checkout, place = Path(name).resolve() / "checkout", Path(name).resolve() / "room"
        for made in (checkout, place):
            made.mkdir()
            os.chown(made, *owner())
        (checkout / "file").write_text("before")
        os.chown(checkout / "file", *owner())
        room = Room(place=place, checkout=checkout, size_mb=4)
        box = Box(mounts=room.mounts(OVER), directory=WORKSPACE, env={})
        made_so = boxed(box, ("/bin/sh", "-c", CHANGES))
        entered = replace(made_so, direct=room.entered_by(made_so.direct, None, 4096))
        with closing(Keeper(room, 1024, 4096, None)) as keeper:
            try:
                done = run_boxed(entered, deadline=20.0, warden=keeper)
            except Unavailable:
                return False
            unchanged = (checkout / "file").read_text() == "before"
            return done == Finished(0, "", "") and unchanged and keeper.sees_its_room


_OVERLAYS: dict[int, bool] = {}
_PROBE = Box(mounts=(), directory="/", env={})
_HINT = (
    "; user namespaces may be switched off: look at the sysctls user.max_user_namespaces, "
    "kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns"
)
