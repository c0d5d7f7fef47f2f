"""An agent's work into judge.git: read in a sandbox, carried over as a pack, checked by fsck."""

import os
import secrets
import shutil
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from lockgate.adapters.run import Cut, Finished, run
from lockgate.adapters.sandbox import Box, Mount, boxed, run_boxed, trouble
from lockgate.adapters.workspaces.clones import BASE, EXCLUDED, OURS, Order
from lockgate.adapters.workspaces.furnishing import copied_into
from lockgate.adapters.workspaces.hardened_git import (
    COMMIT,
    ENVIRONMENT,
    LONG,
    commit_at,
    fetched,
    hardened,
    object_format,
    told,
    words_of,
)
from lockgate.adapters.workspaces.repositories import (
    borrow,
    keep,
    last_change,
    share_shallow,
    writing,
)
from lockgate.adapters.workspaces.trees import hand_over, remove
from lockgate.core.agents import WORKSPACE
from lockgate.errors import Unavailable

SCRATCH = "/scratch"
SCRIPT = Path(__file__).with_name("take.sh")
_KILLED = (-9, 137)  # by `timeout`, where there is no sandbox
_FIX = "look at the workspace, mend that, then try again; nothing was removed"


def take_work(order: Order, place: Path, deadline: float) -> str:
    """The commit that now stands for all work in the clone; what a lost clone had is not lost."""
    last = last_change(order.repos, order.task.id)
    if not place.is_dir() or place.is_symlink():
        return last or order.base_commit
    with _scratch(order, place, last) as scratch:
        done = _read(order, place, scratch, last, deadline)
        commit = _named(scratch / "out")
        if done.code != 0 or commit is None:
            raise _not_taken(order, _said(done, deadline))
        _carry_over(order, scratch / "out", commit)
    return commit


@contextmanager
def _scratch(order: Order, place: Path, last: str | None) -> Generator[Path]:
    """A git directory of ours that has what the clone may build on, and room for the answer."""
    for left in place.parent.glob(f".take-{place.name}-????????"):
        remove(left)
    scratch = place.with_name(f".take-{place.name}-{secrets.token_hex(4)}")
    try:
        (scratch / "out").mkdir(parents=True)
        _lay_out(order, scratch / "git", last)
        hand_over(scratch, *order.agent)
        yield scratch
    finally:
        remove(scratch)


def _lay_out(order: Order, git_dir: Path, last: str | None) -> None:
    what, repos = f"the work of task {order.task.id} was not taken", order.repos
    kind = f"--object-format={object_format(repos.base)}"
    told(what, None, "init", "--quiet", "--bare", "--template=", kind, "--", str(git_dir))
    borrow(git_dir, str(repos.base / "objects"))
    share_shallow(repos.base, git_dir)
    if last is not None:
        done = fetched(git_dir, repos.judge, f"{last}:refs/lockgate/last")
        if done.code != 0:
            raise _not_taken(order, words_of(done))
    (git_dir / "info").mkdir(exist_ok=True)
    (git_dir / "info" / "exclude").write_text("".join(f"{it}\n" for it in EXCLUDED))
    borrow(git_dir, f"{order.shown_base}/objects")


def _read(order: Order, place: Path, scratch: Path, last: str | None, deadline: float) -> Finished:
    script = ("sh", "-c", SCRIPT.read_text(encoding="utf-8"), "take")
    given = (order.base_commit, last or "", *OURS, *copied_into(place))
    if not order.sandboxed:
        where = (str(place), str(scratch / "git"), str(scratch / "out"))
        env = (f"{name}={value}" for name, value in ENVIRONMENT.items())
        ended = ("timeout", "--signal=KILL", str(deadline), "env", *env)
        return run((*ended, *script, *where, *given), deadline=deadline + 10)
    if why := trouble():
        raise _not_taken(order, why)
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
        git = (*hardened(), f"--git-dir={order.repos.judge}", *strictly)
        done = run(("sh", "-c", 'exec "$@" <"$0"', str(copy), *git), deadline=LONG)
    except OSError as error:
        raise _not_taken(order, str(error)) from error
    finally:
        copy.unlink(missing_ok=True)
    if done.code != 0:
        raise _not_taken(order, words_of(done))


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


def _not_taken(order: Order, why: str) -> Unavailable:
    return Unavailable(f"the work of task {order.task.id} was not taken", why=why, fix=_FIX)
