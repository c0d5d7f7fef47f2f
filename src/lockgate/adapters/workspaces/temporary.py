"""A temporary home, deleted with its process, or by the next run if that was killed."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct, field

from lockgate.adapters.sandbox import look
from lockgate.adapters.workspaces.clones import Order, clone_of_commit, copy_commit, finish
from lockgate.adapters.workspaces.files import discard, ready_mark, remove
from lockgate.adapters.workspaces.git import git
from lockgate.adapters.workspaces.git_files import (
    SHARED,
    borrow,
    link_objects,
    make_repository,
    open_to_all,
    ref_at,
    set_ref,
)
from lockgate.adapters.workspaces.repositories import repositories_of
from lockgate.core.model.task import Pinned
from lockgate.errors import Unavailable
from lockgate.ports import Project

PREFIX = ".lockgate-throw-away-"
KEPT = (
    "layers",
    "caches",
    "locks",
    "measurements",
    "services",
)  # of the real home: what is made once for all
YOUNG = 60.0  # seconds in which one may not have taken its lock yet


@contextmanager
def throw_away_home(home: Path) -> Generator[Path]:
    """In the real home where there is one, else where temporary files are.

    For its owner alone: a box is shown what lies in it by mounts, also as root.
    """
    beside = home if home.is_dir() else Path(tempfile.gettempdir())
    _clear(beside)
    place = Path(tempfile.mkdtemp(prefix=PREFIX, dir=beside)).resolve()
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        for name in KEPT if beside == home else ():
            (home / name).mkdir(exist_ok=True)
            (place / name).symlink_to(place.parent / name)
        yield place
    finally:
        os.close(handle)
        remove(place)


def _clear(beside: Path) -> None:
    for place in beside.glob(f"{PREFIX}*"):
        try:
            handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            if _is_left(handle):
                remove(place)
        finally:
            os.close(handle)


def _is_left(handle: int) -> bool:
    """Whether it belongs to us, and the process that made it has ended."""
    found = os.fstat(handle)
    if found.st_uid != os.geteuid() or time.time() - found.st_mtime < YOUNG:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# The repositories of a throw-away home, which are one: the user's objects under a second name.
#
# Fetching them would take as long as the history is; a hard link takes no time and no room, and
# what is in the store of objects is never written again. On another disk they are copied. Where
# nothing is enclosed they can be seen where they are.


def lend(home: Path, project: Project, rules: Pinned) -> None:
    """With the base branch at its commit, so that git finds where the change left it.

    What was lent before stays, and what is new comes to it.
    """
    repos, source = repositories_of(home, project), Path(project.common_dir)
    what = f"the objects of {project.name} were not lent"
    try:
        if not repos.base.is_dir():
            make_repository(repos.base, rules.base_commit, SHARED, bare=True)
            repos.judge.symlink_to(repos.base.name)
            open_to_all(repos.base)  # before an object is there: its mode is the user's own file's
        (repos.base / "shallow").unlink(missing_ok=True)
        if (source / "shallow").exists():
            shutil.copyfile(source / "shallow", repos.base / "shallow")
            (repos.base / "shallow").chmod(0o644)
        set_ref(repos.base, f"refs/heads/{rules.base}", rules.base_commit)
        set_ref(repos.base, "HEAD", f"ref: refs/heads/{rules.base}")
        if not rules.sandboxed and "\n" not in project.common_dir:
            borrow(repos.base, str(source / "objects"))
            return
        (repos.base / "objects" / "info" / "alternates").unlink(missing_ok=True)
        open_to_all(repos.base / "refs")
        link_objects(source / "objects", repos.base / "objects")
    except OSError as error:
        fix = "see that the repository can be read and the disk has room, then try again"
        raise Unavailable(what, why=str(error), fix=fix) from error


# A checkout that nobody has touched, brought to another commit: only what differs is written.


class Checkouts(Struct, frozen=True):
    """Those that stay from one judgement to the next: which commit each is of, and how it looked.

    Only this process knows its checkouts. Another process writes its own.
    """

    _known: dict[Path, tuple[str, bytes]] = field(default_factory=dict[Path, tuple[str, bytes]])

    def check_out(self, order: Order, place: Path, commit: str) -> None:
        before, seen = self._known.pop(place, ("", b""))
        moved = _seen(place) == seen and _moved(order, place, before, commit)
        if not moved or _attributes(_seen(place)) != _attributes(seen):
            discard(place)
            clone_of_commit(order, place, commit)
        self._known[place] = (commit, _seen(place))


def _seen(place: Path) -> bytes:
    """Nothing where nothing is."""
    try:
        return look(place)[1:]
    except OSError:
        return b""


def _attributes(seen: bytes) -> dict[bytes, bytes]:
    """Where they differ, so may files whose content does not."""
    names, facts = seen.split(b"\0")[::2], seen.split(b"\0")[1::2]
    found = zip(names, facts, strict=False)
    return {name: it for name, it in found if name.endswith(b"/.gitattributes")}


def _moved(order: Order, place: Path, before: str, commit: str) -> bool:
    """Whether it now equals a new checkout, provided that the attributes did not change."""
    git_dir, rules = place / ".git", order.rules
    origin = f"refs/remotes/origin/{rules.base}"
    base = ref_at(git_dir, origin)
    if ready_mark(place).exists() or base is None:
        return False
    if (commit, rules.base_commit) == (before, base):
        return True
    set_ref(git_dir, origin, rules.base_commit)
    borrow(git_dir, str(order.repos.base / "objects"))
    copy_commit(order, git_dir, commit)
    if git(git_dir, "read-tree", "-m", "-u", before, commit, tree=place).code != 0:
        return False
    set_ref(git_dir, "HEAD", commit)
    finish(order, place)
    return True
