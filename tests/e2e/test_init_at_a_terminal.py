"""`lockgate init` where somebody sits at a terminal: the question it asks, the line that moves."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lockgate.adapters.sandbox import trouble
from tests.e2e.test_first_day import GREET, GREET_TEST, project
from tests.faces.shell import Shell

WHY_NOT = trouble()
pytestmark = [
    pytest.mark.measured,
    pytest.mark.skipif(WHY_NOT is not None, reason=f"needs a sandbox: {WHY_NOT}"),
]

CI = "test:\n  script:\n    - sh spec/all.sh test\n    - sh spec/some.sh test\n"
# Two commands that may be meant, and nothing that says which.
OPEN = {
    ".gitlab-ci.yml": CI,
    "greet.sh": GREET,
    "spec/all.sh": GREET_TEST,
    "spec/some.sh": GREET_TEST,
}
QUESTION = "Which command tests this repository?"
PATIENCE = 100.0  # seconds


class Terminal:
    """`lockgate init` with a person at it: what is typed is seen by the program as from keys."""

    def __init__(self, shell: Shell, *argv: str) -> None:
        self.ours, theirs = pty.openpty()
        self.seen = ""
        self.until = time.monotonic() + PATIENCE
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lockgate", "init", *argv],
            cwd=shell.repo,
            env=shell.environment(COLUMNS="120", TERM="xterm"),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def read_until(self, words: str) -> None:
        while words not in self.seen and self._read():
            pass
        assert words in self.seen, self.seen

    def ended(self) -> list[str]:
        """All lines that it has shown, without the moving one."""
        while self._read():
            pass
        assert self.process.wait(10) == 0, self.seen
        os.close(self.ours)
        return re.sub(r"\r\x1b\[K[^\r\n]*(?=\r)", "", self.seen).replace("\r", "").splitlines()

    def _read(self) -> bool:
        assert time.monotonic() < self.until, self.seen
        if select.select([self.ours], [], [], 0.5)[0]:
            try:
                self.seen += os.read(self.ours, 65536).decode(errors="replace")
            except OSError:  # the program has closed its side
                return False
        return True


@pytest.mark.parametrize(
    ("typed", "command"),
    [
        ("2\n", "sh spec/some.sh test"),
        pytest.param("\n", "sh spec/all.sh test", marks=pytest.mark.slow),
        pytest.param("sh spec/some.sh\n", "sh spec/some.sh", marks=pytest.mark.slow),
    ],
)
def test_one_question_is_asked_where_several_commands_may_be_meant(
    tmp_path: Path, typed: str, command: str
) -> None:
    shell = project(tmp_path, OPEN)
    terminal = Terminal(shell, "--baseline", "0")

    terminal.read_until(QUESTION)
    terminal.read_until("(a number or a command; Enter: the first)")
    terminal.type(typed)
    lines = terminal.ended()

    assert "  2. sh spec/some.sh test (found in .gitlab-ci.yml)" in lines
    assert terminal.seen.count(QUESTION) == 1
    assert lines[-1] == "not ready: nothing was run. See whether it passes: lockgate gate run"
    assert f'test = "{command}"' in shell.git("show", "main:.lockgate/config.toml")


def test_where_no_command_was_seen_enter_is_none(tmp_path: Path) -> None:
    shell = project(tmp_path, {"README.md": "Nothing.\n"})
    terminal = Terminal(shell)

    terminal.read_until(f"{QUESTION} (Enter: none)")
    terminal.type("\n")

    assert terminal.ended()[-1].startswith("not ready: no command was found")


def test_nothing_is_asked_where_the_answer_is_known_or_not_wanted(tmp_path: Path) -> None:
    shell = project(tmp_path, OPEN)

    lines = Terminal(shell, "--yes", "--baseline", "0").ended()

    assert not any(QUESTION in it for it in lines)
    assert 'test = "sh spec/all.sh test"' in shell.git("show", "main:.lockgate/config.toml")


def test_the_line_that_moves_shows_what_runs_for_how_long_and_its_last_words(
    tmp_path: Path,
) -> None:
    slow = f". ./greet.sh\necho one\nsleep 1.2\necho two words\nsleep 0.6\n{GREET_TEST}"
    make = "test:\n\tsh tests/check.sh\n"
    shell = project(tmp_path, {"Makefile": make, "tests/check.sh": slow, "greet.sh": GREET})
    terminal = Terminal(shell)

    lines = terminal.ended()

    drawn = re.findall(r"\x1b\[K(▸ [^\r\n]*)", terminal.seen)
    assert any(re.match(r"▸ [1-9]\d* s  tests: make test │ one", it) for it in drawn), drawn
    assert any(re.match(r"▸ [1-9]\d* s  tests: make test │ two words", it) for it in drawn), drawn
    assert not any("mnt:" in it for it in drawn), drawn  # how the sandbox was proved
    assert all(len(it) < 120 for it in drawn)
    assert not any(it.startswith("▸") for it in lines)
    assert lines[-1] == 'next: lockgate run "what to do"'
