"""Whether bubblewrap works here, and an overlay in it, found by running them."""

import functools
import os
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from lockgate.adapters.run import Cut, Finished, run
from lockgate.adapters.sandbox.bubblewrap import Box, boxed, closes_sockets, owner, uplink
from lockgate.adapters.sandbox.layered import How, Layered, make_room
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


def can_keep_overlay(directory: Path) -> bool:
    """Whether what is written over a layer can be kept on that disk."""
    device = directory.stat().st_dev
    if device not in _KEPT:
        _KEPT[device] = _kept_overlay_works(directory)
    return _KEPT[device]


def _kept_overlay_works(directory: Path) -> bool:
    with tempfile.TemporaryDirectory(prefix=".lockgate-probe-", dir=directory) as name:
        top = Path(name).resolve()
        top.chmod(0o755)
        for made in (top / "layer" / "d", top / "workspace" / "d"):
            made.mkdir(parents=True)
            os.chown(made, *owner())
        (top / "layer" / "d" / "file").write_text("before")
        os.chown(top / "layer" / "d" / "file", *owner())
        it = Layered(layer=top / "layer", room=top / "room", folders=("d",), how=How.OVERLAY)
        make_room(it)
        box = Box(mounts=it.mounts(top / "workspace"), directory=f"{WORKSPACE}/d", env={})
        made_so = boxed(box, ("/bin/sh", "-c", CHANGES), entering=it.entering)
        try:
            done = run_boxed(made_so, deadline=20.0)
            written = (it.written / "d" / "file").read_text()
        except (Unavailable, OSError):
            return False
        unchanged = (top / "layer" / "d" / "file").read_text() == "before"
        return done == Finished(0, "", "") and unchanged and written == "after\n"


def can_reflink(source: Path, target: Path) -> bool:
    """Whether a copy from one directory to the other takes no room."""
    devices = (source.stat().st_dev, target.stat().st_dev)
    if devices not in _REFLINKS:
        with tempfile.TemporaryDirectory(prefix=".lockgate-probe-", dir=target) as name:
            try:
                with tempfile.NamedTemporaryFile(dir=source) as file:
                    file.write(b"x" * 4096)
                    file.flush()
                    copying = ("cp", "--reflink=always", "--", file.name, name)
                    _REFLINKS[devices] = run(copying).code == 0
            except (OSError, Unavailable):
                return False
    return _REFLINKS[devices]


_OVERLAYS: dict[int, bool] = {}
_KEPT: dict[int, bool] = {}
_REFLINKS: dict[tuple[int, int], bool] = {}
_PROBE = Box(mounts=(), directory="/", env={})
_HINT = (
    "; user namespaces may be switched off: look at the sysctls user.max_user_namespaces, "
    "kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns"
)
