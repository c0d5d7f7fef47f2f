"""Set-up layers: what `[env] setup` leaves beside the tracked files.

Base's is made once for its inputs, from base's commit. A change that edits these has one of its
own, made from its own commit; it lies among the task's runs and goes with them.
"""

import hashlib
import os
import re
import secrets
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from msgspec import Struct, ValidationError, json
from msgspec.structs import replace

from lockgate.adapters.run import Cut, Finished
from lockgate.adapters.sandbox import Box, Mount, boxed, run_boxed, trouble
from lockgate.adapters.sandbox.layered import layered_at
from lockgate.adapters.sandbox.probe import can_overlay
from lockgate.adapters.sandbox.scratch import Room, room_for, size_of_memory
from lockgate.adapters.workspaces import changes
from lockgate.adapters.workspaces.changes import Entry, as_list, entries_in, made_by_set_up
from lockgate.adapters.workspaces.clones import BASE, Order, clone_of_commit
from lockgate.adapters.workspaces.files import hand_over, locked, made_mark, remove, size_of
from lockgate.adapters.workspaces.git import git, told
from lockgate.adapters.workspaces.layer_facts import facts_of, programs_here, settings_in
from lockgate.adapters.workspaces.layer_notes import forget, note_layer, note_size
from lockgate.adapters.workspaces.reading import files_in
from lockgate.core.config.settings import EnvSettings, Settings
from lockgate.core.layers.compare import Surroundings, compared
from lockgate.core.layers.inputs import CERTIFICATES, caching, edited_inputs, for_base, for_change
from lockgate.core.model.agents import AGENT_HOME, WORKSPACE
from lockgate.core.model.brought import Brought, SetUpFailed
from lockgate.core.model.gates import CommandGate, DifferentialGate
from lockgate.errors import Unavailable

SECONDS = 1800.0
HEAD, TAIL = 1000, 2000  # characters of its output that are shown
LINE = 300  # and of one line, where that is all
TELLING = 40  # characters of a line that says what is wrong, and more than a code
_WRONG = re.compile(r"\berr(?:or)?\b|\bERR_", re.IGNORECASE)
AGAIN_AFTER = 60.0  # seconds
MOST_BYTES = 20 << 30  # that a set-up may leave, with its HOME
UNUSED = 2 * 3600.0  # seconds after which nobody can still be using a layer
CACHE = "/cache"  # where it finds what package managers keep
CACHE_MB = 8192  # that a change's set-up may write there, of memory
# Nothing here may stop it: a path that the set-up made into something else is left as it is.
_STRIP = """
cd "$1" || exit 2
rm -rf .git
xargs -0 rm -f -- <"$2/files"
xargs -0 rmdir --ignore-fail-on-non-empty -- <"$2/folders"
exit 0
"""
# What judges is base's own copy, with the bytecode that fits it.
_AS_BASE = """
cd "$1" || exit 2
xargs -0 -r rm -rf -- <"$2/drop" || exit 2
xargs -0 -r rm -rf -- <"$2/bases" || exit 2
cd "$3" || exit 2
xargs -0 -r cp -a --parents --reflink=auto -t "$1" -- <"$2/bases"
"""


def layer_key(order: Order, env: EnvSettings) -> str:
    """The command and its inputs as the base commit has them; all of it where none are named."""
    commit = order.base_commit
    asked = ("ls-tree", "-r", "-z", commit, "--", *env.inputs)
    inputs = told("the set-up's inputs were not read", order.repos.base, *asked)
    known = "\0".join((env.setup, *env.inputs, "", inputs))
    return hashlib.sha256(os.fsencode(known)).hexdigest()[:32]


def layer_of(order: Order, env: EnvSettings) -> tuple[Path, frozenset[Entry]]:
    """Base's, with a list of its files. Unavailable, with the end of its output, where that fails.

    Made now, unless it is there.
    """
    key = layer_key(order, env)
    place = order.home / "layers" / order.project.id / key
    failed = order.home / "layers" / f".failed-{order.project.id}-{key}"
    with locked(order.home / "locks" / f"layer-{order.project.id}-{key}"):
        if not _is_made(place):
            _not_again(failed, env.setup)
            done = _make(order, env, place, order.base_commit)
            if done.cut is not Cut.BOX and done.code != 0:
                failed.write_text(_in_a_line(done), encoding="utf-8", errors="replace")
            check(done, env.setup)
        made_mark(place).touch()  # when it was used last
        return place, entries_in(made_mark(place).read_bytes())


