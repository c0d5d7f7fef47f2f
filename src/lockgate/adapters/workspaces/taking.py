"""An agent's work into judge.git: read in a sandbox, carried over as a pack, checked by fsck."""

import secrets
import shutil
from pathlib import Path

from lockgate.adapters.workspaces.clones import OURS, Order
from lockgate.adapters.workspaces.furnishing import copied_into
from lockgate.adapters.workspaces.hardened_git import (
    COMMIT,
    commit_at,
    git,
    told,
    words_of,
)
from lockgate.adapters.workspaces.reading import opened, read_clone
from lockgate.adapters.workspaces.repositories import (
    keep,
    last_change,
    share_shallow,
    writing,
)
from lockgate.adapters.workspaces.scratch import not_taken, scratch_for


def take_work(order: Order, place: Path, deadline: float) -> str:
    """The commit that now stands for all work in the clone; what a lost clone had is not lost."""
    last = last_change(order.repos, order.task.id)
    if not place.is_dir() or place.is_symlink():
        return last or order.base_commit
    with scratch_for(order, place, last) as scratch:
        script = ("take.sh", last or "", *OURS, *copied_into(place))
        read_clone(order, place, scratch, script, deadline)
        commit = _named(scratch / "out")
        if commit is None:
            raise not_taken(order, "what was read of it names no commit")
        _carry_over(order, scratch / "out", commit)
    return commit


def _carry_over(order: Order, out: Path, commit: str) -> None:
    """Into judge.git, unless it is there: what is broken or not whole stays outside."""
    repos, task = order.repos, order.task.id
    with writing(repos):
        if commit_at(repos.judge, commit) is None:
            share_shallow(repos.base, repos.judge)
            _index(order, out)
            told(f"the work of task {task} was not taken", repos.judge, *_CONNECTED, commit, *_NOT)
        keep(repos, task, commit)


_CONNECTED = ("rev-list", "--objects", "--quiet")
_NOT = ("--not", "--all", "--alternate-refs")


def _index(order: Order, out: Path) -> None:
    """The pack is copied first: what we check is then what nobody else can change."""
    copy = order.repos.directory / f".new-{secrets.token_hex(4)}.pack"
    try:
        with opened(out / "pack") as pack, copy.open("wb") as ours:
            shutil.copyfileobj(pack, ours)
        strictly = ("index-pack", "--stdin", "--strict", "--fix-thin")
        done = git(order.repos.judge, *strictly, given=copy)
    except OSError as error:
        raise not_taken(order, str(error)) from error
    finally:
        copy.unlink(missing_ok=True)
    if done.code != 0:
        raise not_taken(order, words_of(done))


def _named(out: Path) -> str | None:
    try:
        with opened(out / "commit") as file:
            found = file.read(80).decode("ascii", "replace").strip()
    except OSError:
        return None
    return found if COMMIT.fullmatch(found) else None
