"""Keeps one session's program: `python -I -S main.py SESSION_DIR`, with no one to depend on.

It outlives the process that started it. What it knows is in its directory: run.json once it holds
the lock, exit.json once nothing of the program is left.
"""

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Generator
from functools import partial

# Run by path and without site-packages; ours come last, so that they hide nothing.
sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4)))  # noqa: PTH100, PTH118, PTH120 - pathlib is slow to load

from lockgate import __version__
from lockgate.adapters.sessions.runner import proc
from lockgate.adapters.sessions.runner.command_socket import Door
from lockgate.adapters.sessions.runner.files import Log, Spec
from lockgate.adapters.sessions.runner.limits import LOOK_EVERY, Limits, Retries
from lockgate.adapters.sessions.runner.relay import Relay
from lockgate.adapters.sessions.runner.supervise import GRACE, Child
from lockgate.core.model.secrets import Secret

HELD, TAKEN = "held", "taken"
AT_ONCE = 8
PROCESSES, SCRATCH_MB = 4096, 1280  # what a session's box may have, beside its memory
ANSWER_WITHIN = 60.0  # seconds, for what was asked before the program ended
NOT_FOUND, NOT_READY = 127, 125
SAID = 4000  # bytes of what is told of a service

Tell = Callable[[str], None]


def main(directory: str) -> int:
    with open(os.path.join(directory, "spec.json"), encoding="utf-8") as file:  # noqa: PTH118, PTH123 - no pathlib
        spec: Spec = json.load(file)
    directory = os.path.abspath(directory)  # noqa: PTH100 - no pathlib
    if spec["interactive"]:
        return _keep(directory, spec, lambda _: None)
    return _detached(directory, spec)


def _detached(directory: str, spec: Spec) -> int:
    """Return once the runner, by now nobody's child, holds the lock or has given up."""
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        with open(reading, encoding="utf-8") as word:  # noqa: PTH123 - a descriptor
            said = word.read()
        if said not in {HELD, TAKEN}:
            sys.stderr.write(said or "the runner ended before it held its lock\n")
        return 0 if said in {HELD, TAKEN} else 1
    os.close(reading)
    os.setsid()
    if os.fork():
        os._exit(0)
    _leave_terminal(directory)
    return _keep(directory, spec, lambda word: _tell(writing, word))


def _tell(descriptor: int, word: str) -> None:
    os.write(descriptor, word.encode())
    os.close(descriptor)


def _leave_terminal(directory: str) -> None:
    os.chdir("/")
    os.umask(0o077)
    null = os.open(os.devnull, os.O_RDWR)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        complaints = os.open(f"{directory}/runner.log", flags, 0o600)
    except OSError:
        complaints = null
    for target, source in ((0, null), (1, null), (2, complaints)):
        os.dup2(source, target)


def _keep(directory: str, spec: Spec, tell: Tell) -> int:
    """Hold the session's lock from before its program starts until nothing is left of it."""
    signals = Signals()
    try:
        lock = _locked(directory)
        if lock is None or any(os.path.lexists(f"{directory}/{it}.json") for it in ("run", "exit")):
            tell(TAKEN)
            return 0
        reserved = _reserve(f"{directory}/exit.json.new")
        started = proc.started_at(os.getpid())
        run = {"pid": os.getpid(), "start": started, "boot": proc.boot()}
        run |= {"version": __version__}
        _write(directory, "run.json", json.dumps(run))
    except OSError as error:
        tell(f"the session was not started: {error}\n")
        return 1
    tell(HELD)
    begin = time.monotonic()
    exit: dict[str, object] = {"ending": "exited", "code": NOT_FOUND}
    try:
        exit = _run(directory, spec, signals)
    except OSError as error:
        traceback.print_exc()
        _complain(directory, f"{error}\n")
    _remove_services(directory)
    _put_down(directory, reserved, exit | {"seconds": time.monotonic() - begin})
    return 0


def _run(directory: str, spec: Spec, signals: "Signals") -> dict[str, object]:
    """How it ended."""
    retries = Retries(spec)
    logs = _log(directory, spec, retries, "stdout"), _log(directory, spec, retries, "stderr")
    relay = Relay(home=spec["home"], token=spec["token"], python=spec["python"])
    door = Door(f"{directory}/door/socket", relay.answer, at_once=AT_ONCE, mode=0o666)
    with _grouped(spec) as (group, was_full):
        child = Child(spec, logs, lambda: _helpers(relay), group)
        limits = Limits(spec, child.first_inside, retries)
        _forget_secrets(directory, spec)
        ending, why = "", ""
        try:
            child.wake_by(signals.descriptor)
            door.serve()
            ending, why = _follow(child, door, limits, signals)
        finally:
            child.kill()
            child.sweep(spec["mark"], grace=1.0 if ending == "exited" else 0.0)
        if was_full():
            ending, why = "memory", limits.out_of_memory
    ending, why = _service_failed(directory, child, ending) or (ending, why)
    _answer_the_rest(door, signals)
    child.close()
    _close(logs, why or child.unproved())
    return {"ending": ending, "code": child.code() if ending == "exited" else None, "why": why}


