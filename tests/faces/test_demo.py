"""The demo as people run it: the whole story, on every machine, and nothing of it left behind."""

import os
import pty
import pwd
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from lockgate.adapters.sandbox import trouble
from lockgate.bootstrap import make_demo_repository, open_app, run_demo_tests
from lockgate.core.model.events import TYPES
from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.task import TaskId
from lockgate.faces.demo import story as demo_story
from lockgate.faces.demo.story import Story, StoryBroke
from lockgate.faces.words import task as words
from tests.faces.shell import Shell
from tests.faces.tui.real_terminal import PATIENCE, children_of

TOOLS = (
    "cat",
    "chmod",
    "cp",
    "env",
    "git",
    "rm",
    "sh",
    "timeout",
    "true",
)  # what every machine has, and git
ME = pwd.getpwuid(os.getuid()).pw_name  # plays the human of the demo
TOLD = (
    "fix-login   gate tests failed: ",
    "test_nobody_is_sent_to_another_site: AssertionError: 'https://evil.example' != '/home'",
    "add-export  the agent stopped without handing in",
    "tidy-names  gate differential waits for you: 1 tests that pass on base are not kept",
    "deleted: test_names.Slug::test_capitals_become_small",
    f"tidy-names  {ME} said no: keep the test: a capital must become small",
    "add-export  gate code_review failed: security: a cell that begins with = is run as a formula",
    "fix-login   gate sign_off waits for you",
    f"fix-login   {ME} said yes",
    "fix-login   has landed as ",
    "add-export  continues: it passed alone and fails on the target as it is now",
    "add-export  has landed as ",
    "change:      add-export",
    "Ran 9 tests",
    "✓  fix-login",
    "✓  tidy-names",
    "✓  add-export",
)


