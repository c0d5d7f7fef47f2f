"""What a clone needs that git does not have: its set-up layer and the files of `[env] copy`."""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from glob import escape
from pathlib import Path, PurePosixPath

from lockgate.adapters.run import Finished, run
from lockgate.adapters.sandbox import Box, Mount, boxed, run_boxed
from lockgate.adapters.sandbox.layered import Layered
from lockgate.adapters.sandbox.probe import can_overlay
from lockgate.adapters.sandbox.scratch import under_mark
from lockgate.adapters.workspaces.changes import (
    MOST_SHOWN,
    Entry,
    as_list,
    entries_in,
    made_by_set_up,
    path_of,
    patterns_of,
)
from lockgate.adapters.workspaces.clones import Order
from lockgate.adapters.workspaces.files import hand_over, locked, made_mark, ready_mark, remove
from lockgate.adapters.workspaces.git import told
from lockgate.adapters.workspaces.layers import (
    SECONDS,
    check,
    files_of,
    layer_key,
    layer_of,
    need_sandbox,
    own_layer,
)
from lockgate.adapters.workspaces.mounting import (
    can_be_mounted,
    copying,
    mend,
    mount_from_now_on,
    to_mount,
)
from lockgate.adapters.workspaces.reading import files_in
from lockgate.core.config.settings import EnvSettings, Settings
from lockgate.core.model.agents import WORKSPACE
from lockgate.core.model.brought import SetUpFailed
from lockgate.errors import BadConfig, Unavailable

_HALF = "copying"
# A copy, not a second name: what one agent writes must not reach another. Links that an agent has
# planted lead nowhere else than its own sandbox does.
_LEAVE_OUT = """
for pattern; do printf '%s\\n' "$pattern"; done >>.git/info/exclude
exit 0
"""


def furnish(order: Order, place: Path, settings: Settings, *, own: bool = False) -> None:
    """Lay the layer and the copied files into it; the same ones are not laid twice.

    `own`: the change's own layer, where it edits what base's was made from.
    """
    with locked(order.home / "locks" / f"set-up-{order.name}"):
        _furnish(order, place, settings, own=own)


def copied_into(place: Path) -> tuple[str, ...]:
    """The user's own files that were laid into it: no change may hold them."""
    return _said(place)[1:]


def _furnish(order: Order, place: Path, settings: Settings, *, own: bool) -> None:
    env = settings.env
    names = tuple(_copied(order, env))
    if not (env.setup or names):
        return
    brought = own_layer(order, settings) if own else None
    if isinstance(brought, SetUpFailed):
        fix = "fix that in the change, then hand it in again"
        raise Unavailable("the change's own set-up did not finish", why=brought.why, fix=fix)
    key = _key((brought.key if brought else layer_key(order, env), *names))
    if _said(place)[:1] == (key,):
        if not can_be_mounted(place):
            layer_of(order, env)
            mend(place)
        return
    _say(place, _HALF, names)
    if env.setup and order.sandboxed:
        layer, made = (brought.place, brought.made) if brought else layer_of(order, env)
        _let_see(order, layer, place, made, names)
    if names:
        _lay_copies(order, place, names)
    if env.setup and not order.sandboxed:
        _set_up_bare(order, place, env)
    _say(place, key, names)


def _key(known: tuple[str, ...]) -> str:
    return hashlib.sha256(os.fsencode("\0".join(known))).hexdigest()


def _copied(order: Order, env: EnvSettings) -> Iterator[str]:
    """Those that the user has and the repository has not."""
    root = _files_of(order)
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
        elif order.project.url and not tracked:
            why = f"[env] copy names {name!r}, and this host has no {root / pure}"
            raise Unavailable("the workspace was not set up", why=why, fix="put the file there")


def _files_of(order: Order) -> Path:
    return Path(order.project.files or order.project.root)


def _lay_copies(order: Order, place: Path, names: tuple[str, ...]) -> None:
    for half in place.parent.glob(f".copy-{escape(place.name)}-????????"):
        remove(half)
    stage = place.with_name(f".copy-{place.name}-{secrets.token_hex(4)}")
    try:
        for name in names:
            source, target = _files_of(order) / name, stage / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copy2(source, target)
        hand_over(stage, *order.agent)
        _lay(order, stage, place, tuple(patterns_of(names)))
    finally:
        remove(stage)


def _let_see(
    order: Order, layer: Path, place: Path, made: frozenset[Entry], names: tuple[str, ...]
) -> None:
    """A gate's checkout is only seen over the layer; what an agent works in has a copy of it.

    Of a gate's runs nothing is kept, so one overlay is enough for both. Large folders of
    dependencies are not copied into a workspace either: its sessions mount them. A second name for
    the same file is never made: one write would change what judges everybody.
    """
    patterns = tuple(_shown(made))
    runs = place.parent == order.home / "runs" / order.name
    if not runs or not can_overlay(place.parent):
        _note_made(place, made)
        mounted = to_mount(order, layer, place, names)
        _lay(order, layer, place, patterns, mounted)
        mount_from_now_on(place, mounted)
        return
    exclude = place / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    with exclude.open("ab") as file:
        file.write(b"".join(os.fsencode(f"{it}\n") for it in patterns))
    for made_now in (exclude.parent, exclude):
        os.chown(made_now, *order.agent)
    under_mark(place).write_bytes(os.fsencode(layer))


def _lay(
    order: Order,
    source: Path,
    place: Path,
    patterns: tuple[str, ...],
    mounted: Layered | None = None,
) -> None:
    script = ("sh", "-c", f"{copying(mounted)}shift 2\n{_LEAVE_OUT}", "lay")
    if not order.sandboxed:
        asked = (*script, str(source), str(place), *patterns)
        check(run(asked, cwd=place, deadline=SECONDS), "cp")
        return
    need_sandbox("the workspace was not set up")
    mounts = (
        Mount(source=source, target="/layer"),
        Mount(source=place, target=WORKSPACE, writable=True),
    )
    box = Box(mounts=mounts, directory=WORKSPACE, env={})
    laid = boxed(box, (*script, "/layer", WORKSPACE, *patterns))
    check(run_boxed(laid, deadline=SECONDS), "cp")


def _set_up_bare(order: Order, place: Path, env: EnvSettings) -> None:
    """In the clone itself: what it made is what was not there before."""
    before = files_of(order, order.base_commit) | files_in(order, place, SECONDS)
    check(_run_bare(place, env.setup), env.setup)
    made = made_by_set_up(before, files_in(order, place, SECONDS), env.inputs)
    _note_made(place, made)
    script = ("sh", "-c", _LEAVE_OUT, "leave out", *_shown(made))
    check(run(script, cwd=place, deadline=SECONDS), "printf")


def _note_made(place: Path, made: frozenset[Entry]) -> None:
    """Besides what an earlier set-up made, which is still there."""
    mark = made_mark(place)
    before = entries_in(mark.read_bytes()) if mark.exists() else frozenset[Entry]()
    beside = mark.with_name(f"{mark.name}.{secrets.token_hex(4)}")
    beside.write_bytes(as_list(before | made))
    beside.replace(mark)


def _shown(made: frozenset[Entry]) -> Iterator[str]:
    """The patterns that keep the agent's own git from adding it; none where they are too many."""
    if len(made) <= MOST_SHOWN:
        yield from patterns_of(path_of(it) for it in sorted(made))


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
