"""What lies in a set-up layer, read as data: others have written it, so no link is followed."""

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from lockgate.adapters.sandbox import inside_path
from lockgate.adapters.workspaces.git import git, told
from lockgate.core.layers.files import LINK, Layer
from lockgate.core.layers.node import SETTINGS
from lockgate.core.text.steering import matching
from lockgate.errors import Unavailable

MOST = 2_000_000  # files
LONGEST = 4 << 20  # bytes of a text
MOST_SETTINGS = 50  # files of settings that are read, of each side
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1 << 20


def facts_of(layer: Path, side: str) -> Layer:
    """What cannot be read is never the same as on the other side."""
    files = dict(_listed(layer, side))
    return Layer(files, lambda path: _text(layer / path) if path in files else "")


def programs_here() -> frozenset[str]:
    """The names of all programs that a sandbox finds by its PATH."""
    found = set[str]()
    for folder in inside_path().split(os.pathsep):
        try:
            found.update(os.listdir(folder))  # noqa: PTH208 - names are enough
        except OSError:
            continue
    return frozenset(found)


def settings_in(git_dir: Path, commits: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The settings of script runners that these commits track, with their texts."""
    what = "the settings of test runners were not read"
    for commit in commits:
        names = told(what, git_dir, "ls-tree", "-r", "-z", "--name-only", commit).split("\0")
        for name in matching(names, SETTINGS)[:MOST_SETTINGS]:
            yield name, git(git_dir, "cat-file", "blob", f"{commit}:{name}").out


def _listed(layer: Path, side: str) -> Iterator[tuple[str, str]]:
    left, count = [""], 0
    while left:
        folder = left.pop()
        for entry in _entries(layer / folder):
            count += 1
            if count > MOST:
                what = "the change's own set-up was not looked at"
                fix = "see that the set-up leaves fewer files, then try again"
                raise Unavailable(what, why=f"it has more than {MOST} files", fix=fix)
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                left.append(path)
            elif entry.is_symlink():
                yield path, f"{LINK}{Path(entry.path).readlink()}"
            else:
                yield path, _content(entry.path) or f"not read, {side}"


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """A folder that has shut itself is opened first; it belongs to us, or we are root."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except PermissionError:
        folder.chmod(stat.S_IRWXU)
        with os.scandir(folder) as found:
            return list(found)


def _content(path: str) -> str:
    """Empty where it is no plain file, or shut."""
    try:
        with os.fdopen(os.open(path, _FILE), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                return ""
            seen = hashlib.sha256(b"x" if mode & stat.S_IXUSR else b"-")
            while chunk := file.read(_CHUNK):
                seen.update(chunk)
            return seen.hexdigest()
    except OSError:
        return ""


def _text(path: Path) -> str:
    try:
        with os.fdopen(os.open(path, _FILE), "rb") as file:
            found = file.read(LONGEST + 1)
    except OSError:
        return ""
    return "" if len(found) > LONGEST else found.decode("utf-8", "replace")
