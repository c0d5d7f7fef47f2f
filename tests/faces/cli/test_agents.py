"""What people do with a task's agents: start, watch, answer, take over, hand back, read."""

import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from socket import socket

import pytest

from lockgate.bootstrap import App
from lockgate.bootstrap.assistants import mcp_child
from lockgate.bootstrap.gates import Benches
from lockgate.core.model.task import Role, Status
from lockgate.faces.cli.operate.agents import _added
from lockgate.faces.cli.serve import answer as answer_at_the_door
from lockgate.faces.words.output import readable
from lockgate.ports import Call
from tests.faces.cli.test_run import HANDS_OFF, HELLO, REVIEWER, play, until, without, worker
from tests.faces.shell import HANDOFF, Answer, Shell

pytestmark = pytest.mark.measured

LONG = worker('{ say = "I look around" }', "{ sleep = 300 }")


# --- starting -----------------------------------------------------------------------------------


def test_a_human_starts_a_task_and_tells_its_agent_something(shell):
    id = shell.create("fix-login", "--no-start")

    answer = shell.run("task", "start", id, "--directive", "Look at auth.py first")

    assert answer.out == f"{id} is working\n"
    assert shell.facts(id)["directive"] == "Look at auth.py first"


def test_a_task_that_cannot_start_stays_where_it_is(shell):
    id = shell.create()
    shell.bring(id, Status.CANCELLED)

    assert f"task {id} stays cancelled" in shell.run("task", "start", id).why


ASKED = {
    ("task", "respawn", "ID"): "the agent of task ID was not restarted",
    ("resume", "ID"): "task ID was not resumed",
    ("handback", "ID"): "task ID was not handed back",
    ("task", "repin", "ID"): "task ID keeps its rules",
    ("approve", "ID"): "task ID was not approved",
    ("reject", "ID", "-m", "no"): "task ID was not rejected",
    ("comment", "ID", "-m", "well"): "the comment on task ID was not saved",
    ("queue", "approve", "ID"): "task ID was not approved for landing",
    ("queue", "hold", "ID", "-m", "no"): "task ID was not held",
    ("queue", "drop", "ID", "-m", "no"): "task ID was not dropped",
    ("task", "update", "ID", "--status", "pending"): "task ID was not moved",
}


@pytest.mark.parametrize(("argv", "what"), ASKED.items(), ids=lambda it: " ".join(it[:2]))
def test_what_cannot_be_done_with_a_pending_task_is_named_with_its_reason(shell, argv, what):
    id = shell.create("fix-login", "--no-start")

    answer = shell.run(*(id if it == "ID" else it for it in argv))

    assert answer.why.startswith(what.replace("ID", id) + ": ")
    assert "stays" not in answer.why
    assert shell.status(id) is Status.PENDING


def test_an_agent_that_died_is_asked_for_anew(shell):
    id = shell.create()
    shell.bring(id, Status.WORKING)
    shell.begin(id, Role.WORKER)
    alive = shell.run("task", "respawn", id)
    shell.dies(id)

    answer = shell.run("task", "respawn", id, "--directive", "Try again", "--json")

    assert "its agent is alive" in alive.why
    assert (answer.code, answer.facts["directive"]) == (0, "Try again")
    assert shell.begin(id, Role.WORKER)


HUMANS_ONLY = (
    ("task", "start", "ID"),
    ("task", "respawn", "ID"),
    ("task", "peek", "ID"),
    ("task", "attach", "ID"),
    ("answer", "ID", "-m", "yes"),
    ("handback", "ID"),
    ("takeover", "ID"),
    ("auth", "scripted", "--variable", "X"),
)


@pytest.mark.parametrize("argv", HUMANS_ONLY, ids=" ".join)
def test_what_only_a_human_does_is_refused_to_an_agent(shell, argv):
    id = shell.create()
    shell.bring(id, Status.WORKING)
    token = shell.begin(id, Role.WORKER)
    before = shell.traces()

    answer = shell.run(*(id if it == "ID" else it for it in argv), token=token)

    assert "a worker may not do that" in answer.why
    assert shell.traces() == before


# --- answering ----------------------------------------------------------------------------------


def test_a_question_is_answered_and_the_answer_is_what_the_agent_is_told(shell):
    id = shell.create()
    shell.bring(id, Status.CLARIFICATION)

    answer = shell.run("answer", id, "-m", "Both of them", "--json")

    assert (answer.code, answer.facts["status"]) == (0, "working")
    assert answer.facts["directive"] == "Both of them"


def test_where_nobody_asked_nothing_is_answered(shell):
    id = shell.create()

    assert "asks no question" in shell.run("answer", id, "-m", "Both of them").why
    assert "asks nothing now" in shell.run("answer", id).out


# --- peeking ------------------------------------------------------------------------------------

