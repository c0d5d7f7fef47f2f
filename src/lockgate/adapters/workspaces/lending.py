"""The repositories of a throw-away home, which are one: the user's objects under a second name.

Fetching them would take as long as the history is; a hard link takes no time and no room, and what
is in the store of objects is never written again. On another disk they are copied. Where nothing is
enclosed they can be seen where they are.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from lockgate.adapters.workspaces.new_repository import (
    SHARED,
    make_repository,
    open_to_all,
    set_ref,
)
from lockgate.adapters.workspaces.repositories import borrow, repositories_of
from lockgate.core.model.task import Pinned
from lockgate.errors import Unavailable
from lockgate.ports import Project

DEEPEST = 5  # stores that borrow from stores


def lend(home: Path, project: Project, rules: Pinned) -> None:
    """With the base branch at its commit, for whoever asks where the change comes from.

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
        for store in _stores(source / "objects", DEEPEST):
            _link(store, repos.base / "objects")
    except OSError as error:
        fix = "see that the repository can be read and the disk has room, then try again"
        raise Unavailable(what, why=str(error), fix=fix) from error


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