def processes_of(place: Path) -> list[str]:
    """Those that name the place in their arguments or their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                said = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if f"{place}/lockgate-demo-".encode() in said:
                found.append(said.decode(errors="replace")[:200])
    return found


@pytest.mark.measured
def test_the_demo_tells_its_story_and_leaves_nothing_where_git_signs_hooks_and_ignores(shell):
    hooks = shell.place / "hooks"
    hooks.mkdir()
    (hooks / "pre-commit").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    (hooks / "pre-commit").chmod(0o755)
    (shell.place / "ignored").write_text("*.toml\n", encoding="utf-8")
    (shell.place / "gitconfig").write_text(
        f"[commit]\ngpgSign = true\n[core]\nhooksPath = {hooks}\nautocrlf = true\n"
        f"excludesFile = {shell.place}/ignored\n[init]\ntemplateDir = {hooks}\n",
        encoding="utf-8",
    )
    config = {"GIT_CONFIG_GLOBAL": str(shell.place / "gitconfig")}
    before = shell.traces()

    answer = shell.program("demo", "--fast", env={"TMPDIR": str(shell.user), **config})

    assert (answer.code, answer.err) == (0, ""), answer
    assert [it for it in TOLD if it not in answer.out] == []
    assert f"Sandbox: {'none, so' if trouble() else 'bubblewrap.'}" in answer.out
    assert "\x1b" not in answer.out
    assert list(shell.user.iterdir()) == []
    assert shell.traces() == before
    assert processes_of(shell.user) == []


@pytest.mark.slow
def test_without_bubblewrap_it_says_so_and_tells_the_same_story_which_may_be_kept(shell, tmp_path):
    for tool in TOOLS:
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    given = {"TMPDIR": str(shell.user), "PATH": str(tmp_path)}

    answer = shell.program("demo", "--keep", env=given)

    assert (answer.code, answer.err) == (0, ""), answer
    assert [it for it in TOLD if it not in answer.out] == []
    assert "Sandbox: none" in answer.out
    assert "bwrap is not on PATH" in answer.out
    [place] = shell.user.iterdir()
    assert f"kept: {place}\n" in answer.out
    seen = Shell(place)
    seen.repo = place / "repository"
    board = [it.split()[:3] for it in seen.did("task", "list", "--ended").splitlines()]
    told = [it.split()[:3] for it in answer.out.splitlines()]
    assert [it for it in board if it[0] == "✓"] == [it for it in told if it[:1] == ["✓"]]
    landed = seen.git("log", "--first-parent", "--format=%H", "main").split()
    assert len(landed) == 1 + len(demo_story.TASKS)
    for commit in landed[:-1]:
        seen.git("checkout", "--quiet", commit)
        assert run_demo_tests(seen.repo)[0], "main was green all the time"
        seen.did("verify", commit)
    assert processes_of(shell.user) == []


@pytest.mark.parametrize(
    ("number", "line"),
    [(signal.SIGINT, 1), (signal.SIGTERM, 12), (signal.SIGHUP, 17)],
)
def test_a_demo_that_is_interrupted_ends_its_agents_and_leaves_nothing(shell, number, line):
    # Not measured: an interrupt that comes while coverage holds its own lock hangs the program.
    given = shell.environment(None, TMPDIR=str(shell.user))
    demo = subprocess.Popen(
        [sys.executable, "-m", "lockgate", "demo"],
        env=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert demo.stdout is not None
    for _ in range(line):
        demo.stdout.readline()
    demo.send_signal(number)

    _, err = demo.communicate(timeout=50)

    assert (demo.returncode, err.strip()) == (130, "")
    assert list(shell.user.iterdir()) == []
    until = time.monotonic() + 5
    while processes_of(shell.user) and time.monotonic() < until:
        time.sleep(0.05)
    assert processes_of(shell.user) == []


@pytest.mark.parametrize("who", ["the board", "who waits for it"])
def test_a_demo_on_the_board_that_is_killed_leaves_nothing(shell, who):
    """By kill -9 while agents are at work; the other one of the two processes puts all away."""
    master, slave = pty.openpty()
    given = shell.environment(None, TMPDIR=str(shell.user), TERM="xterm-256color")
    demo = subprocess.Popen(
        [sys.executable, "-m", "lockgate", "demo", "--board"],
        env=given,
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    shown = b""
    until = time.monotonic() + PATIENCE
    while not any(shell.user.glob("*/home/sessions/*/run.json")):
        assert time.monotonic() < until, shown[-2000:]
        shown += os.read(master, 1 << 16)
    [board] = children_of(demo.pid)

    os.kill(board if who == "the board" else demo.pid, signal.SIGKILL)

    while shell.user.exists() and (list(shell.user.iterdir()) or processes_of(shell.user)):
        assert time.monotonic() < until, (list(shell.user.iterdir()), processes_of(shell.user))
        _drained(master)
    assert demo.wait(PATIENCE) == (137 if who == "the board" else -signal.SIGKILL)
    os.close(master)


def _drained(master: int) -> None:
    """So that nobody waits for us to read."""
    ready, _, _ = select.select([master], [], [], 0.05)
    with suppress(OSError):  # its other end is closed by all
        for it in ready:
            os.read(it, 1 << 16)


def told_with(place: Path, old: str, new: str) -> None:
    """The story, with other words in what its agents play."""
    root = place / "repository"
    why_bare = make_demo_repository(root)
    for script in (root / ".lockgate" / "agents").iterdir():
        text = script.read_text(encoding="utf-8")
        script.write_text(text.replace(old, new), encoding="utf-8")
    shell = Shell(place)
    shell.repo = root
    shell.git("commit", "--quiet", "--all", "--message", "Other words")
    app = open_app(shell.environment())
    try:
        Story(app, root).tell(why_bare)
    finally:
        app.store.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('wanted or "/home"', '"/home"', "fix-login has 1 GateFailedRetrying"),
        ("when = \"'https", "when = \"not 'https", "nobody is stuck, nor fix-login"),
        (
            'slug(title).replace("/", "-")',
            'slug(title.replace("/", "-"))',
            "add-export has 2 AllGatesPassed in its log, not 1",
        ),
    ],
)
def test_a_story_that_did_not_go_as_told_is_no_success(tmp_path, capsys, old, new, why):
    with pytest.raises(StoryBroke, match=why):
        told_with(tmp_path / "place", old, new)

    assert "All have landed" not in capsys.readouterr().out


def test_a_story_that_does_not_come_to_its_end_says_where_it_stands(tmp_path, monkeypatch):
    monkeypatch.setattr(demo_story, "PATIENCE", 3.0)

    with pytest.raises(StoryBroke, match=r"after 3 s fix-login is .* and add-export is working"):
        told_with(tmp_path / "place", "{ crash = 3 }", "{ hang = true }")


SAMPLE = {
    "number": 12,
    "what": "opened",
    "from": "WORKING",
    "to": "STUCK",
    "reason": "a reason\nof two lines",
    "gate_name": "tests",
    "result": "broken",
    "why": "no bwrap",
    "feedback": {"findings": [{"issue": "exited 1\nfile.py:1: error: no\nat the end"}]},
    "summary": "Fix it",
    "goal": "Fix it",
    "branch": "fix-login",
    "role": "worker",
    "crash_count": 1,
    "iteration": 2,
    "iterations": 3,
    "attemptCount": 5,
    "directive": "",
    "missing": "a Handoff",
    "approved": True,
    "comment": "fine",
    "question": "Which one?",
    "answer": "Both.",
    "text": "Keep the tests.",
    "gate": "review",
    "dimension": "security",
    "nodeId": "red",
    "consecutiveFailures": 2,
    "message": "the steps escalated",
    "before": "claude",
    "agent": "codex",
    "commit": "c" * 40,
    "change": "d" * 40,
    "reverts": "t0",
    "landed": "e" * 40,
    "needs": "t0",
}


@pytest.mark.parametrize("type", TYPES.values())
def test_every_event_is_told_in_one_line_or_not_at_all(type):
    event = StoredEvent(
        seq=1, time=0.0, task=TaskId("fix-login-1a2b"), type=type, prev="", data=SAMPLE
    )

    story = words.event_story(event)

    assert story is None or (story.strip() and "\n" not in story and "{" not in story)


@pytest.mark.parametrize(
    ("type", "data", "story"),
    [
        ("status.changed", {}, "is stuck and needs you: a reason of two lines"),
        ("status.changed", {"to": "DONE", "reason": ""}, "has landed"),
        ("status.changed", {"to": "DONE", "reason": "landed as c1"}, "has landed as c1"),
        ("status.changed", {"to": "AGENT_REVIEW"}, None),
        ("status.changed", {"from": "PENDING", "to": "WORKING"}, "started, in a clone of its own"),
        ("status.changed", {"from": "STUCK", "to": "WORKING", "reason": ""}, "continues"),
        ("status.changed", {"from": "AGENT_REVIEW", "to": "WORKING"}, None),
        ("GateCompleted", {}, "gate tests could not judge: no bwrap"),
        ("GateCompleted", {"result": "failed"}, "gate tests failed: no bwrap"),
        ("GateCompleted", {"result": "passed"}, "gate tests passed"),
        ("GateFailedRetrying", {}, "back to its agent with what gate tests found"),
        ("attempt.failed", {}, None),
        ("landing.approved", {}, "a human approved it for landing"),
        ("landing.held", {}, "held back from landing: no bwrap"),
        ("landing.unjudged", {}, "landed as cccccccccccc unjudged: no bwrap"),
        ("revert.made", {}, "reverts task t0, which landed as eeeeeeeeeeee"),
        ("pull.changed", {"number": 12, "what": "opened"}, "pull request #12: opened"),
        (
            "change.landed",
            {},
            "the target branch is now at cccccccccccc, the commit that was tested",
        ),
        ("step.passed", {}, "step red passed"),
        ("GATE_FAILED", {"reason": "exit 1"}, "step red failed (exit 1), 2 in a row"),
        ("USER_ESCALATION", {}, "the steps escalated: this needs you; a fresh agent continues"),
        ("publish.skipped", {}, "branch fix-login in your repository was not updated: no bwrap"),
        ("task.troubled", {}, "Lockgate cannot continue it and needs you: no bwrap"),
        ("task.recovered", {}, "continues: what failed before works now"),
    ],
)
def test_what_an_event_says(type, data, story):
    event = StoredEvent(seq=1, time=0, task=TaskId("a"), type=type, prev="", data=SAMPLE | data)

    told = words.event_story(event)

    assert told == story or (story and told and story in told)