SAID = {
    "claude": (
        {"type": "system", "subtype": "init", "session_id": "x"},
        {
            "type": "assistant",
            "message": {
                "content": [
                    {"type": "text", "text": "I look.\nThen I fix."},
                    {"type": "tool_use", "name": "Bash", "input": {"command": "ls\n -l"}},
                ]
            },
        },
        {"type": "user", "message": {"content": [{"type": "tool_result", "content": "a b c"}]}},
        {"type": "result", "result": "Then I fix."},
    ),
    "codex": (
        {"type": "thread.started", "thread_id": "x"},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "I look."}},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "Then I fix."}},
        {"type": "item.completed", "item": {"type": "command_execution", "command": "Bash ls -l"}},
    ),
    "gemini": (
        {"type": "message", "role": "user", "content": "Please fix it"},
        {"type": "message", "role": "assistant", "content": "I look.\nThen I fix."},
        {"type": "tool_use", "tool_name": "Bash", "parameters": {"command": "ls -l"}},
    ),
    "opencode": (
        {"type": "text", "part": {"type": "text", "text": "I look.\nThen I fix."}},
        {"type": "tool_use", "part": {"tool": "Bash", "state": {"input": {"command": "ls -l"}}}},
    ),
}


@pytest.mark.parametrize("agent", SAID)
def test_a_stream_of_events_reads_as_what_was_said_and_done(agent):
    lines = [json.dumps(event) for event in SAID[agent]]

    assert list(readable(lines)) == ["I look.", "Then I fix.", "> Bash ls -l"]


def test_what_is_no_event_is_shown_as_it_is_and_what_is_cut_is_passed_over():
    lines = [
        "plain words",
        '{"type": "say", "te',
        '{"no": "words"}',
        "{" * 5000,
        '{"message": [1]}',
    ]

    assert list(readable(lines)) == ["plain words"]


ADDED: tuple[tuple[list[str], list[str], list[str]], ...] = (
    ([], ["a"], ["a"]),
    (["a"], ["a"], []),
    (["a"], ["a", "b"], ["b"]),
    (["a", "err"], ["a", "b", "err"], ["b"]),
    (["a", "a"], ["a", "a", "a"], ["a"]),
    (["a", "hal"], ["a", "half"], ["half"]),
    (["a", "b", "c"], ["a", "…", "c"], ["…"]),
)


@pytest.mark.parametrize(("before", "now", "new"), ADDED)
def test_of_an_output_that_grew_only_the_new_lines_are_told(before, now, new):
    assert _added(before, now) == new


def test_a_task_that_no_agent_has_worked_on_has_nothing_to_show(shell):
    id = shell.create()

    assert "no agent has worked on it yet" in shell.run("task", "peek", id).why
    assert "no agent has worked on it yet" in shell.run("task", "attach", id).why


def test_an_agent_at_work_can_be_watched_until_it_ends(orchestrated):
    play(orchestrated, LONG)
    id = orchestrated.program("run", "Say hello", "--no-wait").out.strip()
    until_it_says(orchestrated, id, "I look around")

    peeked = orchestrated.program("task", "peek", id, "--json")
    following = orchestrated_command(orchestrated, "task", "attach", id)
    assert following.stdout is not None
    first = following.stdout.readline()
    ended = orchestrated.program("task", "cancel", id)
    out, err = following.communicate(timeout=60)

    assert peeked.facts["alive"] is True
    assert peeked.facts["output"] == "I look around"
    assert first == b"I look around\n"
    assert ended.code == 0
    assert (following.returncode, out) == (0, b"")
    assert f"lockgate takeover {id}".encode() in err
    assert b"has ended" in err
    assert "has ended" in orchestrated.program("task", "attach", id).why


def test_following_and_one_document_exclude_each_other(shell):
    assert shell.run("task", "peek", "x", "--follow", "--json").code == 2


def until_it_says(shell: Shell, id: str, words: str) -> None:
    end = time.monotonic() + 60
    while words not in shell.run("task", "peek", id).out:
        assert time.monotonic() < end, shell.did("task", "log", id)
        time.sleep(0.05)


def orchestrated_command(shell: Shell, *argv: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "lockgate", *argv],
        cwd=shell.repo,
        env=shell.environment() | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


# --- taking over --------------------------------------------------------------------------------


