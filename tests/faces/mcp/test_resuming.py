"""`resume_task`: the way out of a pause, with the behaviour that its source asks for."""

import pytest

from lockgate.core.model.task import Status, Task
from tests.faces.mcp.room import BOTH, Room


@pytest.mark.req("R188", "R190", "R192")
@pytest.mark.parametrize("mode", BOTH)
def test_a_paused_task_is_resumed_with_its_attempts_reset_and_a_directive(shell, mode) -> None:
    id = shell.create()
    shell.bring(id, Status.PAUSED_FOR_INTERVENTION)
    before = shell.facts(id)

    row = Room(shell, mode=mode).did("resume_task", task_id=id[:-2], directive="Use the cache.")

    after = shell.facts(id)
    assert before["failed_attempts"] == 5
    assert (row["id"], row["status"]) == (id, "pending")
    assert (after["status"], after["failed_attempts"]) == ("pending", 0)
    assert after["directive"] == "Use the cache."
    app = shell.app()
    events = app.views.all_events(id)
    (resumed,) = (it.data for it in events if it.type == "task.resumed")
    assert resumed["directive"] == "Use the cache."
    assert str(resumed["by"]).endswith(" via claude-code")
    assert resumed["how"] == "by MCP"
    attempts: list[str] = []

    def attempt(task: Task) -> str:
        attempts.append(task.directive)
        return "red"

    shell.did("task", "update", id, "--status", "working")
    app.runner.run(id, attempt)
    app.store.close()
    assert len(attempts) == 5  # the count began again
    assert attempts[0] == "Use the cache."


@pytest.mark.req("R192")
@pytest.mark.parametrize("status", [it for it in Status if it.value != "paused-for-intervention"])
def test_no_other_task_is_resumed(shell, status) -> None:
    id = shell.create()
    shell.bring(id, status)
    before = shell.rows()

    told = Room(shell).refused("resume_task", task_id=id)

    assert told["what"] == f"task {id} was not resumed"
    assert told["why"] == f"it is {status}, and only a paused task is resumed"
    assert shell.rows() == before
