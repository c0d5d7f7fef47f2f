"""What is noted of a layer when it is made: how large it is, and which folders a session mounts.

Nobody has to walk its files again for that. Of caches and service data the size alone is noted.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from msgspec import DecodeError, Struct, json

from lockgate.adapters.workspaces.changes import DEPENDENCIES, Entry, path_of

MANY, LARGE = 200, 1 << 20  # files or bytes from which a folder is mounted and not copied
MARKS = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})  # by which a folder says that it is no work
MOST_FOLDERS = 100  # that a sandbox mounts


class Note(Struct, frozen=True):
    size: int  # bytes on disk
    files: int = 0
    folders: tuple[str, ...] = ()  # large ones that no change takes in


_NOTES = json.Decoder(Note)


def note_of(layer: Path) -> Note:
    """An empty one where nothing was noted."""
    try:
        return _NOTES.decode(note_at(layer).read_bytes())
    except (OSError, DecodeError):
        return Note(0)


def note_layer(layer: Path, tree: Path, tracked: Iterable[Entry]) -> None:
    """Of the layer that the tree is about to become, beside files that are tracked."""
    names = (PurePosixPath(path_of(it)) for it in tracked)
    own = frozenset(str(folder) for name in names for folder in name.parents)
    found = _measured(os.fsencode(tree), own)
    large = (path for path, it in found.items() if path and (it.files >= MANY or it.size >= LARGE))
    folders = tuple(sorted(it for it in large if _can_be_named(it))[:MOST_FOLDERS])
    size, files = (sum(getattr(it, name) for it in found.values()) for name in ("size", "files"))
    note_at(layer).write_bytes(json.encode(Note(size, files, folders)))


def note_size(place: Path, size: int) -> None:
    note_at(place).write_bytes(json.encode(Note(size)))


def forget(layer: Path) -> None:
    note_at(layer).unlink(missing_ok=True)


def note_at(layer: Path) -> Path:
    return layer.with_name(f".note-{layer.name}")


def _measured(top: bytes, own: frozenset[str]) -> dict[str, Note]:
    """Each folder that no change takes in, and under no name all else."""
    found, left = {"": Note(0)}, [(b"", "")]
    while left:
        name, inside = left.pop()
        entries = list(_entries(os.path.join(top, name)))  # noqa: PTH118 - names are bytes
        path = os.fsdecode(name)
        if path and not inside and path not in own and _is_left_out(path, entries):
            inside = path
        folders = [it.name for it in entries if it.is_dir(follow_symlinks=False)]
        left += [(os.path.join(name, it), inside) for it in folders]  # noqa: PTH118 - as above
        size = sum(it.stat(follow_symlinks=False).st_blocks * 512 for it in entries)
        known = found.get(inside, Note(0))
        found[inside] = Note(known.size + size, known.files + len(entries) - len(folders))
    return found


def _entries(folder: bytes) -> Iterator[os.DirEntry[bytes]]:
    with suppress(OSError), os.scandir(folder) as found:
        yield from found


def _is_left_out(path: str, entries: Iterable[os.DirEntry[bytes]]) -> bool:
    name = path.rpartition("/")[2]
    known = any(fnmatchcase(name, it[:-1]) for it in DEPENDENCIES)
    return known or any(os.fsdecode(it.name) in MARKS for it in entries)


def _can_be_named(path: str) -> bool:
    """In a note and in a script of ours."""
    return path.isprintable() and path.isascii()
