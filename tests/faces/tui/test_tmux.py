"""The board in a real terminal: opened, moved in, left for a session, and everything put back."""

import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from lockgate.bootstrap import orchestrator_pid
from tests.faces.tui.conftest import Home
from tests.faces.tui.real_terminal import PATIENCE, Tmux, children_of

pytestmark = [
    pytest.mark.measured,
    pytest.mark.tmux,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]


@pytest.fixture
def tmux(own: Home, tmp_path: Path) -> Iterator[Tmux]:
    own.shell.alone = False
    it = Tmux(own.shell.environment(), own.shell.repo, tmp_path)
    yield it
    it.close()
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


def test_a_board_that_is_ended_or_killed_gives_the_terminal_back(tmux: Tmux):
    """By SIGTERM, and by kill -9, which no program can catch: of the board, of who waits for it."""
    tmux.keys("stty -a > before; echo ready", "Enter")
    tmux.sees("ready")
    for who, how in (
        ("who waits for it", signal.SIGTERM),
        ("the board", signal.SIGKILL),
        ("who waits for it", signal.SIGKILL),
    ):
        tmux.keys(f"clear; {sys.executable} -m lockgate tui --all; echo left $?", "Enter")
        tmux.sees("NEEDS YOU", "all projects")
        [waits] = tmux.children()
        [board] = children_of(waits)

        os.kill(board if who == "the board" else waits, how)

        tmux.until(lambda: tmux.run("display", "-p", "#{alternate_on}").strip() == "0", "the shell")
        tmux.until(partial(_has_ended, board), "the board has ended")
        if who == "the board":
            tmux.sees("the board was ended by SIGKILL", "left 137")
        tmux.keys("clear; stty -a > after; cmp before after && echo terminal  restored", "Enter")
        tmux.sees("terminal restored")


def _has_ended(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_a_board_whose_terminal_went_ends_when_it_is_told_to(own: Home):
    """It would read the end of that terminal again and again, for ever."""
    master, slave = pty.openpty()
    environ = own.shell.environment(TERM="xterm-256color")
    argv = [sys.executable, "-m", "lockgate", "tui", "--all"]
    board = subprocess.Popen(
        argv, stdin=slave, stdout=slave, stderr=slave, env=environ, cwd=own.shell.repo
    )
    os.close(slave)
    shown = b""
    while b"NEEDS YOU" not in shown:
        shown += os.read(master, 1 << 16)

    os.close(master)
    board.terminate()

    board.wait(PATIENCE)
