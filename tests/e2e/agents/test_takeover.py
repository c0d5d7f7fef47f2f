"""A human sits down at a real agent's own session, talks to it, and hands the task back."""

import contextlib
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator

import pytest

from lockgate.core.model.task import Session, Status
from tests.e2e.agents.whole import CASES, PATIENCE, Whole, at_work, shell
from tests.e2e.orchestra import Orchestra

pytestmark = [
    pytest.mark.agents,
    pytest.mark.tmux,
    pytest.mark.usefixtures("no_way_out"),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]

SAT_AT = [it for it in CASES if it.agent in {"claude", "codex", "gemini", "opencode"}]
WAIT = "touch ~/here; while [ ! -e ~/go ]; do sleep 0.1; done"
STILL = 3.0  # seconds without a change: its screen is drawn
SPINNER = re.compile("[\u2800-\u28ff]")
WORDS = "Be kind to marzipan."
# What codex asks: of a folder that it is not to trust, and whether to take its newest model.
ASKED = {"1. Open restricted": b"\r", "2. Use existing model": b"\x1b[B\r"}


@pytest.mark.parametrize("case", SAT_AT, ids=str)
def test_a_human_takes_over_talks_to_the_agent_and_hands_back(case, tmp_path) -> None:
    answers = [shell(case, WAIT), {"text": "As you say."}]
    with at_work(case, tmp_path, answers) as it:
        it.orchestra.until((it.orchestra.home / "homes" / it.id / "here").exists, PATIENCE)
        asked = len(it.requests())
        with _sitting(it.orchestra, "takeover", it.id) as terminal:
            it.orchestra.until(lambda: _is_mine(it), PATIENCE)
            first, mine = it.sessions()
            _sits_down(it, mine, terminal)
            said_at_once = len(it.requests()) - asked
            listed = it.orchestra.lockgate("task", "list").stdout

            _talks(it, mine, terminal)
            (it.orchestra.home / "workspaces" / it.id / "hello.txt").write_text("hello\n")
            back = it.orchestra.lockgate("handback", it.id, "-m", "DONE: by hand")
        it.settle()

        assert said_at_once == 0, "nothing is said before the human says it"
        assert f"{it.id}  yours  " in listed, listed
        assert (mine.interactive, mine.native) == (True, first.native or mine.native)
        assert "You implement a task." in _heard(it)[0], "the same conversation"
        assert back.returncode == 0, back.stderr
        assert it.task.status is Status.REVIEWING, it.orchestra.story()
        assert (it.task.taken_over, it.task.crash_count, it.task.failed_attempts) == (False, 0, 0)
        types = it.types()
        assert types.index("task.taken-over") < types.index("task.handed-back")
        assert all(session.ended for session in it.sessions())


def _is_mine(it: Whole) -> bool:
    return len(it.sessions()) > 1 and it.orchestra.app.sessions.started(it.sessions()[-1].id)


def _sits_down(it: Whole, session: Session, terminal: int) -> None:
    """And answers what the program asks at its start."""
    _until_drawn(it, session)
    while keys := [key for words, key in ASKED.items() if words in _screen(it, session)]:
        os.write(terminal, keys[0])
        _until_drawn(it, session)


def _talks(it: Whole, session: Session, terminal: int) -> None:
    os.write(terminal, WORDS.encode())
    it.orchestra.until(lambda: WORDS in _screen(it, session), PATIENCE)
    _until_drawn(it, session)  # a key that comes at once is part of what was pasted
    os.write(terminal, b"\r")
    it.orchestra.until(lambda: bool(_heard(it)), PATIENCE)
    it.orchestra.until(lambda: "As you say." in _screen(it, session), PATIENCE)


def _heard(it: Whole) -> list[str]:
    return [asked for asked in it.requests() if WORDS in asked]


def _screen(it: Whole, session: Session) -> str:
    name = session.id.replace(".", "_")
    line = ("tmux", "-S", "tmux.sock", "capture-pane", "-p", "-t", f"={name}:")
    shown = subprocess.run(line, cwd=it.orchestra.home, capture_output=True, text=True, check=False)
    return shown.stdout


def _until_drawn(it: Whole, session: Session) -> None:
    before, since = "", time.monotonic()
    end = since + PATIENCE
    while not before.strip() or time.monotonic() - since < STILL:
        assert time.monotonic() < end, before
        time.sleep(0.2)
        now = SPINNER.sub("", _screen(it, session))
        if now != before:
            before, since = now, time.monotonic()


@contextlib.contextmanager
def _sitting(it: Orchestra, *argv: str) -> Generator[int]:
    """A terminal with a command in it, whose output is read and thrown away."""
    pid, terminal = pty.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            os.chdir(it.root)
            program = [sys.executable, "-m", "lockgate", *argv]
            os.execve(sys.executable, program, it.environ | {"TERM": "xterm"})  # noqa: S606 - the real program
        os._exit(99)
    reader = subprocess.Popen(
        [sys.executable, "-c", DRAIN], stdin=terminal, stdout=subprocess.DEVNULL
    )
    try:
        yield terminal
    finally:
        for child in (pid, reader.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        os.waitpid(pid, 0)
        reader.wait()
        os.close(terminal)
        server = ["tmux", "-S", "tmux.sock", "kill-server"]
        subprocess.run(server, cwd=it.home, capture_output=True, check=False)


DRAIN = """\
import os
try:
    while os.read(0, 1 << 16):
        pass
except OSError:
    pass
"""
