"""The board in a real terminal: opened, moved in, left for a session, and everything put back."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockgate.bootstrap import orchestrator_pid
from tests.faces.shell import Shell
from tests.faces.tui.conftest import Home

PATIENCE = 90.0
pytestmark = [
    pytest.mark.tmux,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]


class Tmux:
    """One window with a shell in it; nothing of the user's own tmux is touched."""

    def __init__(self, shell: Shell, place: Path) -> None:
        self.shell, self.socket = shell, place / "tmux.sock"
        self.run("new-session", "-d", "-x", "100", "-y", "30", "-s", "it", "sh")

    def run(self, *argv: str) -> str:
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", "-S", str(self.socket), *argv],
            env=self._environment(),
            cwd=self.shell.repo,
            capture_output=True,
            check=False,
        )
        return done.stdout.decode()

    def _environment(self) -> dict[str, str]:
        """Without what says another size than the window has."""
        kept = self.shell.environment() | {"TERM": "xterm-256color", "LANG": "C.UTF-8", "PS1": "$ "}
        return {name: value for name, value in kept.items() if name not in {"COLUMNS", "LINES"}}

    def keys(self, *keys: str) -> None:
        self.run("send-keys", "-t", "it", *keys)

    @property
    def text(self) -> str:
        return self.run("capture-pane", "-p", "-t", "it")

    def sees(self, *texts: str) -> None:
        self.until(lambda: all(it in self.text for it in texts), str(texts))

    def until(self, holds, what: str = "") -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, f"{what}\n{self.text}"
            time.sleep(0.05)


@pytest.fixture
def tmux(own: Home, tmp_path: Path) -> Iterator[Tmux]:
    own.shell.alone = False
    it = Tmux(own.shell, tmp_path)
    yield it
    it.run("kill-server")
    own.shell.program("down")
    app = own.app()
    for session in app.store.sessions_alive():
        app.sessions.end(session.id, 0.0)
    app.close()


def test_a_whole_visit_in_a_real_terminal(tmux: Tmux, own: Home):
    """Open, move, another program in between, kill -9 of the orchestrator, resize, quit."""
    for kind in ("working", "dead", "pending"):  # no agent is to be started by the orchestrator
        own.shell.did("task", "cancel", own.ids[kind])
    tmux.keys("stty -a > before; echo ready", "Enter")
    tmux.sees("ready")

    tmux.keys(f"EDITOR=/usr/bin/env {sys.executable} -m lockgate", "Enter")
    tmux.sees("NEEDS YOU", own.ids["approve"], "? keys")
    tmux.until(lambda: orchestrator_pid(own.shell.home) is not None, "an orchestrator")
    tmux.keys("j", "j")
    tmux.sees("Which separator")
    tmux.keys("k", "k", "o")  # `env DIRECTORY` ends at once, with the terminal to itself
    tmux.sees("env ended with 126", "NEEDS YOU", own.ids["approve"])

    pid = orchestrator_pid(own.shell.home)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    tmux.until(lambda: orchestrator_pid(own.shell.home) not in {None, pid}, "another one")
    own.shell.program("task", "cancel", own.ids["stuck"])
    tmux.until(lambda: own.ids["stuck"] not in tmux.text, "its news")

    for width, height in ((20, 5), (200, 50), (100, 30)):
        tmux.run("resize-window", "-t", "it", "-x", str(width), "-y", str(height))
    tmux.sees("NEEDS YOU", "Timeline")

    tmux.keys("q")
    tmux.until(lambda: "NEEDS YOU" not in tmux.text, "the shell again")
    tmux.keys("stty -a > after; cmp before after && echo terminal restored", "Enter")
    tmux.sees("terminal restored")


def test_a_board_that_is_ended_gives_the_terminal_back(tmux: Tmux, own: Home):
    tmux.keys(f"{sys.executable} -m lockgate tui --all & echo $! > pid; fg; echo left", "Enter")
    tmux.sees("NEEDS YOU", "all projects")
    children = tmux.run("list-panes", "-t", "it", "-F", "#{pane_pid}").strip()
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", children], capture_output=True, check=True
    )
    [pid] = [int(it.split()[0]) for it in listed.stdout.decode().splitlines() if "lockgate" in it]
    os.kill(pid, signal.SIGTERM)
    tmux.sees("left")
    tmux.until(lambda: "NEEDS YOU" not in tmux.text, "the shell again")
