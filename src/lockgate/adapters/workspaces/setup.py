"""What a clone needs that git does not have: the set-up layer and the files of `[env] copy`."""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from glob import escape
from pathlib import Path, PurePosixPath

from lockgate.adapters.run import Cut, Finished, run
from lockgate.adapters.sandbox import Box, Mount, boxed, run_boxed, trouble
from lockgate.adapters.workspaces.changes import (
    MOST_SHOWN,
    Entry,
    as_list,
    entries_in,
    made_by_set_up,
    path_of,
    patterns_of,
)
from lockgate.adapters.workspaces.clones import BASE, Order, clone_of_commit
from lockgate.adapters.workspaces.files import hand_over, locked, made_mark, ready_mark, remove
from lockgate.adapters.workspaces.git import told
from lockgate.adapters.workspaces.reading import files_in
from lockgate.core.config.settings import EnvSettings
from lockgate.core.model.agents import AGENT_HOME, NETWORK, WORKSPACE
from lockgate.errors import BadConfig, Unavailable

# The set-up layer: what `[env] setup` leaves beside the tracked files, once for its inputs.


SECONDS = 1800.0
TAIL = 2000  # characters of its output that are shown
# Nothing here may stop it: a path that the set-up made into something else is left as it is.
_STRIP = """
cd "$1" || exit 2
rm -rf .git
xargs -0 rm -f -- <"$2/files"
xargs -0 rmdir --ignore-fail-on-non-empty -- <"$2/folders"
exit 0
"""


def layer_key(order: Order, env: EnvSettings) -> str:
    """The command and its inputs as the base commit has them; all of it where none are named."""
    commit = order.base_commit
    asked = ("ls-tree", "-r", "-z", commit, "--", *env.inputs)
    inputs = told("the set-up's inputs were not read", order.repos.base, *asked)
    known = "\0".join((env.setup, *env.inputs, "", inputs))
    return hashlib.sha256(os.fsencode(known)).hexdigest()[:32]


def layer_of(order: Order, env: EnvSettings) -> tuple[Path, frozenset[Entry]]:
    """With a list of its files. Unavailable, with the end of its output, where that fails.

    Made now, unless it is there.
    """
    key = layer_key(order, env)
    place = order.home / "layers" / order.project.id / key
    with locked(order.home / "locks" / f"layer-{order.project.id}-{key}"):
        if not (place.is_dir() and made_mark(place).exists()):
            place.parent.mkdir(parents=True, exist_ok=True)
            for half in (place, *place.parent.glob(f".new-{key}-*")):
                remove(half)
            _make(order, env, place)
        return place, entries_in(made_mark(place).read_bytes())


def files_of(order: Order) -> frozenset[Entry]:
    """Those of the base commit."""
    asked = ("ls-tree", "-r", "-z", "--format=%(objectmode) %(objectname) 0%x09%(path)")
    listed = told("the files of base were not listed", order.repos.base, *asked, order.base_commit)
    return entries_in(os.fsencode(listed))


def check(done: Finished, command: str) -> None:
    if done.code == 0 and done.cut is None:
        return
    ended = f"was cut ({done.cut})" if done.cut else f"exited {done.code}"
    if done.cut is Cut.DEADLINE:
        ended = f"did not end within {SECONDS:.0f} s (nobody answers what it asks)"
    tail = (done.out + done.err).strip()[-TAIL:]
    raise Unavailable(
        "the set-up did not finish",
        why=f"`{command}` {ended}: {tail}",
        fix="mend [env] setup in .lockgate/config.toml, or what it needs, then try again",
    )


def need_sandbox(what: str) -> None:
    if why := trouble():
        raise Unavailable(what, why=why, fix='mend that, or set [sandbox] level = "none"')


def _make(order: Order, env: EnvSettings, place: Path) -> None:
    need_sandbox("the set-up was not run")
    new = place.with_name(f".new-{place.name}-{secrets.token_hex(4)}")
    try:
        for part in ("home", "lists"):
            (new / part).mkdir(parents=True)
        hand_over(new / "home", *order.agent)
        clone_of_commit(order, new / "tree", order.base_commit)
        check(_run(order, new, env.setup), env.setup)
        tracked = files_of(order)
        made = made_by_set_up(tracked, files_in(order, new / "tree", SECONDS), env.inputs)
        made_mark(place).write_bytes(as_list(made))
        _strip(order, new)
        (new / "tree").rename(place)
    finally:
        remove(new)


def _run(order: Order, new: Path, command: str) -> Finished:
    box = Box(
        mounts=(
            Mount(source=new / "tree", target=WORKSPACE, writable=True),
            Mount(source=order.repos.base, target=BASE),
            Mount(source=new / "home", target=AGENT_HOME, writable=True),
        ),
        directory=WORKSPACE,
        env={**_network(), "HOME": AGENT_HOME, "CI": "1"},
        network=True,
        hidden=(str(order.home),),
    )
    return run_boxed(boxed(box, ("sh", "-c", command)), deadline=SECONDS)


def _network() -> dict[str, str]:
    return {name: os.environ[name] for name in NETWORK if name in os.environ}


def _strip(order: Order, new: Path) -> None:
    """Take out what every clone has anyway; inside a sandbox, for the set-up may plant links."""
    asked = ("ls-tree", "-r", "-z", "--name-only", order.base_commit)
    files = told("the set-up's output was not kept", order.repos.base, *asked).split("\0")[:-1]
    _list(new / "lists" / "files", files)
    folders = {str(it) for name in files for it in PurePosixPath(name).parents[:-1]}
    _list(new / "lists" / "folders", sorted(folders, key=lambda it: -it.count("/")))
    mounts = (
        Mount(source=new / "tree", target=WORKSPACE, writable=True),
        Mount(source=new / "lists", target="/lists"),
    )
    box = Box(mounts=mounts, directory="/", env={})
    check(run_boxed(boxed(box, ("sh", "-c", _STRIP, "strip", WORKSPACE, "/lists"))), "strip")


def _list(file: Path, names: Iterable[str]) -> None:
    file.write_bytes(b"".join(os.fsencode(it) + b"\0" for it in names))
    file.chmod(0o644)
    file.parent.chmod(0o755)


_HALF = "copying"
# A copy, not a second name: what one agent writes must not reach another. Links that an agent has
# planted lead nowhere else than its own sandbox does.
_LEAVE_OUT = """
for pattern; do printf '%s\\n' "$pattern"; done >>.git/info/exclude
exit 0
"""
_LAY = """
cp -a --reflink=auto --remove-destination "$1/." "$2/" || exit 2
shift 2
"""


def furnish(order: Order, place: Path, env: EnvSettings) -> None:
    """Lay the layer and the copied files into it; the same ones are not laid twice."""
    with locked(order.home / "locks" / f"set-up-{order.name}"):
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
        layer, made = layer_of(order, env)
        _note_made(place, made)
        _lay(order, layer, place, tuple(_shown(made)))
    if names:
        _lay_copies(order, place, names)
    if env.setup and not order.sandboxed:
        _set_up_bare(order, place, env)
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
        _lay(order, stage, place, tuple(patterns_of(names)))
    finally:
        remove(stage)


def _lay(order: Order, source: Path, place: Path, patterns: tuple[str, ...]) -> None:
    script = ("sh", "-c", _LAY + _LEAVE_OUT, "lay")
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
    before = files_of(order) | files_in(order, place, SECONDS)
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
