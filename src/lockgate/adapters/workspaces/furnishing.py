"""What a clone needs that git does not have: the set-up layer and the files of `[env] copy`."""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from glob import escape
from pathlib import Path, PurePosixPath

from lockgate.adapters.run import Finished, run
from lockgate.adapters.sandbox import Box, Mount, boxed, run_boxed
from lockgate.adapters.workspaces.clones import Order
from lockgate.adapters.workspaces.hardened_git import told
from lockgate.adapters.workspaces.layers import (
    SECONDS,
    check,
    layer_key,
    layer_of,
    need_sandbox,
)
from lockgate.adapters.workspaces.locks import locked
from lockgate.adapters.workspaces.trees import hand_over, ready_mark, remove
from lockgate.core.agents import WORKSPACE
from lockgate.core.settings import EnvSettings
from lockgate.errors import BadConfig

_HALF = "copying"
# A copy, not a second name: what one agent writes must not reach another. Links that an agent has
# planted lead nowhere else than its own sandbox does.
_LAY = """
cp -a --reflink=auto --remove-destination "$1/." "$2/" || exit 2
shift 2
for name; do printf '/%s\\n' "$name" >>.git/info/exclude; done
exit 0
"""


def furnish(order: Order, place: Path, env: EnvSettings) -> None:
    """Lay the layer and the copied files into it; the same ones are not laid twice."""
    with locked(order.home / "locks" / f"set-up-{order.task.id}"):
        _furnish(order, place, env)


def copied_into(place: Path) -> tuple[str, ...]:
    """The user's own files that were laid into it: no change may hold them."""
    return _said(place)[1:]


def _furnish(order: Order, place: Path, env: EnvSettings) -> None:
    names = tuple(_copied(order, env))
    if not (env.setup or names):
        return
    key = _key(order, env, names)
    if _said(place)[:1] == (key,):
        return
    _say(place, _HALF, names)
    if env.setup and order.sandboxed:
        _lay(order, layer_of(order, env), place, ())
    if names:
        _lay_copies(order, place, names)
    if env.setup and not order.sandboxed:
        check(_run_bare(place, env.setup), env.setup)
    _say(place, key, names)


def _key(order: Order, env: EnvSettings, names: tuple[str, ...]) -> str:
    known = "\0".join((layer_key(order, env), *names))
    return hashlib.sha256(os.fsencode(known)).hexdigest()


def _copied(order: Order, env: EnvSettings) -> Iterator[str]:
    """Those that the user has and the repository has not."""
    root = Path(order.project.root)
    for name in env.copy:
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or ".git" in pure.parts or not pure.parts:
            why = f"[env] copy names {name!r}, which is not a file in the project"
            fix = "name it by its path from the project's root"
            raise BadConfig("the workspace was not set up", why=why, fix=fix)
        asked = ("ls-tree", "--name-only", "-z", order.base_commit, "--", str(pure))
        tracked = told("the workspace was not set up", order.repos.base, *asked)
        if (root / pure).exists() and not tracked:
            yield str(pure)


def _lay_copies(order: Order, place: Path, names: tuple[str, ...]) -> None:
    for half in place.parent.glob(f".copy-{escape(place.name)}-????????"):
        remove(half)
    stage = place.with_name(f".copy-{place.name}-{secrets.token_hex(4)}")
    try:
        for name in names:
            source, target = Path(order.project.root) / name, stage / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copy2(source, target)
        hand_over(stage, *order.agent)
        _lay(order, stage, place, names)
    finally:
        remove(stage)


def _lay(order: Order, source: Path, place: Path, names: tuple[str, ...]) -> None:
    script = ("sh", "-c", _LAY, "lay")
    if not order.sandboxed:
        check(run((*script, str(source), str(place), *names), cwd=place, deadline=SECONDS), "cp")
        return
    need_sandbox("the workspace was not set up")
    mounts = (
        Mount(source=source, target="/layer"),
        Mount(source=place, target=WORKSPACE, writable=True),
    )
    box = Box(mounts=mounts, directory=WORKSPACE, env={})
    laid = boxed(box, (*script, "/layer", WORKSPACE, *names))
    check(run_boxed(laid, deadline=SECONDS), "cp")


def _run_bare(place: Path, command: str) -> Finished:
    ended = ("timeout", "--signal=KILL", str(SECONDS))
    return run((*ended, "sh", "-c", command), cwd=place, deadline=SECONDS + 10)


def _said(place: Path) -> tuple[str, ...]:
    """What the mark beside it holds: the key, then the names."""
    try:
        return tuple(os.fsdecode(it) for it in ready_mark(place).read_bytes().split(b"\0"))
    except OSError:
        return ()


def _say(place: Path, key: str, names: tuple[str, ...]) -> None:
    mark = ready_mark(place)
    beside = mark.with_name(f"{mark.name}.{secrets.token_hex(4)}")
    beside.write_bytes(b"\0".join(os.fsencode(it) for it in (key, *names)))
    beside.replace(mark)