def keep_within(home: Path, limit_bytes: int) -> None:
    """Remove base's layers, then caches, the longest unused first, until all of them fit in there.

    What was used lately stays: a gate may see it; and so does what a workspace shows. What is
    removed is made again when it is needed.
    """
    left = size_of(home / "layers") + size_of(home / "caches")
    shown = {it.layer for it in map(layered_at, (home / "workspaces").glob("[!.]*")) if it}
    for used, place, lock in (*sorted(_layers(home)), *sorted(_caches(home))):
        if left <= limit_bytes:
            break
        if time.time() - used > UNUSED and place not in shown:
            size = size_of(place)
            with locked(home / "locks" / lock):
                made_mark(place).unlink(missing_ok=True)
                forget(place)
                remove(place)
            left -= size


def _layers(home: Path) -> Iterator[tuple[float, Path, str]]:
    """When each was used last, and the lock under which it is made."""
    for mark in (home / "layers").glob("*/.made-*"):
        key = mark.name.removeprefix(".made-")
        lock = f"layer-{mark.parent.name}-{key}"
        yield mark.stat().st_mtime, mark.with_name(key), lock


def _caches(home: Path) -> Iterator[tuple[float, Path, str]]:
    for place in (home / "caches").glob("[!.]*"):
        yield place.stat().st_mtime, place, f"cache-{place.name}"


class Own(Struct, frozen=True):
    """A change's own layer, how it is to be told apart, and what it brought."""

    place: Path
    key: str
    brought: Brought

    @property
    def made(self) -> frozenset[Entry]:
        return entries_in(made_mark(self.place).read_bytes())


def own_layer(order: Order, settings: Settings) -> Own | SetUpFailed | None:
    """None where base's fits. It is made once for a tree; the one of the tree before goes."""
    env, commit = settings.env, order.candidate.commit
    if not (env.setup and order.sandboxed and commit) or commit == order.base_commit:
        return None
    inputs = _edited(order, env)
    if not inputs:
        return None
    commands = tuple(_commands(settings))
    known = (changes.tree_of(order.repos, commit), env.setup, layer_key(order, env), *commands)
    key = hashlib.sha256(os.fsencode("\0".join(known))).hexdigest()[:32]
    place = order.home / "runs" / order.name / f"layer-{key}"
    with locked(order.home / "locks" / f"own-layer-{order.name}"):
        said = _said_of(place)
        if said is None:
            said = _bring(order, settings, place, Surroundings(inputs=inputs, commands=commands))
        return said if isinstance(said, SetUpFailed) else Own(place, key, said)


def files_of(order: Order, commit: str) -> frozenset[Entry]:
    asked = ("ls-tree", "-r", "-z", "--format=%(objectmode) %(objectname) 0%x09%(path)")
    listed = told("the tracked files were not listed", _holding(order, commit), *asked, commit)
    return entries_in(os.fsencode(listed))


def check(done: Finished, command: str) -> None:
    if done.code == 0 and done.cut is None:
        return
    raise Unavailable(
        "the set-up did not finish",
        why=_how(done, command),
        fix="fix [env] setup in .lockgate/config.toml, or what it needs, then try again",
    )


def _not_again(failed: Path, command: str) -> None:
    """One that has just failed is not run for each command that needs it."""
    try:
        seconds = time.time() - failed.stat().st_mtime
        said = failed.read_text(encoding="utf-8")
    except OSError:
        return
    if 0 <= seconds < AGAIN_AFTER:
        why = f"`{command}` failed {seconds:.0f} s ago and was not run again: {said}"
        fix = f"fix that, then try again {AGAIN_AFTER:.0f} s after it failed"
        raise Unavailable("the set-up did not finish", why=why, fix=fix)
    failed.unlink(missing_ok=True)


def _in_a_line(done: Finished) -> str:
    """The first line that says what is wrong, else the last one."""
    lines = [it.strip() for it in (done.out + done.err).splitlines() if it.strip()]
    wrong = (it for it in lines if len(it) > TELLING and _WRONG.search(it))
    return next(wrong, lines[-1] if lines else "")[-LINE:]


def need_sandbox(what: str) -> None:
    if why := trouble():
        raise Unavailable(what, why=why, fix='fix that, or set [sandbox] level = "none"')


