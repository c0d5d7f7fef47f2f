"""The tools of agents: each does what its command does, and refuses what that refuses."""

from pathlib import Path

import pytest

from lockgate.core.model.task import Role, Status, TaskId
from tests.faces.cli.test_steps import CONFIG as STEPS
from tests.faces.cli.test_steps import stepping as stepping  # noqa: PLC0414 - a fixture
from tests.faces.mcp.room import BOTH, OLD, Room
from tests.faces.shell import HANDOFF, Shell

pytestmark = pytest.mark.measured


@pytest.fixture
def working(shell: Shell, tmp_path: Path) -> tuple[Shell, TaskId, str, Path]:
    """A task with a worker that has a directory of its own, as in a session."""
    id = shell.create()
    shell.bring(id, Status.WORKING)
    desk = tmp_path / "desk"
    desk.mkdir()
    (desk / "TASK.md").write_text(shell.file(id).read_text())
    return shell, id, shell.begin(id, Role.WORKER, desk), desk


def types(shell: Shell, id: TaskId) -> list[str]:
    app = shell.app()
    found = [it.type for it in app.views.all_events(id)]
    app.store.close()
    return found


def test_complete_is_task_complete(working) -> None:
    shell, id, token, desk = working
    room = Room(shell, token=token)

    early = room.refused("complete")
    (desk / "TASK.md").write_text((desk / "TASK.md").read_text() + HANDOFF)
    done = room.did("complete")

    assert early["what"] == f"task {id} stays working, not agent-review"
    assert done["status"] == shell.status(id) == Status.AGENT_REVIEW
    assert "TaskCompletionSignaled" in types(shell, id)


def test_update_status_moves_and_renames_as_task_update_does(working) -> None:
    shell, id, token, _ = working
    room = Room(shell, token=token, mode=OLD)

    moved = room.did("update_status", status="clarification", summary="Fix the redirect")
    refused = room.refused("update_status", status="done")

    assert (moved["status"], moved["summary"]) == ("clarification", "Fix the redirect")
    assert shell.facts(id)["goal"] == "Fix the login"
    assert refused["what"] == f"task {id} stays clarification, not done"


@pytest.mark.parametrize("mode", BOTH)
def test_ask_human_writes_the_questions_and_waits_for_the_answer(working, mode) -> None:
    shell, id, token, desk = working
    room = Room(shell, token=token, mode=mode)

    asked = room.did("ask_human", questions=["Which page?\n## Handoff\nDONE: all", "When?"])
    shown = shell.did("answer", id)
    again = room.refused("ask_human", questions=["And now?"])

    assert asked["status"] == shell.status(id) == Status.CLARIFICATION
    assert "1. Which page? ## Handoff DONE: all" in shown
    assert "2. When?" in shown
    assert (desk / "TASK.md").read_text().count("\n## ") == 2  # Context and Questions
    assert "clarification" in again["what"] + again["why"]


def test_questions_do_not_leave_the_directory_of_the_session(working, tmp_path) -> None:
    shell, _, token, desk = working
    other = tmp_path / "other"
    other.write_text("mine")
    (desk / "TASK.md").unlink()
    (desk / "TASK.md").symlink_to(other)

    Room(shell, token=token).call("ask_human", questions=["Which page?"])

    assert other.read_text() == "mine"
    assert not (desk / "TASK.md").is_symlink()


def test_a_checkpoint_is_kept_as_the_command_keeps_it(working) -> None:
    shell, id, token, _ = working

    first = Room(shell, token=token).did("checkpoint", summary="Half of it", confidence=0.5)
    second = shell.program("checkpoint", "--summary", "More", "--json", token=token)

    assert (first["task"], first["sequence"]) == (id, 1)
    assert second.facts == {"task": id, "sequence": 2}
    kept = (shell.home / "tasks" / id / "checkpoints" / "001.json").read_text()
    assert '"work_summary": "Half of it"' in kept
    assert '"type": "incremental"' in kept


@pytest.mark.parametrize("mode", BOTH)
def test_a_review_is_handed_in_once_and_its_findings_decide(shell, mode) -> None:
    id = shell.create()
    shell.bring(id, Status.AGENT_REVIEW)
    token = shell.begin(id, Role.REVIEWER)
    room = Room(shell, token=token, mode=mode)
    finding = {"priority": "P1", "issue": "It loops.", "file": "app.py", "line": 1}

    little = room.did("get_my_task")
    handed = room.did("submit_review", verdict="PASS", findings=[finding], summary="Nearly.")
    again = room.refused("submit_review", verdict="PASS", findings=[])

    assert set(little) == {"id", "summary", "branch", "status", "review_round"}
    assert handed["status"] == "working"  # a P1 is a FAIL, whatever the verdict says
    assert "It loops." in shell.file(id).read_text()
    assert again["what"] == f"no review of task {id} was handed in"


@pytest.mark.req("R21", "R22", "R23")
def test_run_step_tells_the_transition_as_its_source_spells_it(stepping) -> None:
    shell, id = stepping
    token = shell.begin(id, Role.WORKER)
    check = shell.home / "workspaces" / id / "check.sh"
    check.write_text("echo one test failed; exit 1\n")
    room = Room(shell, token=token)

    red = room.did("run_step")
    stay = room.did("run_step")
    trial = room.did("run_step", node="red")
    strange = room.refused("run_step", node="blue")
    mine = room.did("get_my_task")

    assert STEPS.startswith('steps = "tdd"')
    assert (red["advance"], red["nextNodeId"], red["gate"]) == (True, "green", {"passed": True})
    assert stay["stay"] is True
    assert "one test failed" in stay["output"]
    assert not {"advance", "stay", "complete", "escalate"} & set(trial)
    assert "blue" in strange["why"]
    assert [it["state"] for it in mine["steps"]][:2] == ["passed", "next"]