class Seat:
    """A terminal with a command in it."""

    def __init__(self, shell: Shell, *argv: str, **more: str) -> None:
        self.seen = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            with contextlib.suppress(BaseException):
                os.chdir(shell.repo)
                environment = shell.environment() | {"TERM": "xterm"} | more
                program = [sys.executable, "-m", "lockgate", *argv]
                os.execve(sys.executable, program, environment)  # noqa: S606 - the real program
            os._exit(99)

    def until(self, words: bytes) -> None:
        end = time.monotonic() + 60
        while words not in self.seen:
            assert time.monotonic() < end, self.seen
            self._read()

    def type(self, keys: bytes) -> None:
        os.write(self.terminal, keys)

    def end(self) -> int:
        """Its exit code, once it has one."""
        end = time.monotonic() + 60
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._read()
            if pid:
                os.close(self.terminal)
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)

    def _read(self) -> None:
        if select.select([self.terminal], [], [], 0.1)[0]:
            with contextlib.suppress(OSError):
                self.seen += os.read(self.terminal, 1 << 16)


@pytest.fixture
def seated(orchestrated: Shell) -> Iterator[Shell]:
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux")
    yield orchestrated
    if (orchestrated.home / "tmux.sock").exists():
        subprocess.run(
            ["tmux", "-S", "tmux.sock", "kill-server"],
            cwd=orchestrated.home,
            capture_output=True,
            check=False,
        )


@pytest.mark.tmux
def test_a_human_takes_over_leaves_comes_back_and_hands_back(seated):
    play(seated, worker('{ say = "at your service" }', "{ hang = true }") + REVIEWER)
    id = seated.program("run", "Say hello", "--no-wait").out.strip()
    until_it_says(seated, id, "at your service")

    seat = Seat(seated, "takeover", id)
    seat.until(b"at your service")
    seat.type(b"\x02d")
    left = seat.end()
    again = seated.program("takeover", id)
    piped = seated.program("task", "attach", id)
    peeked = seated.program("task", "peek", id)
    board = seated.program("task", "list")
    (seated.home / "workspaces" / id / "hello.txt").write_text("hello\n", encoding="utf-8")
    back = seated.program("handback", id, "-m", "wrote it myself")

    assert left == 0, seat.seen
    assert seated.facts(id)["taken_over"] is False
    assert "there is no terminal here" in again.why
    assert "there is no terminal here" in piped.why
    assert "is interactive" in peeked.out
    assert [it in board.out for it in (f"▸  {id}  yours  ", f": lockgate handback {id}\n")] == [
        1,
        1,
    ]
    assert back.code == 0, back
    assert "its gates check what is in the workspace, like an agent's work" in back.out
    assert f"lockgate task show {id}" in back.out
    assert f"lockgate handback {id} -m".encode() in seat.seen
    until(seated, id, Status.REVIEWING)
    assert "+hello" in seated.program("diff", id).out


def test_without_tmux_nothing_is_taken_over(shell, tmp_path):
    id = shell.create()
    shell.bring(id, Status.WORKING)
    before = shell.traces()

    answer = shell.program("takeover", id, env=without(tmp_path / "bin", "tmux"))

    assert "takeover needs tmux" in answer.why
    assert shell.traces() == before


def test_what_nobody_has_taken_over_is_not_handed_back(shell):
    id = shell.create()
    shell.bring(id, Status.WORKING)
    shell.write(id, HANDOFF)

    assert "it is not taken over" in shell.run("handback", id).why


# --- reading the work ---------------------------------------------------------------------------


@pytest.fixture
def judged(orchestrated: Shell) -> tuple[Shell, str]:
    """A task whose gates have passed."""
    play(orchestrated, worker(HELLO, HANDS_OFF) + REVIEWER)
    answer = orchestrated.program("run", "Say hello", "--json")
    assert answer.code == 0, answer
    return orchestrated, answer.facts["id"]


def test_the_change_is_read_as_a_diff_and_opened_as_a_checkout(judged, tmp_path):
    shell, id = judged
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "edits $(cat $1/hello.txt)"\n', encoding="utf-8")
    editor.chmod(0o755)
    places = {"TMPDIR": str(tmp_path), "EDITOR": str(editor), "VISUAL": ""}

    piped = shell.program("diff", id)
    facts = shell.program("diff", id, "--json").facts
    opened = shell.program("open", id, env=places)
    seat = Seat(shell, "open", id, **places)
    code = seat.end()
    broken = Seat(shell, "open", id, **places | {"EDITOR": "nosuch-editor"})

    assert (piped.code, piped.err) == (0, "")
    assert _applies(shell, piped.out)
    assert (facts["files"], facts["diff"]) == (["hello.txt"], piped.out)
    assert (Path(opened.out.strip()) / "hello.txt").read_text(encoding="utf-8") == "hello\n"
    assert (code, b"edits hello" in seat.seen) == (0, True), seat.seen
    assert broken.end() == 1
    assert b"no editor was opened" in broken.seen


@pytest.mark.slow
def test_a_diff_on_a_terminal_has_colours_unless_they_are_not_wanted(judged):
    shell, id = judged

    coloured, plain = (Seat(shell, "diff", id, PAGER="cat", **more) for more in ({}, NO_COLOUR))

    assert (coloured.end(), plain.end()) == (0, 0)
    assert re.search(rb"\x1b\[32m\+hello", coloured.seen), coloured.seen
    assert b"\x1b" not in plain.seen


