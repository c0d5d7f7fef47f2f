"""The sessions of a home: each in a directory of its own, under a runner that needs nobody."""

import contextlib
import fcntl
import os
import select
import selectors
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path

from lockgate.adapters.run import run
from lockgate.adapters.sessions.prepare import lay_out, read_object, write_once
from lockgate.adapters.sessions.runner import proc
from lockgate.adapters.sessions.runner.files import written
from lockgate.adapters.sessions.tail import Tail
from lockgate.core.model.agents import Ending, Exit
from lockgate.core.model.task import SessionId
from lockgate.errors import Unavailable
from lockgate.ports import Start

PYTHON = (sys.executable, "-I", "-S")  # it starts fast, and from nowhere but the standard library
RUNNER = Path(__file__).parent / "runner" / "main.py"
LAST_PATIENCE = 15.0  # seconds for a runner to end what it keeps, before it is killed
TMUX_SOCKET = "tmux.sock"
PATIENCE = 15.0


class ProcessSessions:
    """Implements `Sessions`. Keeps nothing: each call reads the session's directory."""

    def __init__(self, home: Path) -> None:
        self._home = home.absolute()
        self._tmux = TmuxServer(self._home)

    def note(self, start: Start) -> None:
        if self._is_settled(start.session):
            return
        try:
            lay_out(start, self._directory(start.session), self._home)
        except OSError as error:
            raise _not_started(start.session, str(error)) from error

    def start(self, start: Start) -> None:
        directory = self._directory(start.session)
        self.note(start)
        if self._is_settled(start.session):  # asked last: it may be ended while it is noted
            return
        runner = (*PYTHON, str(RUNNER), str(directory))
        if start.interactive:
            self._tmux.open(start.session, runner)
            self._tmux.wait_until(start.session, lambda: self._is_settled(start.session))
            return
        done = run(runner, cwd=Path("/"))
        if done.code != 0:
            raise _not_started(start.session, done.err.strip() or f"its runner gave {done.code}")

    def token(self, id: SessionId) -> str | None:
        spec = read_object(self._directory(id) / "spec.json")
        return str(spec["token"]) if spec else None

    def started(self, id: SessionId) -> bool:
        return (self._directory(id) / "run.json").exists()

    def version(self, id: SessionId) -> str:
        """That of its runner; empty for one that is too old to say it."""
        run = read_object(self._directory(id) / "run.json") or {}
        return str(run.get("version", ""))

    def exit_of(self, id: SessionId) -> Exit | None:
        """A runner writes its last word before it ends: so it is looked for twice."""
        told = self._told(id)
        if told is not None or not self.started(id):
            return told
        run = read_object(self._directory(id) / "run.json") or {}
        if run.get("boot") != proc.boot():
            return Exit(ending=Ending.INTERRUPTED)
        runner = _runner(run)
        if runner is None:
            return self._told(id) or Exit(ending=Ending.LOST)
        os.close(runner)
        return None

    def watch(self, id: SessionId) -> int | None:
        run = read_object(self._directory(id) / "run.json")
        return None if run is None or run.get("boot") != proc.boot() else _runner(run)

    def end(self, id: SessionId, grace: float) -> None:
        if self._never_to_start(id):
            return
        runner = self.watch(id)
        if runner is not None:
            try:
                _end_runner(runner, grace)
            finally:
                os.close(runner)
        spec = read_object(self._directory(id) / "spec.json")
        if spec:
            proc.kill_all(lambda: proc.marked(str(spec["mark"])))

    def output(self, id: SessionId) -> str:
        """Its stdout, then its stderr."""
        directory = self._directory(id)
        parts = (written(str(directory / name)) for name in ("stdout.log", "stderr.log"))
        return "\n".join(it for it in parts if it)

    def tail(self, id: SessionId) -> Tail:
        return Tail(str(self._directory(id)))

    def remove(self, id: SessionId) -> None:
        self.end(id, 0.0)
        shutil.rmtree(self._directory(id), ignore_errors=True)

    def attach_command(self, id: SessionId) -> tuple[str, ...] | None:
        """What a person runs to sit at an interactive session; None where it is not one."""
        return self._tmux.attach_command(id)

    def _directory(self, id: SessionId) -> Path:
        return self._home / "sessions" / id

    def _is_settled(self, id: SessionId) -> bool:
        """Started, or never to be."""
        return any((self._directory(id) / it).exists() for it in ("run.json", "exit.json"))

    def _told(self, id: SessionId) -> Exit | None:
        exit = read_object(self._directory(id) / "exit.json")
        if exit is None:
            return None
        code = exit.get("code")
        return Exit(
            ending=Ending(str(exit["ending"])),
            code=code if isinstance(code, int) else None,
            seconds=float(str(exit.get("seconds", 0.0))),
            why=str(exit.get("why", "")),
        )

    def _never_to_start(self, id: SessionId) -> bool:
        """Where it has not been started, see to it that it never is."""
        directory = self._directory(id)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        while not self._is_settled(id):
            with _lock(directory) as held:
                if held and not self._is_settled(id):
                    write_once(directory / "exit.json", _ENDED)
                    return True
            time.sleep(0.01)  # a runner is about to write run.json, or to give up
        return False


