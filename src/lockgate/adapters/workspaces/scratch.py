"""Where an agent's work is read: a git directory of ours beside its clone, for as long."""

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from lockgate.adapters.workspaces.clones import Order, copied, exclude
from lockgate.adapters.workspaces.files import hand_over, made_mark, remove
from lockgate.adapters.workspaces.git_files import borrow, make_repository, set_ref, share_shallow
from lockgate.adapters.workspaces.leaving_out import dependencies
from lockgate.errors import Unavailable

_FIX = "look at the workspace, mend that, then try again; nothing was removed"


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
