"""Git's own file formats, written by hand where a program for each would take too long.

A repository, its refs, the objects that it borrows, one commit, links to objects and packs: no
other module writes such files. A test compares each with what git itself makes and reads.
"""

import hashlib
import os
import secrets
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

from lockgate.errors import Unavailable

# A repository, with its configuration.


# All may read what a sandbox shows, whatever the umask: as root another uid reads it.
SHARED = "[core]\n\tsharedRepository = 0644\n[receive]\n\tdenyNonFastForwards = true\n"
_FOLDERS = ("objects", "objects/info", "refs")  # git makes the others where it wants them
_LONG_NAME = 64  # of a commit in a repository whose objects are named by SHA-256
_EXECUTABLE = 0o100


def make_repository(git_dir: Path, commit: str, settings: str, *, bare: bool) -> None:
    """For objects that are named as this commit is, with no ref yet."""
    git_dir.mkdir(parents=True)
    for folder in _FOLDERS:
        (git_dir / folder).mkdir()
    set_ref(git_dir, "HEAD", "ref: refs/heads/main")
    text = _configuration(git_dir / "HEAD", bare=bare, long=len(commit) == _LONG_NAME)
    (git_dir / "config").write_bytes(os.fsencode(text + settings))


def open_to_all(git_dir: Path) -> None:
    """What is in a new repository that is shared; git itself does so with what it adds."""
    for place in (git_dir, *git_dir.rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)


def set_ref(git_dir: Path, name: str, value: str) -> None:
    """To a commit, or to `ref: ` and another; only while nobody else uses the repository."""
    if any(part in {"", ".", ".."} for part in name.split("/")):
        raise ValueError(f"not the name of a ref: {name!r}")
    place = git_dir / name
    if ref_at(git_dir, name) != value:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(os.fsencode(value) + b"\n")


def ref_at(git_dir: Path, name: str) -> str | None:
    """What a ref's own file says; None where git has to be asked."""
    try:
        return (git_dir / name).read_text(encoding="ascii").rstrip("\n")
    except (OSError, UnicodeDecodeError):
        return None


def _configuration(head: Path, *, bare: bool, long: bool) -> str:
    facts = {
        "repositoryformatversion": "1" if long else "0",
        "bare": _word(bare),
        "logAllRefUpdates": _word(not bare),
        "filemode": _word(_keeps_modes(head)),
        "ignorecase": _word(head.with_name("head").exists()),
    }
    lines = "".join(f"\t{name} = {value}\n" for name, value in facts.items())
    return f"[core]\n{lines}" + ("[extensions]\n\tobjectFormat = sha256\n" if long else "")


def _keeps_modes(file: Path) -> bool:
    """Whether the disk does, as git tries it."""
    before = file.stat().st_mode
    file.chmod(before ^ _EXECUTABLE)
    kept = file.stat().st_mode != before
    file.chmod(before)
    return kept


def _word(it: object) -> str:
    return "true" if it else "false"


# Objects of another repository: borrowed where they are, or under a second name.


DEEPEST = 5  # stores that borrow from stores


def borrow(git_dir: Path, objects: str) -> None:
    (git_dir / "objects" / "info" / "alternates").write_bytes(os.fsencode(objects) + b"\n")


def share_shallow(base: Path, git_dir: Path) -> None:
    """Where the user's history is cut off, so is that of all who borrow it."""
    if (base / "shallow").exists():
        (git_dir / "shallow").write_bytes((base / "shallow").read_bytes())


def link_objects(source: Path, target: Path) -> None:
    """All objects of a store, and of those that it borrows from, into another store."""
    for store in _stores(source, DEEPEST):
        _link(store, target)


def _stores(objects: Path, depth: int) -> Iterator[Path]:
    """The store, and those that it borrows from."""
    yield objects
    alternates = objects / "info" / "alternates"
    if depth and alternates.is_file():
        for line in alternates.read_bytes().splitlines():
            if line and not line.startswith(b"#"):
                yield from _stores(objects / os.fsdecode(line), depth - 1)


def _link(source: Path, target: Path) -> None:
    """Every object and pack; what git is just writing is no part of any commit yet."""
    for name in _folders(source):
        there = target / name
        there.mkdir(exist_ok=True)
        there.chmod(0o755)
        with os.scandir(source / name) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False) and not entry.name.startswith("tmp_"):
                    _name_again(entry.path, there / entry.name)


def _folders(objects: Path) -> list[str]:
    """The packs last: what is packed meanwhile is in one of them before it is gone elsewhere."""
    with os.scandir(objects) as entries:
        names = [it.name for it in entries if it.is_dir()]
    return sorted((it for it in names if it == "pack" or len(it) == len("ab")), key="pack".__eq__)


def _name_again(source: str, target: Path) -> None:
    try:
        os.link(source, target)
    except (FileExistsError, FileNotFoundError):  # it is there, or was packed a moment ago
        pass
    except OSError:
        shutil.copyfile(source, target)


# One object: a commit, in a file of its own.


def write_commit(git_dir: Path, text: str) -> str:
    """Its name. The same text has the same name; what is there already is left alone."""
    body = text.encode("utf-8", "surrogateescape")
    whole = b"commit %d\0%s" % (len(body), body)
    named = hashlib.sha256 if _names_are_long(text) else hashlib.sha1
    name = named(whole).hexdigest()
    place = git_dir / "objects" / name[:2] / name[2:]
    beside = place.with_name(f"tmp_obj_{secrets.token_hex(4)}")
    try:
        if not place.exists():
            place.parent.mkdir(exist_ok=True)
            beside.write_bytes(zlib.compress(whole))
            beside.chmod(0o444)
            beside.rename(place)
    except OSError as error:
        what, fix = f"commit {name} was not written", "see that the disk has room"
        raise Unavailable(what, why=str(error), fix=fix) from error
    return name


def _names_are_long(text: str) -> bool:
    return len(text.partition("\n")[0].partition(" ")[2]) == _LONG_NAME
