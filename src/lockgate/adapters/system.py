"""The machine: time, chance, the home's lock, programs' versions, leftovers, disk that is used."""

import fcntl
import json
import os
import re
import signal
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta, timezone, tzinfo
from pathlib import Path
from typing import TextIO

from lockgate import __version__
from lockgate.adapters.run import STARTER, namespace, run, started_at
from lockgate.errors import Unavailable

FILES = 65_536  # that the orchestrator may have open, where the system lets it


class SystemClock:
    def __init__(self, now: Callable[[], float] = lambda: time.time()) -> None:  # noqa: PLW0108 - tests set it
        self._now = now

    def now(self) -> float:
        return self._now()

    def elapsed(self) -> float:
        return time.monotonic()


class SystemChance:
    def suffix(self) -> str:
        return os.urandom(2).hex()

    def token(self) -> str:
        import secrets  # noqa: PLC0415 - only a session's start needs it

        return secrets.token_urlsafe(32)


def local_zone() -> tzinfo:
    """The zone of this machine's clock, with its changes; its present offset where none is set."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - only who tells people needs it

    named = os.environ.get("TZ", "").removeprefix(":")
    real = os.path.realpath("/etc/localtime").partition("/zoneinfo/")[2]
    for name in filter(None, (named, real)):
        with suppress(OSError, ValueError, KeyError):
            return ZoneInfo(name)
    return timezone(timedelta(seconds=time.localtime().tm_gmtoff))


# The users of this machine.


def owner_of(home: Path) -> int:
    """The user that a home belongs to; of one that is not there yet, who would make it."""
    try:
        return home.stat().st_uid
    except OSError:
        return os.getuid()


def user_name(uid: int) -> str:
    """What the machine calls them; a user that it does not know has a number."""
    import pwd  # noqa: PLC0415 - only who acts has a name

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user-{uid}"


def user_id(name: str) -> int | None:
    import pwd  # noqa: PLC0415 - as above

    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def wait(milliseconds: float) -> None:
    time.sleep(milliseconds / 1000)


# One orchestrator a home, one step a task: locks that the kernel gives back with their holder.


NAME = "orchestrator.lock"


@contextmanager
def holding(home: Path) -> Generator[bool]:
    """Whether we are the one, for as long as we are in here."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / NAME).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield True


PULSE = "orchestrator.pulse"


def id_of(home: Path) -> str:
    """What no other home is called, on this machine or another; made once, by chance."""
    place = home / "id"
    with suppress(FileNotFoundError):
        return place.read_text(encoding="ascii")
    beside = place.with_name(f".id-{os.getpid()}-{os.urandom(4).hex()}")
    beside.write_text(os.urandom(16).hex(), encoding="ascii")
    with suppress(FileExistsError):  # another process was faster
        os.link(beside, place)
    beside.unlink()
    return place.read_text(encoding="ascii")


def pulse(home: Path, doing: Sequence[str]) -> None:
    """Leave a sign of life for a client that gets no answer; a failure to write it is ignored."""
    now = {"pid": os.getpid(), "time": time.time(), "version": __version__}
    said = json.dumps({**now, "doing": doing})
    with suppress(OSError):
        (home / f"{PULSE}.new").write_text(said, encoding="utf-8")
        (home / f"{PULSE}.new").replace(home / PULSE)


def version_at(home: Path) -> str:
    """That of the orchestrator which left the last sign; empty where it says none."""
    try:
        return str(json.loads((home / PULSE).read_bytes()).get("version", ""))
    except (OSError, ValueError, AttributeError):
        return ""


MOST, KEPT = 10_000_000, 3  # bytes of a log, and how many older ones there are


def rotated(log: Path, most: int = MOST) -> bool:
    """Begin another log where what we say goes to this file and it is too long."""
    try:
        ours, there = os.fstat(2), log.stat()
    except OSError:
        return False
    if (ours.st_dev, ours.st_ino) != (there.st_dev, there.st_ino) or there.st_size <= most:
        return False
    for number in range(KEPT, 0, -1):
        older = log if number == 1 else log.with_name(f"{log.name}.{number - 1}")
        with suppress(FileNotFoundError):
            older.replace(log.with_name(f"{log.name}.{number}"))
    new = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor in (1, 2):
        os.dup2(new, descriptor)
    os.close(new)
    return True


MIGRATION = "migration.lock"
PATIENCE = 60.0  # seconds for another process to bring the same database up to date


UPDATED = "the database was not brought up to date"


@contextmanager
def nobody_orchestrating(home: Path, what: str = UPDATED) -> Generator[None]:
    """Held while the database is brought up to date: no orchestrator runs, and none begins.

    `what` did not happen where one runs.
    """
    home.mkdir(parents=True, exist_ok=True)
    with (home / MIGRATION).open("a", encoding="utf-8") as one_at_a_time:
        _lock_within(one_at_a_time, PATIENCE, what)
        with holding(home) as ours:
            if not ours:
                raise Unavailable(
                    what,
                    why=f"an orchestrator of this home runs (pid {holder(home)})",
                    fix="lockgate down, then try again",
                )
            yield


