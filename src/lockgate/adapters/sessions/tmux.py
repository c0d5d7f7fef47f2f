"""Interactive sessions: the same runner, in a pane that a person can sit at."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lockgate.adapters.run import run
from lockgate.core.model.task import SessionId
from lockgate.errors import Unavailable

SOCKET = "tmux.sock"
PATIENCE = 15.0


class Server:
    """A tmux server of our own; its socket lies where no sandbox sees it."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def open(self, id: SessionId, argv: Sequence[str]) -> None:
        done = self._run("new-session", "-d", "-s", _name(id), "-x", "200", "-y", "50", *argv)
        if done and "duplicate session" not in done:
            raise _not_opened(id, done)

    def wait_until(self, id: SessionId, settled: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not settled():
            if time.monotonic() > until:
                raise _not_opened(id, f"its runner said nothing for {PATIENCE:.0f} s")
            time.sleep(0.02)

    def attach_command(self, id: SessionId) -> tuple[str, ...] | None:
        if not (self._home / SOCKET).exists() or self._run("has-session", "-t", f"={_name(id)}"):
            return None
        return ("env", "-C", str(self._home), *_PROGRAM, "attach-session", "-t", f"={_name(id)}")

    def _run(self, *argv: str) -> str:
        """What went wrong; empty where nothing did. A socket's path may not be long: hence cwd."""
        done = run((*_PROGRAM, *argv), cwd=self._home)
        return "" if done.code == 0 else done.err.strip() or f"tmux gave {done.code}"


_PROGRAM = ("tmux", "-f", "/dev/null", "-S", SOCKET)


def _name(id: SessionId) -> str:
    """A name in which tmux reads no window and no pane."""
    return id.replace(".", "_").replace(":", "_")


def _not_opened(id: SessionId, why: str) -> Unavailable:
    return Unavailable(f"session {id} was not opened in tmux", why=why, fix="lockgate doctor")
