"""The folders of a layer that sessions mount: chosen, made ready, carried over to the next layer.

Only folders that never belong to a change, so that programs outside of the sandbox do not need
them.
"""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from lockgate.adapters.sandbox import Box, Mount, boxed, run_boxed
from lockgate.adapters.sandbox.layered import (
    How,
    Layered,
    is_folder,
    layered_at,
    make_room,
    note,
    place_of,
    room_in,
)
from lockgate.adapters.sandbox.probe import can_keep_overlay, can_reflink
from lockgate.adapters.workspaces.clones import Order
from lockgate.adapters.workspaces.files import made_mark, remove
from lockgate.adapters.workspaces.layer_notes import note_of
from lockgate.adapters.workspaces.layers import SECONDS, check
from lockgate.core.model.agents import WORKSPACE

_GLOB = re.compile(r"[\\*?\[\]]")
# What the agent has installed and the new layer has not; all else is as the new layer has it.
_CARRY_OVER = """
export LC_ALL=C
list() { cd "$1" && shift && find "$@" ! -type d ! -type c -print0 2>/dev/null | sort -z; }
(list /before "$@") >/tmp/before
(list /layer "$@") >/tmp/layer
cd /before || exit 2
comm -z -23 /tmp/before /tmp/layer | xargs -0 -r cp -dp --parents -t /after -- || exit 2
"""


def to_mount(order: Order, layer: Path, place: Path, names: Sequence[str]) -> Layered | None:
    """None where all of the layer is copied: by reflink, or because it is small.

    `names` are copied into the workspace besides.
    """
    if place != order.home / "workspaces" / order.name:
        return None
    folders = tuple(it for it in note_of(layer).folders if _is_free(place, it, names))
    how = _how(layer, place) if folders else None
    if how is None:
        return None
    return Layered(layer=layer, room=room_in(place, layer), folders=folders, how=how)


def copying(it: Layered | None) -> str:
    """The lines of a shell that copy the rest of `$1` into `$2`, and make what is mounted on."""
    if it is None:
        return 'cp -a --reflink=auto --remove-destination "$1/." "$2/" || exit 2\n'
    left_out = " -o ".join(f"-path {shlex.quote(_pattern(name))}" for name in it.folders)
    folders = " ".join(f'"$2"/{shlex.quote(name)}' for name in it.folders)
    return f"""mkdir -p -- {folders} || exit 2
cd "$1" || exit 2
find . \\( {left_out} \\) -prune -o \\( ! -type d -o -empty \\) -print0 |
    xargs -0 -r cp -a --parents --reflink=auto --remove-destination -t "$2" -- || exit 2
cd "$2" || exit 2
"""


def mount_from_now_on(place: Path, it: Layered | None) -> None:
    before = layered_at(place)
    if it is None:
        remove(place_of(place))
        return
    make_room(it)
    if before and before.room != it.room:
        _carry_over(before, it)
    note(place, it)
    for room in place_of(place).iterdir():
        old = Layered(layer=it.layer, room=room, folders=(), how=it.how)
        if room.is_dir() and room != it.room and not old.in_use:
            remove(room)


def can_be_mounted(place: Path) -> bool:
    """Whether all that a workspace mounts is there; somebody may have removed the layer."""
    it = layered_at(place)
    if it is None:
        return True
    made = it.layer.is_dir() and made_mark(it.layer).exists()
    return made and not _missing(place, it)


def mend(place: Path) -> None:
    """Where to mount, which somebody has removed; nothing else of the workspace is touched."""
    it = layered_at(place)
    if it is None:
        return
    make_room(it)
    if missing := _missing(place, it):
        targets = (f"{WORKSPACE}/{name}" for name in missing)
        mounts = (Mount(source=place, target=WORKSPACE, writable=True),)
        _run(Box(mounts=mounts, directory=WORKSPACE, env={}), ("mkdir", "--", *targets))


def _missing(place: Path, it: Layered) -> tuple[str, ...]:
    """Not those whose folder above is gone: a package may have moved."""
    return tuple(
        name
        for name in it.folders
        if not (place / name).is_symlink()
        and not (place / name).exists()
        and (is_folder(place, name.rpartition("/")[0]) if "/" in name else True)
    )


def _how(layer: Path, place: Path) -> How | None:
    if can_keep_overlay(place.parent):
        return How.OVERLAY
    return None if can_reflink(layer.parent, place.parent) else How.READ_ONLY


def _is_free(place: Path, name: str, names: Sequence[str]) -> bool:
    """Nothing is there: what is, the branch has, and it would be hidden."""
    if any(f"{it}/".startswith(f"{name}/") or f"{name}/".startswith(f"{it}/") for it in names):
        return False
    for part in name.split("/"):
        place /= part
        if not place.exists() and not place.is_symlink():
            return True
        if place.is_symlink() or not place.is_dir():
            return False
    return not any(place.iterdir())


def _carry_over(before: Layered, it: Layered) -> None:
    folders = tuple(name for name in it.folders if (before.written / name).is_dir())
    if not folders or it.how is not How.OVERLAY:
        return
    mounts = (
        Mount(source=before.written, target="/before"),
        Mount(source=it.layer, target="/layer"),
        Mount(source=it.written, target="/after", writable=True),
    )
    box = Box(mounts=mounts, directory="/", env={})
    _run(box, ("sh", "-c", _CARRY_OVER, "carry over", *folders))


def _run(box: Box, argv: tuple[str, ...]) -> None:
    check(run_boxed(boxed(box, argv), deadline=SECONDS), argv[0])


def _pattern(name: str) -> str:
    return "./" + _GLOB.sub(r"\\\g<0>", name)
