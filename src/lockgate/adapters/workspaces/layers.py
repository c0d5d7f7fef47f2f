"""The set-up layer: what `[env] setup` leaves beside the tracked files, once for its inputs."""

import hashlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from lockgate.adapters.run import Finished
from lockgate.adapters.sandbox import Box, Mount, boxed, run_boxed, trouble
from lockgate.adapters.workspaces.clones import BASE, Order, clone_of_commit
from lockgate.adapters.workspaces.hardened_git import told
from lockgate.adapters.workspaces.leaving_out import Entry, as_list, entries_in, made_by_set_up
from lockgate.adapters.workspaces.locks import locked
from lockgate.adapters.workspaces.reading import files_in
from lockgate.adapters.workspaces.trees import hand_over, made_mark, remove
from lockgate.core.config.settings import EnvSettings
from lockgate.core.model.agents import AGENT_HOME, WORKSPACE
from lockgate.errors import Unavailable

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
        env={"HOME": AGENT_HOME, "CI": "1"},
        network=True,
        hidden=(str(order.home),),
    )
    return run_boxed(boxed(box, ("sh", "-c", command)), deadline=SECONDS)


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
