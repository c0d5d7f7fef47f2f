"""A task's steps with everything real: the agent asks from its sandbox, each step runs in one."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lockgate.core.model.task import Status, TaskId
from tests.e2e.orchestra import COMPLETE, PATIENCE, Orchestra, hands_off, worker, writes

S = Status
CONFIG = """\
steps = "tdd"
[project]
agent = "scripted"
[commands]
test = "sh check.sh"
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "grep -q good answer.txt"
attempts = 1
[limits]
call_base_delay_ms = 1
"""
STEP = '{ shell = "lockgate step run >> ~/told 2>&1; echo code $? >> ~/told" }'
TEST = '{ write = "check.sh", text = "grep -q good answer.txt\\n" }'
HANG = "{ hang = true }"
SCRIPTS = {
    "tdd": worker(
        TEST, STEP, hands_off("too early"), COMPLETE, writes("good"), STEP, STEP, STEP, COMPLETE
    ),
    "stubborn": worker(TEST, STEP, writes("bad"), STEP, STEP, STEP, HANG)
    + worker(writes("good"), STEP, STEP, STEP, hands_off("good"), COMPLETE),
    "slow": worker(TEST, STEP, writes("bad"), HANG),
}


@pytest.fixture
def orchestra(tmp_path: Path) -> Iterator[Orchestra]:
    orchestra = Orchestra(tmp_path, config=CONFIG, scripts=SCRIPTS)
    yield orchestra
    orchestra.close()


def told(it: Orchestra, id: TaskId) -> list[str]:
    """What the agents were told, line by line."""
    return (it.home / "homes" / id / "told").read_text().splitlines()


def words(it: Orchestra, id: TaskId) -> list[str]:
    """S0's word for each step that an agent ran, and its exit code."""
    kept = ("advance", "complete", "stay", "escalate", "code")
    return [line.split(":")[0] for line in told(it, id) if line.startswith(kept)]


def events(it: Orchestra, id: TaskId, type: str) -> list[dict[str, Any]]:
    return [dict(event.data) for event in it.app.views.all_events(id) if event.type == type]


def did(it: Orchestra, code: int, *argv: str) -> str:
    done = it.lockgate(*argv, "--json")
    assert done.returncode == code, (done, it.story())
    return done.stdout


def started(it: Orchestra, *argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "lockgate", *argv],
        env=it.environ,
        cwd=it.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.req("R20", "R21")
def test_a_worker_goes_from_red_to_verify_and_is_judged_only_then(orchestra) -> None:
    it = orchestra
    id = it.create("tdd")
    it.up()

    task = it.until_status(id, S.REVIEWING, S.STUCK)

    assert task.status is S.REVIEWING, it.story()
    assert words(it, id) == ["advance", "code 0"] * 3 + ["complete", "code 0"]
    assert task.steps_passed == ("red", "green", "refactor", "verify")
    assert [one["nodeId"] for one in events(it, id, "step.passed")] == list(task.steps_passed)
    moves = [one["to"] for one in events(it, id, "status.changed")]
    assert moves == ["WORKING", "AGENT_REVIEW", "REVIEWING"]
    assert (task.crash_count, task.failed_attempts, it.starts(id)) == (0, 0, 1)


@pytest.mark.slow
@pytest.mark.req("R20", "R22", "R23")
def test_three_failures_in_a_row_end_the_worker_and_a_fresh_one_goes_on(orchestra) -> None:
    it = orchestra
    id = it.create("stubborn")
    it.up()

    task = it.until_status(id, S.REVIEWING, S.STUCK)

    assert task.status is S.REVIEWING, it.story()
    assert words(it, id)[:6] == ["advance", "code 0", "stay", "code 1", "stay", "code 1"]
    failed = events(it, id, "GATE_FAILED")
    assert failed == [
        {"nodeId": "green", "reason": "NON_ZERO_EXIT", "consecutiveFailures": count}
        for count in (1, 2, 3)
    ]
    [triggered], [escalated] = (
        events(it, id, name) for name in ("ESCALATION_TRIGGERED", "USER_ESCALATION")
    )
    assert triggered == failed[-1]
    assert escalated["message"] == "step green failed 3 times in a row"
    assert (task.failed_attempts, task.crash_count, task.step_failures) == (1, 0, 0)
    assert it.starts(id) == 2
    assert "agent.crashed" not in it.types(id)
    assert it.app.store.first_broken_event() is None


@pytest.mark.req("R21", "R22")
def test_a_human_runs_steps_too_and_ends_no_agent_by_it(orchestra) -> None:
    it = orchestra
    id = it.create("slow")
    it.up()
    it.until(lambda: it.task(id).steps_passed == ("red",))

    looked, failed = (
        json.loads(did(it, 1, "step", "run", *node)) for node in (("verify", id), (id,))
    )
    listed = json.loads(did(it, 0, "step", "list", id))["steps"]

    exited = {"passed": False, "reason": "NON_ZERO_EXIT", "exitCode": 1}
    assert (looked["gate"], looked["attempts"]) == (exited, 3)
    assert looked["sandbox"].startswith("bubblewrap")
    assert "stay" not in looked
    assert (failed["node"], failed["stay"]) == ("green", True)
    assert it.task(id).step_failures == 0
    assert [one["nodeId"] for one in events(it, id, "GATE_FAILED")] == ["green"]
    assert [one["state"] for one in listed] == ["passed", "next", "waiting", "waiting"]
    assert not list((it.home / "runs" / id).glob("step-*"))


@pytest.mark.slow
def test_a_second_step_of_a_task_is_refused_while_one_runs(orchestra) -> None:
    it = orchestra
    id = it.create("slow")
    it.up()
    it.until(lambda: it.task(id).steps_passed == ("red",))
    (it.app.workspaces.place(id) / "check.sh").write_text("sleep 600\n")
    first = started(it, "step", "run", id)
    it.until(lambda: bool(list((it.home / "runs" / id).glob("step-green*"))))

    second = json.loads(did(it, 1, "step", "run", id))
    moved = it.lockgate("task", "update", id, "--status", "stuck")

    assert second["error"]["why"] == "another step of it is running"
    assert moved.returncode == 0, moved
    out, err = first.communicate(timeout=PATIENCE)
    assert (first.returncode, out) == (1, "")
    assert "could not be judged, and nothing is counted: it was called off" in err