def _service_failed(directory: str, child: Child, ending: str) -> tuple[str, str] | None:
    """Its program never began, where a service beside it was not ready: in that service's words."""
    if ending != "exited" or child.code() != NOT_READY:
        return None
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with contextlib.suppress(OSError):
        descriptor = os.open(f"{directory}/told/failed", flags)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
            return "service", file.read(SAID).decode("utf-8", errors="replace").strip()
    return None


def _log(directory: str, spec: Spec, retries: Retries, stream: str) -> Log:
    known = [Secret(name, value) for name, value in spec.get("secrets", ())]
    heard = partial(retries.hear, stream)
    return Log(f"{directory}/{stream}.log", spec["log_bytes"], known, heard)


def _remove_services(directory: str) -> None:
    """What services without a sandbox wrote, where what kept them was killed before it could."""
    place = f"{directory}/services"
    if os.path.lexists(place):
        import shutil  # noqa: PLC0415 - slow to load, and seldom needed

        shutil.rmtree(place, ignore_errors=True)


def _close(logs: tuple[Log, Log], complaint: str) -> None:
    if complaint:
        logs[1].write(f"{complaint}\n".encode())
    for log in logs:
        log.close()


@contextlib.contextmanager
def _grouped(spec: Spec) -> Generator[tuple[str, Callable[[], bool]]]:
    """A control group where one can be made, and whether the kernel found it full."""
    if not spec["group"]:
        yield "", lambda: False
        return
    from pathlib import Path  # noqa: PLC0415 - slow to load

    from lockgate.adapters.sandbox import cgroup  # noqa: PLC0415 - as above

    memory = (spec["memory_mb"] + SCRATCH_MB) << 20
    with cgroup.group(Path(spec["group"]), memory, PROCESSES) as made:
        yield str(made or ""), lambda: made is not None and cgroup.ran_out_of_memory(made)


def _answer_the_rest(door: Door, signals: "Signals") -> None:
    """What was asked is done; but the process that ends us may be the one that should answer."""
    until = time.monotonic() + ANSWER_WITHIN
    door.close(1.0)
    while door.busy and not signals.asked and time.monotonic() < until:
        time.sleep(0.05)


def _helpers(relay: Relay) -> tuple[int, ...]:
    with relay.starting:
        return tuple(relay.helpers)


class Signals:
    """SIGTERM asks for the end, twice for an end at once. A terminal's signals are not for us."""

    def __init__(self) -> None:
        self.asked = 0
        self.descriptor, waking = os.pipe()
        os.set_blocking(waking, False)
        os.set_blocking(self.descriptor, False)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._ask)
        # With a handler, not ignored: what a program is started with would be inherited.
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGCHLD):
            signal.signal(number, _only_wake)

    def _ask(self, *_: object) -> None:
        self.asked += 1


def _only_wake(_number: int, _frame: object) -> None:
    """The write to the wakeup descriptor is all that is wanted."""


def _follow(child: Child, door: Door, limits: Limits, signals: Signals) -> tuple[str, str]:
    """Until the program ends or must end; the word for it, and why."""
    ending = None
    while ending is None and child.pump(LOOK_EVERY):
        if door.busy:
            child.last_output = time.monotonic()
        ending = ("ended", "") if signals.asked else limits.passed(child.last_output)
    if ending is None:
        return "exited", ""
    until, heard = time.monotonic() + GRACE, False
    while child.pump(0.1) and time.monotonic() < until and signals.asked < 2:  # noqa: PLR2004 - asked twice
        heard = heard or child.ask_to_end()
    return ending


def _locked(directory: str) -> int | None:
    lock = os.open(f"{directory}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _reserve(path: str) -> int:
    """Room on the disk for how it ends, taken while there is some."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    os.posix_fallocate(descriptor, 0, 4096)
    return descriptor


def _put_down(directory: str, reserved: int, exit: dict[str, object]) -> None:
    text = json.dumps(exit).encode()
    os.pwrite(reserved, text, 0)
    os.ftruncate(reserved, len(text))
    os.fsync(reserved)
    os.rename(f"{directory}/exit.json.new", f"{directory}/exit.json")  # noqa: PTH104 - no pathlib
    _sync_directory(directory)


def _write(directory: str, name: str, text: str) -> None:
    path = f"{directory}/{name}"
    descriptor = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    os.rename(f"{path}.new", path)  # noqa: PTH104 - no pathlib
    _sync_directory(directory)


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _forget_secrets(directory: str, spec: Spec) -> None:
    """What the program was started with holds its credentials, and nobody needs it again."""
    run = spec["run"] | {"env": {}, "options": []}
    with contextlib.suppress(OSError):
        _write(directory, "spec.json", json.dumps(spec | {"run": run, "secrets": []}))


def _complain(directory: str, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    with contextlib.suppress(OSError):
        descriptor = os.open(f"{directory}/stderr.log", flags, 0o600)
        os.write(descriptor, text.encode())
        os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
