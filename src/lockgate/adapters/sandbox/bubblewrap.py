"""The command line that encloses a program: a root of its own, made from a list of what it sees."""

import functools
import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.run import run
from lockgate.adapters.sandbox.launch import OPEN, SCOPED, scoping
from lockgate.adapters.sandbox.process import Boxed
from lockgate.adapters.sandbox.seccomp import our_program
from lockgate.adapters.sandbox.services.orders import PLACE
from lockgate.adapters.sandbox.toolchain import (
    ROOTS,
    NotTrusted,
    is_there,
    outermost,
    path_entries,
    private_places,
    roots,
    system,
    toolchain,
    trusted,
    within,
)
from lockgate.adapters.sandbox.uplink import OPTIONS, READY_WITHIN
from lockgate.errors import Unavailable

NOBODY = 65534
HOME = "/home/agent"
GIT_CONFIG = "/run/gitconfig"  # inside the box; it gives git an identity
_GIT_CONFIG = Path(__file__).with_name("gitconfig")
RESOLVER = os.path.realpath("/etc/resolv.conf")  # often a link to a file of a service's
MEBIBYTE = 1 << 20
FILE_BYTES = 16 << 30  # the most that one file may have
LATELY = 5.0  # seconds
TMP = "/tmp"  # noqa: S108 - inside the box, where it is the box's own
SCRATCH = {"/var/tmp": 64, "/dev/shm": 64, "/home": 64}  # noqa: S108 - as above


class Mount(Struct, frozen=True, kw_only=True):
    source: Path
    target: str
    writable: bool = False


class Box(Struct, frozen=True, kw_only=True):
    """What a program sees. Later mounts lie over earlier ones."""

    mounts: tuple[Mount, ...]
    directory: str
    env: Mapping[str, str]  # all of it, but for PATH, HOME and the like where they are missing
    network: bool = False
    read: tuple[str, ...] = ()  # the host's, shown read-only at their own place; `~` is HOME
    hidden: tuple[str, ...] = ()  # never shown, though they lie in what is; mounts still are
    terminal: bool = False  # keeps the terminal, for a person who sits at it
    under: tuple[Mount, ...] = ()  # in place of scratch: all else that is shown lies over them
    scratch_mb: int = 1024  # of memory, for /tmp
    services_mb: int = 0  # of memory, for what its services write
    processes: int = 4096


class Host(Struct, frozen=True):
    """What every box shows of this machine, and the variables that say where it is."""

    tools: tuple[str, ...]
    roots: Mapping[str, str]
    path: str


def boxed(
    box: Box,
    argv: Sequence[str],
    host: Host | None = None,
    *,
    bwrap: str | None = None,
    entering: tuple[str, ...] = (),
) -> Boxed:
    """How it is started, by `run_boxed` or by a runner that hands over nothing but the options.

    `entering` is what makes the mounts that the box shows, and then becomes what makes the box.
    """
    limits = (f"--nproc={box.processes}", "--core=0", f"--fsize={FILE_BYTES}")
    direct = (*entering, trusted("prlimit"), *limits, bwrap or trusted("bwrap"))
    scoped = SCOPED if box.network and closes_sockets(direct[-1]) else OPEN
    joined = uplink() if box.network and scoped == OPEN else ()
    apart = ("net",) if joined or not box.network else ()
    options = (*(f"--unshare-{it}" for it in apart), *_options(box, host or host_now()))
    inside, filter = (*_dropping_root(), *argv), our_program()
    return Boxed(
        program=_for_runner(direct, scoped, filter),
        options=options,
        argv=inside,
        direct=direct,
        before=() if scoped == OPEN else (*_LAUNCHER, scoped, ""),
        filter=filter,
        separate=(*_separate(), *apart),
        uplink=joined,
    )


def host_now() -> Host:
    tools = toolchain()
    return Host(tools, roots(), inside_path(tools))


def host_lately() -> Host:
    """As it was some seconds ago at most: looking takes longer than many a gate."""
    surroundings = tuple(os.environ.get(it) for it in ("PATH", "HOME", *ROOTS.values()))
    return _host_at(int(time.monotonic() / LATELY), surroundings)


@functools.lru_cache(maxsize=1)
def _host_at(_moment: int, _surroundings: tuple[str | None, ...]) -> Host:
    return host_now()


def closes_sockets(bwrap: str) -> bool:
    """Whether abstract sockets can be closed to a box that shares our network.

    A bwrap that has root's rights by its mode would lose them with that.
    """
    plain = os.geteuid() == 0 or not Path(bwrap).stat().st_mode & stat.S_ISUID
    return plain and scoping()


def uplink() -> tuple[str, ...]:
    """The command that gives a box a network of its own; empty where that cannot be had.

    Asked where Landlock cannot close the user's abstract sockets. A no is asked for again.
    """
    try:
        pasta = str(Path(trusted("pasta")).with_name("pasta"))  # a link, and it does as it is named
    except NotTrusted:
        return ()
    if pasta not in _PASSING and _passes_packets(pasta):
        _PASSING.add(pasta)
    dies = (trusted("setpriv"), "--pdeathsig", "KILL", "--")
    return (*dies, pasta, *OPTIONS) if pasta in _PASSING else ()


def _passes_packets(pasta: str) -> bool:
    """Whether it works for this user, on this kernel, with the network as it is now."""
    if os.geteuid() == 0:  # as root it gives up what it would need to join a box
        return False
    try:
        return run((pasta, *OPTIONS, "--", "/bin/true"), deadline=READY_WITHIN).code == 0
    except Unavailable:
        return False


_PASSING: set[str] = set()


