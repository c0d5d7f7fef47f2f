"""An agent's work is read by a script in a sandbox, on a git directory and an output of ours.

Both lie beside its clone for as long as that takes.
"""

import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from lockgate.adapters.run import Cut, Finished, run
from lockgate.adapters.sandbox import Box, Mount, boxed, run_boxed, trouble
from lockgate.adapters.workspaces.changes import Entry, dependencies, entries_in
from lockgate.adapters.workspaces.clones import BASE, Order, copied, exclude
from lockgate.adapters.workspaces.files import hand_over, made_mark, remove
from lockgate.adapters.workspaces.git import ENVIRONMENT, words_of
from lockgate.adapters.workspaces.git_files import borrow, make_repository, set_ref, share_shallow
from lockgate.core.model.agents import WORKSPACE
from lockgate.errors import Unavailable

SCRATCH = "/scratch"
_HERE = Path(__file__).parent
_KILLED = (-9, 137)  # by `timeout`, where there is no sandbox
_FIX = "look at the workspace, fix that, then try again; nothing was removed"


def files_in(order: Order, place: Path, deadline: float) -> frozenset[Entry]:
    """What a clone holds, as git would take it in."""
    with scratch_for(order, place, None) as scratch:
        read_clone(order, place, scratch, ("list.sh",), deadline)
        try:
            with opened(scratch / "out" / "list") as file:
                return entries_in(file.read())
        except OSError as error:
            raise not_taken(order, str(error)) from error


def read_clone(
    order: Order, place: Path, scratch: Path, script: tuple[str, ...], deadline: float
) -> None:
    """Run a script of ours with its arguments. Unavailable where it does not get through."""
    done = _run(order, place, scratch, script, deadline)
    if done.code != 0:
        raise not_taken(order, _said(done, deadline))


def opened(path: Path) -> BinaryIO:
    """A plain file that others may have put there; OSError where it is anything else."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path.name} is not a plain file")
    return os.fdopen(handle, "rb")


def _run(
    order: Order, place: Path, scratch: Path, script: tuple[str, ...], deadline: float
) -> Finished:
    name, *given = script
    texts = (_HERE.joinpath(it).read_text(encoding="utf-8") for it in ("index.sh", name))
    shell = ("sh", "-c", "".join(texts), "read")
    if not order.sandboxed:
        where = (str(place), str(scratch / "git"), str(scratch / "out"), order.base_commit)
        asked = ("timeout", "--signal=KILL", str(deadline), *shell, *where, *given)
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
    where = (WORKSPACE, f"{SCRATCH}/git", f"{SCRATCH}/out", order.base_commit)
    return run_boxed(boxed(box, (*shell, *where, *given)), deadline=deadline)


def _said(done: Finished, deadline: float) -> str:
    if done.cut is Cut.DEADLINE or done.code in _KILLED:
        return f"reading it had not finished after {deadline:.0f} s"
    return words_of(done)


# The directory of ours in which a clone is read.


@contextmanager
def scratch_for(order: Order, place: Path, last: str | None) -> Generator[Path]:
    """A git directory that has what the clone may build on, and room for the answer."""
    for left in place.parent.glob(f".take-{place.name}-????????"):
        remove(left)
    scratch = place.with_name(f".take-{place.name}-{secrets.token_hex(4)}")
    try:
        _lay_out(order, scratch, last, _made_in(place))
        hand_over(scratch, *order.agent)
        yield scratch
    finally:
        remove(scratch)


def not_taken(order: Order, why: str) -> Unavailable:
    return Unavailable(f"the work of task {order.name} was not taken", why=why, fix=_FIX)


def _lay_out(order: Order, scratch: Path, last: str | None, made: bytes) -> None:
    repos, git_dir = order.repos, scratch / "git"
    try:
        (scratch / "out").mkdir(parents=True)
        make_repository(git_dir, order.base_commit, "", bare=True)
        borrow(git_dir, str(repos.base / "objects"))
        share_shallow(repos.base, git_dir)
        if last is not None:
            if why := copied(repos, git_dir, last, order.base_commit):
                raise not_taken(order, why)
            set_ref(git_dir, "refs/lockgate/last", last)
        patterns = dependencies(repos.base, order.base_commit)
        exclude(git_dir, patterns)
        lines = "".join(f"{it}\n" for it in patterns)
        (git_dir / "info" / "dependencies").write_bytes(os.fsencode(lines))
        (git_dir / "made").write_bytes(made)
        borrow(git_dir, f"{order.shown_base}/objects")
    except OSError as error:
        raise not_taken(order, str(error)) from error


def _made_in(place: Path) -> bytes:
    """What the set-up made there, in the order in which it was noted."""
    try:
        return made_mark(place).read_bytes()
    except OSError:
        return b""