def _how(done: Finished, command: str) -> str:
    ended = f"was cut ({done.cut})" if done.cut else f"exited {done.code}"
    if done.cut is Cut.DEADLINE:
        ended = f"did not end within {SECONDS:.0f} s (nobody answers what it asks)"
    return f"`{command}` {ended}: {_shortened(done)}"


def _shortened(done: Finished) -> str:
    """The last words; also the first ones of a long complaint, which a tool may begin with."""
    whole = (done.out + done.err).strip()
    if len(whole) <= HEAD + TAIL:
        return whole
    return f"{(done.err.strip() or whole)[:HEAD]}\n…\n{whole[-TAIL:]}"


def _edited(order: Order, env: EnvSettings) -> tuple[str, ...]:
    """What the change edits of the inputs, since it left base."""
    repos, it = order.repos, order.candidate
    forks = list[str]()

    def read(commit: str, path: str) -> str | None:
        done = git(repos.judge, "cat-file", "blob", f"{commit}:{path}")
        return done.out if done.code == 0 else None

    def on_base(path: str) -> str | None:
        forks.extend(() if forks else (changes.fork_of(repos, it),))
        return read(forks[0], path)

    files = changes.files_of(repos, it)
    return edited_inputs(files, env.inputs, on_base, lambda path: read(it.commit, path))


def _commands(settings: Settings) -> Iterable[str]:
    """What judges by running something."""
    gates = (it for it in settings.gates if isinstance(it, CommandGate | DifferentialGate))
    yield from (it.command for it in gates)
    yield from filter(None, (settings.commands.test, settings.commands.typecheck))


_FAILED, _BROUGHT = json.Decoder(SetUpFailed), json.Decoder(Brought)


def _said_of(place: Path) -> Brought | SetUpFailed | None:
    """What was noted of it before; None where it is not there, or half made."""
    try:
        failed = _note(place, "failed").read_bytes()
        return _FAILED.decode(failed)
    except (OSError, ValidationError):
        pass
    try:
        said = _BROUGHT.decode(_note(place, "brought").read_bytes())
    except (OSError, ValidationError):
        return None
    return said if _is_made(place) else None


def _note(place: Path, kind: str) -> Path:
    return place.with_name(f".{kind}-{place.name}")


def _bring(
    order: Order, settings: Settings, place: Path, beside: Surroundings
) -> Brought | SetUpFailed:
    base, _ = layer_of(order, settings.env)
    for old in (*place.parent.glob("layer-*"), *place.parent.glob(".*-layer-*")):
        remove(old)
    commit = order.candidate.commit
    done = _make(order, settings.env, place, commit)
    if done.cut is Cut.BOX:
        check(done, settings.env.setup)
    if done.code != 0 or done.cut is not None:
        failed = SetUpFailed(beside.inputs, _how(done, settings.env.setup))
        _note(place, "failed").write_bytes(json.encode(failed))
        return failed
    known = Surroundings(
        inputs=beside.inputs,
        commands=beside.commands,
        programs=programs_here(),
        settings=tuple(settings_in(order.repos.judge, (order.base_commit, commit))),
    )
    brought = compared(facts_of(base, "base"), facts_of(place, "change"), known)
    _as_base(order, base, place, brought)
    _note(place, "brought").write_bytes(json.encode(brought))
    return brought


def _is_made(place: Path) -> bool:
    return place.is_dir() and made_mark(place).exists()


def _make(order: Order, env: EnvSettings, place: Path, commit: str) -> Finished:
    """From a clean checkout of that commit; nothing is there where it does not end well."""
    need_sandbox("the set-up was not run")
    place.parent.mkdir(parents=True, exist_ok=True)
    for half in (place, *place.parent.glob(f".new-{place.name}-*")):
        remove(half)
    new = place.with_name(f".new-{place.name}-{secrets.token_hex(4)}")
    try:
        for part in ("home", "lists"):
            (new / part).mkdir(parents=True)
        hand_over(new / "home", *order.agent)
        clone_of_commit(order, new / "tree", commit)
        done = _run(order, new, env, own=commit != order.base_commit)
        if done.code == 0 and done.cut is None:
            tracked = files_of(order, commit)
            made = made_by_set_up(tracked, files_in(order, new / "tree", SECONDS), env.inputs)
            made_mark(place).write_bytes(as_list(made))
            _strip(order, new, commit)
            note_layer(place, new / "tree", tracked)
            (new / "tree").rename(place)
        return done
    finally:
        remove(new)