def _for_runner(direct: tuple[str, ...], scoped: str, filter: bytes) -> tuple[str, ...]:
    """It dies with the runner from its first moment on, and not only once bwrap runs."""
    bound = (trusted("setpriv"), "--pdeathsig", "KILL", "--")
    return (*bound, *_LAUNCHER, scoped, filter.hex(), *direct)


_LAUNCHER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("launch.py")))


def owner() -> tuple[int, int]:
    """The uid and gid that must own what a box may write."""
    return (NOBODY, NOBODY) if os.geteuid() == 0 else (os.geteuid(), os.getegid())


def _options(box: Box, host: Host) -> Iterator[str]:
    read = tuple(map(os.path.expanduser, box.read))
    named = (*host.tools, *read, *map(os.path.realpath, read))
    shown = outermost((RESOLVER, *named))
    private = private_places((*system(), *shown), named)
    inside = tuple(it for it in named if any(within(it, place) for place in private))
    hidden = _to_hide(box, (*system(), *shown))
    yield from _namespaces(box)
    yield from _root_directory(box)
    yield from _shown(shown)
    yield from _emptied(private)
    yield from _shown(inside)
    yield from _emptied(hidden)
    yield from ("--ro-bind", str(_GIT_CONFIG), GIT_CONFIG)
    yield from _parents(tuple(mount.target for mount in box.mounts))
    for mount in box.mounts:
        yield from ("--bind" if mount.writable else "--ro-bind", str(mount.source), mount.target)
    for place in (*filter(os.path.isdir, (*private, *hidden)), "/dev", "/run", "/"):
        yield from ("--remount-ro", place)
    yield from ("--chdir", box.directory, "--clearenv")
    for name, value in _environment(box, host).items():
        yield from ("--setenv", name, value)


def _namespaces(box: Box) -> Iterator[str]:
    yield from ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
    # The name that resolves on every machine, also without a network.
    yield from ("--hostname", "localhost", "--die-with-parent", "--cap-drop", "ALL")
    if os.geteuid() == 0:  # what setpriv needs to give everything up
        yield from ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
        yield from ("--cap-add", "CAP_SETPCAP")
    else:
        yield from ("--unshare-user", "--disable-userns")
        yield from ("--uid", str(os.geteuid()), "--gid", str(os.getegid()))
    if not box.terminal:
        yield "--new-session"


def _separate() -> tuple[str, ...]:
    """The namespaces that those options give it, beside a network."""
    own = ("mnt", "pid", "ipc", "uts")
    return own if os.geteuid() == 0 else (*own, "user")


def _root_directory(box: Box) -> Iterator[str]:
    for place in system():
        if Path(place).is_symlink():
            yield from ("--symlink", str(Path(place).readlink()), place)
        else:
            yield from ("--ro-bind", place, place)
    yield from ("--proc", "/proc", "--dev", "/dev")
    yield from _tmpfs("/run", 1, "0755")
    given = tuple(mount.target for mount in box.under)
    for place, size in (SCRATCH | {TMP: box.scratch_mb, PLACE: box.services_mb}).items():
        if size and place not in given:
            yield from _tmpfs(place, size, "1777")
    home = box.env.get("HOME", HOME)
    if within(home, "/home"):
        yield from ("--perms", "0777", "--dir", home)
    yield from _parents(given)
    for mount in box.under:
        yield from ("--bind", str(mount.source), mount.target)


def _tmpfs(place: str, mebibytes: int, mode: str) -> tuple[str, ...]:
    """Without a size it could take half of the memory."""
    return ("--perms", mode, "--size", str(mebibytes * MEBIBYTE), "--tmpfs", place)


def _shown(places: tuple[str, ...]) -> Iterator[str]:
    yield from _parents(places)
    for place in places:
        yield from ("--ro-bind-try", place, place)


def _emptied(places: Sequence[str]) -> Iterator[str]:
    """A directory is empty then, and a file cannot be opened."""
    for place in places:
        if Path(place).is_dir():
            yield from _tmpfs(place, 1, "0755")
        else:
            yield from ("--ro-bind", os.devnull, place)


def _to_hide(box: Box, shown: Sequence[str]) -> tuple[str, ...]:
    places = (os.path.realpath(it) for it in box.hidden)
    return tuple(
        place for place in places if is_there(place) and any(within(place, it) for it in shown)
    )


@functools.lru_cache
def _parents(places: tuple[str, ...]) -> tuple[str, ...]:
    """Made by us, each once, because bwrap would keep them for root."""
    parents = (str(it) for place in places for it in reversed(Path(place).parents[:-1]))
    return tuple(word for it in dict.fromkeys(parents) for word in ("--perms", "0755", "--dir", it))


def inside_path(tools: Sequence[str] | None = None) -> str:
    """PATH without what a box does not show."""
    visible = (*system(), *(toolchain() if tools is None else tools))
    entries = [it for it in path_entries() if any(within(it, place) for place in visible)]
    return os.pathsep.join(entries) or os.defpath


def _environment(box: Box, host: Host) -> dict[str, str]:
    usual = {"HOME": HOME, "LANG": "C.UTF-8", "TMPDIR": TMP, "TERM": "xterm"}
    given = usual | {"GIT_CONFIG_SYSTEM": GIT_CONFIG} | dict(box.env)
    return {**host.roots, "PATH": given.get("PATH") or host.path} | given


def _dropping_root() -> tuple[str, ...]:
    """As root only root can mount what it must show; then nothing of root is kept."""
    if os.geteuid() != 0:
        return ()
    return (
        trusted("setpriv"),
        f"--reuid={NOBODY}",
        f"--regid={NOBODY}",
        "--clear-groups",
        "--no-new-privs",
        "--bounding-set=-all",
        "--inh-caps=-all",
        "--",
    )