NO_COLOUR: dict[str, str] = {"NO_COLOR": "1"}


def test_a_task_that_has_not_started_has_no_change(shell):
    id = shell.create()

    assert "it has not been started" in shell.run("diff", id).why
    assert "it has not been started" in shell.run("open", id).why


def _applies(shell: Shell, diff: str) -> bool:
    done = subprocess.run(
        ["git", "-C", str(shell.repo), "apply", "--check", "-"],
        input=diff.encode(),
        env=shell.environment(),
        check=False,
    )
    return done.returncode == 0


# --- at the orchestrator's door -----------------------------------------------------------------


class Heard:
    """The other end of a line."""

    def __init__(self) -> None:
        self.said = {"out": "", "err": ""}

    def out(self, text: str) -> None:
        self.said["out"] += text

    def err(self, text: str) -> None:
        self.said["err"] += text

    def end(self, code: int) -> None:
        self.code = code

    def gone(self) -> bool:
        return False

    def take(self) -> socket:
        raise BrokenPipeError


def asked(app: App, directory: Path, *argv: str, token: str = "") -> Answer:
    line = Heard()
    call = Call(
        argv=argv, token=token, directory=directory, stdin="", path="", lively=False, line=line
    )
    answer_at_the_door(app, Benches(app.home), mcp_child(app.home), call)
    return Answer(line.code, **line.said)


def test_a_command_that_came_to_the_door_prints_to_its_caller_alone(shell, capfd):
    id = shell.create()
    app = shell.app()

    def ask(*argv: str, token: str = "") -> Answer:
        return asked(app, shell.repo, *argv, token=token)

    listed, refused = ask("task", "list"), ask("task", "show", "nosuch")
    usage, stranger = ask("task", "nosuch"), ask("task", "list", token="nobody")  # noqa: S106
    followed = ask("task", "peek", id, "--follow")
    app.store.close()

    assert (listed.code, listed.err) == (0, "")
    assert id in listed.out
    assert (refused.code, refused.out) == (1, "")
    assert "'nosuch' was not found" in refused.err
    assert usage.code == 2
    assert "belongs to no session" in stranger.err
    assert followed.code == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("role", [Role.WORKER, Role.REVIEWER])
def test_at_the_door_a_session_gets_no_feed(shell, role):
    id = shell.create()
    shell.bring(id, Status.WORKING if role is Role.WORKER else Status.AGENT_REVIEW)
    token = shell.begin(id, role)
    app = shell.app()

    told = asked(app, shell.repo, "feed", "--since", "0", token=token)

    app.store.close()
    assert (told.code, told.out) == (1, "")
    assert f"no feed was opened: a {role} may not do that" in told.err


def test_at_the_door_nothing_is_followed(shell):
    id = shell.create()
    shell.bring(id, Status.WORKING)
    shell.begin(id, Role.WORKER)
    app = shell.app()

    told = asked(app, shell.repo, "task", "peek", id, "--follow")

    app.store.close()
    assert (told.code, "it would never end" in told.err) == (1, True)


# --- a file as an agent -------------------------------------------------------------------------


def test_a_file_is_found_from_the_directory_that_one_stands_in(shell):
    below = shell.repo / "below"
    below.mkdir()
    (below / "agent.sh").write_text("#!/bin/sh\n")

    id = shell.did("task", "create", "x", "Do it", "--agent", "./agent.sh", cwd=below).strip()

    assert re.fullmatch(r"agent\.sh@[0-9a-f]{32}", shell.facts(id)["agent"])
    assert re.search(r"agent: +agent\.sh \(copy [0-9a-f]{12}\)\n", shell.did("task", "show", id))


def test_a_file_that_is_not_there_makes_no_task(shell):
    answer = shell.run("task", "create", "x", "Do it", "--agent", "./none.sh")

    assert "none.sh cannot be its agent: No such file" in answer.why
    assert shell.did("task", "list").startswith("no tasks yet")


def test_without_a_sandbox_no_file_is_an_agent(shell):
    config = shell.repo / ".lockgate" / "config.toml"
    config.write_text(config.read_text() + '[sandbox]\nlevel = "none"\n')
    shell.git("commit", "--all", "--message", "none")
    shell.agree()
    (shell.repo / "agent.sh").write_text("#!/bin/sh\n")

    answer = shell.run("task", "create", "x", "Do it", "--agent", "./agent.sh")

    assert "in the sandbox only" in answer.why


def test_an_unknown_agent_is_told_with_how_a_file_is_named(shell):
    answer = shell.run("task", "create", "x", "Do it", "--agent", "agent.sh")

    assert "--agent ./agent.sh" in answer.why
