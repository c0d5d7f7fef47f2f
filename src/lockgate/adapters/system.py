"""The machine: time, chance, the home's lock, programs' versions, leftover processes."""

import fcntl
import os
import re
import signal
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lockgate.adapters.run import STARTER, namespace, run, started_at
from lockgate.errors import Unavailable


class SystemClock:
    def now(self) -> float:
        return time.time()


class SystemChance:
    def suffix(self) -> str:
        return os.urandom(2).hex()

    def token(self) -> str:
        import secrets  # noqa: PLC0415 - only a session's start needs it

        return secrets.token_urlsafe(32)


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