_ENDED: dict[str, object] = {"ending": Ending.ENDED, "code": None, "seconds": 0.0}


def _end_runner(runner: int, grace: float) -> None:
    """Ask, ask for an end at once, and at last end the runner itself, with which its box dies."""
    for number, patience in (
        (signal.SIGTERM, grace),
        (signal.SIGTERM, LAST_PATIENCE),
        (signal.SIGKILL, LAST_PATIENCE),
    ):
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(runner, number)
        if select.select([runner], [], [], patience)[0]:
            return


@contextlib.contextmanager
def _lock(directory: Path) -> Generator[bool]:
    with (directory / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _not_started(id: SessionId, why: str) -> Unavailable:
    fix = "see that the disk has room and the agent's program is there, then try again"
    return Unavailable(f"session {id} was not started", why=why, fix=fix)


# Interactive sessions: the same runner, in a tmux pane that a person can sit at.


class TmuxServer:
    """A tmux server of our own; its socket lies where no sandbox sees it."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def open(self, id: SessionId, argv: Sequence[str]) -> None:
        done = self._run("new-session", "-d", "-s", _tmux_name(id), "-x", "200", "-y", "50", *argv)
        if done and "duplicate session" not in done:
            raise _not_opened(id, done)

    def wait_until(self, id: SessionId, settled: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not settled():
            if time.monotonic() > until:
                raise _not_opened(id, f"its runner said nothing for {PATIENCE:.0f} s")
            time.sleep(0.02)

    def attach_command(self, id: SessionId) -> tuple[str, ...] | None:
        if not (self._home / TMUX_SOCKET).exists() or self._run(
            "has-session", "-t", f"={_tmux_name(id)}"
        ):
            return None
        attach = ("attach-session", "-t", f"={_tmux_name(id)}")
        return ("env", "-C", str(self._home), *_TMUX, *_LEAVES, *attach)

    def _run(self, *argv: str) -> str:
        """What went wrong; empty where nothing did. A socket's path may not be long: hence cwd."""
        done = run((*_TMUX, *argv), cwd=self._home)
        return "" if done.code == 0 else done.err.strip() or f"tmux gave {done.code}"


_TMUX = ("tmux", "-f", "/dev/null", "-S", TMUX_SOCKET)
# Besides tmux's own Ctrl-b d; the bottom line says so to who sits there.
_LEAVES = (
    *("bind-key", "-n", "C-q", "detach-client", ";"),
    *("set-option", "-g", "status-right", " Ctrl-q leaves, the session goes on ", ";"),
    *("set-option", "-g", "status-right-length", "60", ";"),
)


def _tmux_name(id: SessionId) -> str:
    """A name in which tmux reads no window and no pane."""
    return id.replace(".", "_").replace(":", "_")


def _not_opened(id: SessionId, why: str) -> Unavailable:
    return Unavailable(f"session {id} was not opened in tmux", why=why, fix="lockgate doctor")


# Waits for the end of many sessions at once, by event.


def _runner(run: Mapping[str, object]) -> int | None:
    """A descriptor of the process that the note names; None where it is gone."""
    return proc.still(int(str(run.get("pid", 0))), int(str(run.get("start", 0))))


class Watch:
    """`wake` may be called from any thread; everything else from the one that waits."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._woken, self._waking = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waking, False)
        self._open = True
        self._guard = threading.Lock()
        self._selector.register(self._woken, selectors.EVENT_READ, None)

    def add(self, id: SessionId, descriptor: int) -> None:
        """The descriptor is ours from here on."""
        self._selector.register(descriptor, selectors.EVENT_READ, id)

    def watched(self) -> frozenset[SessionId]:
        return frozenset(it.data for it in self._selector.get_map().values() if it.data)

    def wake(self) -> None:
        with self._guard:
            if self._open:
                with contextlib.suppress(BlockingIOError):  # it is going to wake anyway
                    os.write(self._waking, b"!")

    def wait(self, seconds: float | None) -> tuple[SessionId, ...]:
        """The sessions whose runners have ended; empty when woken or when the time is over."""
        ended = list[SessionId]()
        for key, _ in self._selector.select(seconds):
            if key.data is None:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._woken, 4096)
            else:
                self._forget(key.fd)
                ended.append(key.data)
        return tuple(ended)

    def close(self) -> None:
        with self._guard:
            self._open = False
            for descriptor in [it.fd for it in self._selector.get_map().values()]:
                self._forget(descriptor)
            os.close(self._waking)
            self._selector.close()

    def _forget(self, descriptor: int) -> None:
        self._selector.unregister(descriptor)
        os.close(descriptor)
