"""A script that reads a clone: in a sandbox, on a git directory and an output of ours."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from lockgate.adapters.run import Cut, Finished, run
from lockgate.adapters.sandbox import Box, Mount, boxed, run_boxed, trouble
from lockgate.adapters.workspaces.clones import BASE, Order
from lockgate.adapters.workspaces.git import ENVIRONMENT, words_of
from lockgate.adapters.workspaces.leaving_out import Entry, entries_in
from lockgate.adapters.workspaces.scratch import not_taken, scratch_for
from lockgate.core.model.agents import WORKSPACE

SCRATCH = "/scratch"
_HERE = Path(__file__).parent
_KILLED = (-9, 137)  # by `timeout`, where there is no sandbox


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
