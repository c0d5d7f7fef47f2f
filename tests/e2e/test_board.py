"""The board in a real terminal with a real agent's session: sit down at it, leave it, come back."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockgate.core.model.task import Status
from tests.e2e.orchestra import CONFIG, Orchestra, worker
from tests.faces.tui.real_terminal import Tmux

pytestmark = [
    pytest.mark.tmux,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]
RULES = CONFIG.partition('[[gates.list]]\nname = "review"')[0]
SCRIPTS = {name: worker("{ hang = true }") for name in ("first", "second")}


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Orchestra]:
    made = Orchestra(tmp_path, config=RULES, scripts=SCRIPTS)
    made.up()
    yield made
    made.close()
    inner(made, "kill-server")


@pytest.fixture
def tmux(it: Orchestra, tmp_path: Path) -> Iterator[Tmux]:
    terminal = Tmux(it.environ, it.root, tmp_path)
    yield terminal
    terminal.close()


def inner(it: Orchestra, *argv: str) -> str:
    """Of the tmux that the sessions of agents are in."""
    line = ("tmux", "-S", "tmux.sock", *argv)
    return subprocess.run(line, cwd=it.home, capture_output=True, text=True, check=False).stdout


def sits(it: Orchestra) -> bool:
    """Whether somebody is at a session of an agent."""
    return bool(inner(it, "list-clients").strip())


def is_at(tmux: Tmux, branch: str) -> bool:
    """Whether the cursor is at the task of this branch: that one is shown at the right."""
    return f"Branch   {branch}" in tmux.text


def goes_to(tmux: Tmux, branch: str) -> None:
    tmux.until(lambda: "Branch   " in tmux.text, "a task at the right")
    if not is_at(tmux, branch):
        tmux.keys("j")
    tmux.until(lambda: is_at(tmux, branch), "the task at the right")


def leaves(it: Orchestra, tmux: Tmux, *keys: str) -> None:
    """The session; the board is there again, with the cursor at the same task."""
    tmux.until(lambda: sits(it) and "ACTIVE" not in tmux.text, "its session is on the screen")
    tmux.keys(*keys)
    tmux.until(lambda: not sits(it), "the session is left")
    tmux.sees("ACTIVE", "yours", "hand back")
    tmux.until(lambda: is_at(tmux, "second"), "the same row")


def test_a_task_is_taken_over_left_and_handed_back_from_the_board(it: Orchestra, tmux: Tmux):
    first, second = (it.create(name) for name in SCRIPTS)
    it.wake()
    it.until(lambda: it.starts(first) == 1 and it.starts(second) == 1)
    tmux.run("resize-window", "-t", "it", "-x", "140", "-y", "40")
    tmux.keys(f"stty -a > before; {sys.executable} -m lockgate; echo left", "Enter")
    tmux.sees("ACTIVE", first, second)
    goes_to(tmux, "second")

    tmux.keys("T")
    tmux.sees("Take it over?")
    tmux.keys("y")
    leaves(it, tmux, "C-q")
    assert it.task(second).taken_over
    tmux.keys("Enter")  # attach again
    leaves(it, tmux, "C-b", "d")
    tmux.keys("T")
    tmux.sees(f"Hand {second} back")
    tmux.keys("by hand", "C-s")
    it.until(lambda: not it.task(second).taken_over)

    assert it.task(first).status is Status.WORKING
    tmux.keys("q")
    tmux.sees("left")
    tmux.keys("stty -a > after; cmp before after && echo terminal restored", "Enter")
    tmux.sees("terminal restored")
