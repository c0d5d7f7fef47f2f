"""An agent's work into judge.git: read in a sandbox, carried over as a pack, checked by fsck."""

import os
import secrets
import shutil
import stat
from pathlib import Path
from typing import BinaryIO

from lockgate.adapters.run import Cut, Finished, run
from lockgate.adapters.sandbox import Box, Mount, boxed, run_boxed, trouble
from lockgate.adapters.workspaces.clones import BASE, OURS, Order
from lockgate.adapters.workspaces.furnishing import copied_into
from lockgate.adapters.workspaces.hardened_git import (
    COMMIT,
    ENVIRONMENT,
    commit_at,
    git,
    told,
    words_of,
)
from lockgate.adapters.workspaces.repositories import (
    keep,
    last_change,
    share_shallow,
    writing,
)
from lockgate.adapters.workspaces.scratch import not_taken, scratch_for
from lockgate.core.agents import WORKSPACE

SCRATCH = "/scratch"
SCRIPT = Path(__file__).with_name("take.sh")
_KILLED = (-9, 137)  # by `timeout`, where there is no sandbox


def take_work(order: Order, place: Path, deadline: float) -> str:
    """The commit that now stands for all work in the clone; what a lost clone had is not lost."""
    last = last_change(order.repos, order.task.id)
    if not place.is_dir() or place.is_symlink():
        return last or order.base_commit
    with scratch_for(order, place, last) as scratch:
        done = _read(order, place, scratch, last, deadline)
        commit = _named(scratch / "out")
        if done.code != 0 or commit is None:
            raise not_taken(order, _said(done, deadline))
        _carry_over(order, scratch / "out", commit)
    return commit


def _read(order: Order, place: Path, scratch: Path, last: str | None, deadline: float) -> Finished:
    script = ("sh", "-c", SCRIPT.read_text(encoding="utf-8"), "take")
    given = (order.base_commit, last or "", *OURS, *copied_into(place))
    if not order.sandboxed:
        where = (str(place), str(scratch / "git"), str(scratch / "out"))
        asked = ("timeout", "--signal=KILL", str(deadline), *script, *where, *given)
        return run(asked, deadline=deadline + 10, environment=ENVIRONMENT)
    if why := trouble():
        raise not_taken(order, why)
    box = Box(
        mounts=(
            Mount(source=place, target=WORKSPACE),
            Mount(source=order.repos.base, target=BASE),
            Mount(source=scratch, target=SCRATCH, writable=True),
        ),
        directory=SCRATCH,
        env=ENVIRONMENT,
    )
    where = (WORKSPACE, f"{SCRATCH}/git", f"{SCRATCH}/out")
    return run_boxed(boxed(box, (*script, *where, *given)), deadline=deadline)


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
        with _opened(out / "pack") as pack, copy.open("wb") as ours:
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
        with _opened(out / "commit") as file:
            found = file.read(80).decode("ascii", "replace").strip()
    except OSError:
        return None
    return found if COMMIT.fullmatch(found) else None


def _opened(path: Path) -> BinaryIO:
    """A plain file that others may have put there; OSError where it is anything else."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path.name} is not a plain file")
    return os.fdopen(handle, "rb")


def _said(done: Finished, deadline: float) -> str:
    if done.cut is Cut.DEADLINE or done.code in _KILLED:
        return f"reading it had not finished after {deadline:.0f} s"
    return words_of(done)
