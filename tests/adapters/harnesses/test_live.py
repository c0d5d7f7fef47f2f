"""The live driver of Claude Code, with a program in its place that speaks the same protocol."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from lockgate.adapters.harnesses import Registry
from lockgate.core.config.settings import Settings
from lockgate.core.model.agents import Ending, Exit, Job, Report
from lockgate.core.model.task import Role
from lockgate.errors import Unavailable
from tests.adapters.measuring import measured

pytestmark = pytest.mark.measured

NONE = Settings(formula="none", gates=())
# Says what it is told; asks before each stop, where it was asked to; ends with its input.
CLAUDE = """\
#!/usr/bin/env python3
import json, sys

def tell(**fields):
    print(json.dumps(fields), flush=True)

def heard():
    return (json.loads(line) for line in sys.stdin)

tell(type="system", subtype="init", session_id="c-1")
print("no event at all", flush=True)
hooks = {}
messages = heard()
for message in messages:
    if message["type"] == "control_request":
        hooks = message["request"]["hooks"]
        tell(type="control_response", response={})
        continue
    words = message["message"]["content"][0]["text"]
    if words == "may I":
        tell(type="control_request", request_id="q", request={"subtype": "can_use_tool"})
        words = next(messages)["response"]["subtype"]
    while hooks:
        request = {"subtype": "hook_callback", "callback_id": "stop", "input": {"said": words}}
        tell(type="control_request", request_id="h", request=request)
        decided = next(messages)["response"]["response"]
        if decided.get("decision") != "block":
            break
        words += " and " + decided["reason"]
    tell(type="result", is_error=False, result=words, session_id="c-1", total_cost_usd=1)
    if words == "die":
        import os
        os.kill(os.getpid(), 9)
"""
HOOK = """\
#!/bin/sh
cat >> "$HOME/hooked"
mkdir "$HOME/once" 2>/dev/null && echo '{"decision": "block", "reason": "again"}'
exit 0
"""


class Stage:
    def __init__(self, root: Path) -> None:
        self.home, self.bin = root / "agent", root / "bin"
        for directory in (self.home, self.bin):
            directory.mkdir()
        self.hook = self.program("hook", HOOK)
        self.program("claude", CLAUDE)
        self.registry = Registry(search=f"{self.bin}:{os.environ['PATH']}")

    def program(self, name: str, text: str) -> str:
        path = self.bin / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def start(self, prompt: str, seconds: str = "0", **more) -> subprocess.Popen[str]:
        job = Job(
            prompt=prompt,
            role=Role.WORKER,
            task="t",
            session="s",
            home=str(self.home),
            environ={"LOCKGATE_LIVE_SECONDS": seconds},
            **more,
        )
        launch = self.registry.launch("claude-live", NONE, job)
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), **launch.env}
        process = subprocess.Popen(
            measured(launch.argv, env),
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write(launch.stdin or "")
        process.stdin.close()
        process.stdin = None
        return process

    def read(self, process: subprocess.Popen[str], before: str = "") -> Report:
        output, _ = process.communicate(timeout=30)
        exit = Exit(ending=Ending.EXITED, code=process.returncode)
        assert "control_re" not in output
        return self.registry.read("claude-live", NONE, before + output, exit)

    def tell(self, line: str) -> None:
        with (self.home / ".lockgate-live").open("w", encoding="utf-8") as file:
            file.write(line)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def until(process: subprocess.Popen[str], word: str) -> str:
    """What it prints up to the line with this word."""
    assert process.stdout is not None
    seen = ""
    while word not in seen:
        line = process.stdout.readline()
        assert line, seen
        seen += line
    return seen


def test_it_ends_after_the_first_result_where_nothing_more_is_waited_for(stage) -> None:
    process = stage.start("hello")

    report = stage.read(process)

    assert process.returncode == 0
    assert (report.native, report.said, report.usage.usd) == ("c-1", "hello", 1)


def test_the_stop_command_decides_at_the_end_of_a_turn(stage) -> None:
    report = stage.read(stage.start("hello", stop_command=(stage.hook,)))

    assert report.said == "hello and again"
    hooked = (stage.home / "hooked").read_text(encoding="utf-8")
    assert hooked == '{"said": "hello"}{"said": "hello and again"}'


@pytest.mark.parametrize("text", [None, "#!/bin/sh\nexit 2\n", "#!/bin/sh\necho nonsense\n"])
def test_a_stop_command_that_is_broken_keeps_nobody(stage, text) -> None:
    command = stage.program("broken", text) if text else "/no/such/hook"

    assert stage.read(stage.start("hello", stop_command=(command,))).said == "hello"


def test_what_else_it_is_asked_is_answered_with_an_error(stage) -> None:
    assert stage.read(stage.start("may I")).said == "error"


def test_feedback_is_said_in_the_same_conversation_until_it_is_told_to_end(stage) -> None:
    process = stage.start("hello", seconds="30")
    seen = until(process, '"result"')

    stage.tell("not JSON\n" + json.dumps("mend") + "\n" + '"half a ')
    seen += until(process, '"mend"')
    stage.tell('line"\n')
    seen += until(process, '"half a line"')
    stage.tell("null\n")

    assert stage.read(process, seen).said == "half a line"
    assert process.returncode == 0


def test_it_waits_no_longer_than_it_was_told_to(stage) -> None:
    begin = time.monotonic()

    report = stage.read(stage.start("hello", seconds="0.5"))

    assert report.said == "hello"
    assert 0.5 < time.monotonic() - begin < 20


def test_a_fifo_that_was_left_or_planted_is_replaced(stage) -> None:
    (stage.home / ".lockgate-live").symlink_to("/dev/null")

    assert stage.read(stage.start("hello")).said == "hello"
    assert (stage.home / ".lockgate-live").is_fifo()


def test_it_ends_as_its_program_does(stage) -> None:
    killed = stage.start("die", seconds="30")
    ended = stage.start("hello", seconds="30")
    until(ended, '"result"')
    ended.send_signal(signal.SIGTERM)

    stage.read(killed)
    stage.read(ended)

    assert killed.returncode == 128 + signal.SIGKILL
    assert ended.returncode == 128 + signal.SIGTERM


def test_a_person_who_attaches_talks_to_the_program_itself(stage) -> None:
    job = Job(prompt="", role=Role.WORKER, task="t", session="s", interactive=True)

    launch = stage.registry.launch("claude-live", NONE, job)

    assert any(word.endswith("/bin/claude") for word in launch.argv)
    assert not any(word.endswith("claude_live.py") for word in launch.argv)


def test_without_its_program_it_is_missing(tmp_path) -> None:
    empty = Registry(search=str(tmp_path))

    assert empty.missing("claude-live", NONE) is not None
    with pytest.raises(Unavailable):
        empty.paths("claude-live", NONE)


def test_it_shows_the_driver_and_what_that_runs_on(stage) -> None:
    paths = stage.registry.paths("claude-live", NONE)

    assert any(path.endswith("claude_live.py") for path in paths)