def _lock_within(file: TextIO, seconds: float, what: str) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise Unavailable(
                    what,
                    why=f"another process has been doing that for {seconds:.0f} s",
                    fix="wait for it, then try again",
                ) from None
            time.sleep(0.05)
        else:
            return


@contextmanager
def alone(file: Path) -> Generator[bool]:
    """Whether nobody else is in here with the same file; nobody waits for it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def allow_many_files() -> None:
    """As many open files as this user may have: each agent that is watched holds one."""
    import resource  # noqa: PLC0415 - an orchestrator alone needs it

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(ValueError, OSError):  # the system may allow fewer than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def holder(home: Path) -> int | None:
    """The pid of the orchestrator that runs; None where none does."""
    try:
        with (home / NAME).open("r+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                said = file.read().strip()
                return int(said) if said.isdecimal() else 0
    except OSError:
        pass
    return None


# Which programs are on this machine, and which version each says it is.
#
# No program is started that lies in a repository, and none learns more of the user than PATH.


SECONDS = 30.0
FLAGS = {"tmux": "-V"}
ENV = "/usr/bin/env"
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.-]*")


def version_of(program: str) -> str | None:
    """None where it is not there, empty where it does not say or is not to be started."""
    import shutil  # noqa: PLC0415 - slow to load, and only the doctor asks
    import tempfile  # noqa: PLC0415 - as above

    by_path = "/" in program
    search = os.pathsep.join(it for it in _path() if not _in_repository(Path(it)))
    at = shutil.which(program, path=None if by_path else search)
    if at is None:
        return "" if shutil.which(program) else None
    real = Path(at).resolve()
    started_from = (Path(at).absolute(), real)
    if any(_in_repository(it, managed=not by_path) for it in started_from):
        return ""
    with tempfile.TemporaryDirectory(prefix="lockgate-doctor-") as home:
        variables = (f"PATH={search}", "LANG=C.UTF-8", f"HOME={home}")
        asked = (ENV, "-i", *variables, at, FLAGS.get(program, "--version"))
        try:
            done = run(asked, cwd=Path(home), deadline=SECONDS)
        except Unavailable:
            return ""
    found = _VERSION.search(done.out) or _VERSION.search(done.err)
    return found[0] if found else ""


def path_outside(directory: Path) -> str:
    """PATH without what lies in the work tree that a directory belongs to."""
    here = _work_tree(directory)
    if here is None:
        return os.environ.get("PATH", os.defpath)
    return os.pathsep.join(it for it in _path() if not Path(it).resolve().is_relative_to(here))


def _path() -> Iterator[str]:
    """Absolute directories only: others change their meaning with where one stands."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return (it for it in entries if Path(it).is_absolute())


def _in_repository(path: Path, *, managed: bool = True) -> bool:
    """Version managers are clones in a hidden directory (~/.nvm, ~/.pyenv), which is no project."""
    tree = _work_tree(path.resolve())
    if tree is None:
        return False
    return not (managed and tree.name.startswith(".") and tree.parent == Path.home().resolve())


def _work_tree(path: Path) -> Path | None:
    real = path.resolve()
    return next((it for it in (real, *real.parents) if os.path.lexists(it / ".git")), None)


# Ends what a killed process of ours was starting: a sandbox half-way up outlives its starter.


def sweep() -> tuple[int, ...]:
    """The processes that were ended: those that carry the mark of a starter who is gone."""
    ended: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and _is_orphan(entry):
            with suppress(OSError):
                os.kill(int(entry.name), signal.SIGKILL)
                ended.append(int(entry.name))
    return tuple(ended)


def _is_orphan(entry: Path) -> bool:
    try:
        marks = [it for it in (entry / "environ").read_bytes().split(b"\0") if it.startswith(_MARK)]
    except OSError:
        return False
    mark = marks[0].removeprefix(_MARK).decode("ascii", "replace") if marks else ""
    where, pid, start, *_ = (*mark.split("."), "", "", "")
    known = where == namespace() and pid.isdecimal() and start.isdecimal()
    return known and started_at(int(pid)) != int(start)


_MARK = f"{STARTER}=".encode()


# How large what is kept for later tasks was when it was made. It was noted then, beside each layer,
# cache and service's data, so that nobody has to walk their files to tell.


NOTES = {
    "layers": ("layers/*/.note-*", "runs/*/.note-layer-*"),
    "caches": ("caches/.note-*",),
    "services": ("services/*/.note-*",),
}


def free_space(place: Path) -> int:
    """Bytes that can be written there; none where no file can be made any more."""
    found = os.statvfs(place)
    no_file = found.f_files > 0 and found.f_favail == 0
    return 0 if no_file else found.f_bavail * found.f_frsize


def kept_sizes(home: Path) -> dict[str, int]:
    """Bytes by what they are for."""
    return {
        name: sum(_size(note) for pattern in patterns for note in home.glob(pattern))
        for name, patterns in NOTES.items()
    }


def _size(note: Path) -> int:
    """Nothing where it is gone meanwhile, or half written."""
    try:
        found = json.loads(note.read_bytes())["size"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    return found if isinstance(found, int) else 0
