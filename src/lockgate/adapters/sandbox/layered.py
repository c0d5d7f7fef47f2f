"""How a workspace shows a set-up layer: large folders of dependencies are mounted, not copied.

A room beside the workspace has what its agent writes into these folders, for as long as the task
has its workspace. The layer under it is never written.
"""

import os
import stat
import sys
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from msgspec import DecodeError, Struct, json

from lockgate.adapters.sandbox.bubblewrap import Mount, owner
from lockgate.adapters.sandbox.enter import users_of
from lockgate.core.model.agents import WORKSPACE

_ENTER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("enter.py")))


class How(StrEnum):
    OVERLAY = "overlay"
    READ_ONLY = "read-only"  # where neither an overlay nor a reflink can be had


class Layered(Struct, frozen=True, kw_only=True):
    """The folders of a workspace that show a layer's."""

    layer: Path
    room: Path
    folders: tuple[str, ...]
    how: How

    @property
    def written(self) -> Path:
        """What the agent wrote into them."""
        return self.room / "upper"

    def mounts(self, workspace: Path, *, writable: bool = True) -> tuple[Mount, ...]:
        """Not those whose place in the workspace is no longer a folder."""
        overlay = self.how is How.OVERLAY
        source = self.room / "tree" if overlay else self.layer
        return tuple(
            Mount(source=source / it, target=f"{WORKSPACE}/{it}", writable=overlay and writable)
            for it in self.folders
            if is_folder(workspace, it)
        )

    @property
    def entering(self) -> tuple[str, ...]:
        """What mounts the overlay, or joins it, and then becomes the program that follows."""
        if self.how is not How.OVERLAY:
            return ()
        return (*_ENTER, str(self.room), str(self.layer))

    @property
    def in_use(self) -> bool:
        return any(True for _ in users_of(str(self.room / "users")))


class _Note(Struct, frozen=True):
    layer: str  # its path in the home
    folders: tuple[str, ...]
    how: How


_NOTES = json.Decoder(_Note)


def place_of(workspace: Path) -> Path:
    """Where the rooms of a workspace lie, and what is noted of them."""
    return workspace.with_name(f".over-{workspace.name}")


def room_in(workspace: Path, layer: Path) -> Path:
    return place_of(workspace) / layer.name


def layered_at(workspace: Path) -> Layered | None:
    """None where all of the layer was copied."""
    try:
        found = _NOTES.decode((place_of(workspace) / "note").read_bytes())
    except (OSError, DecodeError):
        return None
    layer = workspace.parents[1] / found.layer
    room = room_in(workspace, layer)
    return Layered(layer=layer, room=room, folders=found.folders, how=found.how)


def make_room(it: Layered) -> None:
    """Open to the agent where it may write, and nowhere else."""
    for name in ("upper", "work", "tree", "users"):
        (it.room / name).mkdir(parents=True, exist_ok=True)
    for name in ("upper", "work"):
        with suppress(FileNotFoundError):
            os.chown(it.room / name, *owner())


def note(workspace: Path, it: Layered) -> None:
    place = place_of(workspace)
    layer = str(it.layer.relative_to(workspace.parents[1]))
    new = place / "note.new"
    new.write_bytes(json.encode(_Note(layer, it.folders, it.how)))
    new.replace(place / "note")


def is_folder(workspace: Path, name: str) -> bool:
    """A real one: no part of its path is a link."""
    place = workspace
    for part in name.split("/"):
        place /= part
        try:
            if not stat.S_ISDIR(place.lstat().st_mode):
                return False
        except OSError:
            return False
    return True