def _run(order: Order, new: Path, env: EnvSettings, *, own: bool) -> Finished:
    given = for_change(os.environ) if own else for_base(os.environ, env.passed)
    with _cache(order, own=own) as (room, mounts):
        box = Box(
            mounts=(
                Mount(source=new / "tree", target=WORKSPACE, writable=True),
                Mount(source=order.repos.base, target=BASE),
                Mount(source=new / "home", target=AGENT_HOME, writable=True),
                *mounts,
            ),
            directory=WORKSPACE,
            env=given
            | (caching(CACHE, env.setup) if mounts else {})
            | {"HOME": AGENT_HOME, "CI": "1"},
            network=True,
            read=tuple(it for it in map(given.get, CERTIFICATES) if it and Path(it).is_file()),
            hidden=(str(order.home),),
        )
        made = boxed(box, ("sh", "-c", env.setup))
        if room:
            made = replace(made, direct=room.entered_by(made.direct, None, box.processes))
        return run_boxed(made, deadline=SECONDS, warden=Bounded(new))


@contextmanager
def _cache(order: Order, *, own: bool) -> Generator[tuple[Room | None, tuple[Mount, ...]]]:
    """Base's set-up writes it; a change's has it under what is thrown away, or not at all."""
    place = order.home / "caches" / order.project.id / "files"
    if not own:
        place.mkdir(parents=True, exist_ok=True)
        os.chown(place, *order.agent)
        os.utime(place.parent)  # when it was used last
        yield None, (Mount(source=place, target=CACHE, writable=True),)
        note_size(place.parent, size_of(place))
    elif place.is_dir() and can_overlay(place.parent):
        with room_for(place, size_of_memory(CACHE_MB)) as room:
            yield room, (Mount(source=room.place / "tree", target=CACHE, writable=True),)
    else:
        yield None, ()


class Bounded:
    """The Warden of a set-up: it ends one that fills the disk."""

    def __init__(self, place: Path) -> None:
        self.place, self.next = place, 0.0

    def enters(self, outer: int, first: int) -> None:
        """Nothing is known of it before it runs."""

    def look(self) -> Cut | None:
        begun = time.monotonic()
        if begun < self.next:
            return None
        full = size_of(self.place) > MOST_BYTES
        now = time.monotonic()
        self.next = now + max(1.0, 20 * (now - begun))
        return Cut.SCRATCH if full else None

    def leaves(self, code: int) -> Cut | None:
        """Its exit code stands."""


def _strip(order: Order, new: Path, commit: str) -> None:
    """Take out what every clone has anyway; inside a sandbox, for the set-up may plant links."""
    asked = ("ls-tree", "-r", "-z", "--name-only", commit)
    what = "the set-up's output was not kept"
    files = told(what, _holding(order, commit), *asked).split("\0")[:-1]
    folders = {str(it) for name in files for it in PurePosixPath(name).parents[:-1]}
    lists = {"files": files, "folders": sorted(folders, key=lambda it: -it.count("/"))}
    _scripted(new / "lists", lists, (_STRIP, "strip"), new / "tree")


def _as_base(order: Order, base: Path, place: Path, brought: Brought) -> None:
    lists = place.with_name(f".new-{place.name}-{secrets.token_hex(4)}")
    lists.mkdir()
    try:
        given = {"drop": brought.drop, "bases": brought.bases}
        _scripted(lists, given, (_AS_BASE, "as base"), place, base)
    finally:
        remove(lists)


def _scripted(
    lists: Path,
    given: Mapping[str, Iterable[str]],
    script: tuple[str, str],
    tree: Path,
    base: Path | None = None,
) -> None:
    """A script of ours on a tree that others have written: nothing of it runs, or leads out."""
    for name, names in given.items():
        (lists / name).write_bytes(b"".join(os.fsencode(it) + b"\0" for it in names))
        (lists / name).chmod(0o644)
    lists.chmod(0o755)
    mounts = (
        Mount(source=tree, target=WORKSPACE, writable=True),
        Mount(source=lists, target="/lists"),
        *((Mount(source=base, target="/layer"),) if base else ()),
    )
    argv = ("sh", "-c", *script, WORKSPACE, "/lists", "/layer")
    done = run_boxed(boxed(Box(mounts=mounts, directory="/", env={}), argv), deadline=SECONDS)
    check(done, script[1])


def _holding(order: Order, commit: str) -> Path:
    """The repository that has it."""
    return order.repos.base if commit == order.base_commit else order.repos.judge
