"""`lockgate task repin`: a running task gets the rules that its base has now."""

import pytest

from lockgate.core.model.task import Role, Status
from tests.faces.shell import CONFIG, Shell, commit_config

NEW = CONFIG.replace('name = "review"', 'name = "second-look"') + "[limits]\ncrashes = 7\n"


def rules(shell: Shell, id: str) -> tuple[str, list[str], int]:
    pinned = shell.facts(id)["pinned"]
    return (
        pinned["config_hash"],
        [it["name"] for it in pinned["gates"]],
        pinned["limits"]["crashes"],
    )


def test_a_task_keeps_its_rules_until_it_is_told_to_take_the_new_ones(shell: Shell) -> None:
    task = shell.create()
    shell.bring(task, Status.WORKING)
    old = rules(shell, task)
    commit_config(shell, NEW)
    assert rules(shell, task) == old

    shell.did("task", "repin", task)

    hash, gates, crashes = rules(shell, task)
    assert (gates, crashes) == (["second-look"], 7)
    assert hash != old[0]
    assert "task.repinned" in shell.did("events", task)
    assert hash[:12] in shell.did("task", "show", task)
    assert hash[:12] in shell.did("task", "why", task)


@pytest.mark.parametrize("status", [Status.AGENT_REVIEW, Status.REVIEWING])
def test_what_is_judged_or_was_is_judged_again(shell: Shell, status: Status) -> None:
    task = shell.create()
    shell.bring(task, status)
    commit_config(shell, NEW)

    shell.did("task", "repin", task)

    facts = shell.facts(task)
    assert (facts["status"], facts["passed"]) == (Status.AGENT_REVIEW, [])
    assert facts["failed_attempts"] == 0


@pytest.mark.parametrize("status", [Status.DONE, Status.CANCELLED, Status.PENDING])
def test_a_task_without_running_rules_is_left_alone(shell: Shell, status: Status) -> None:
    task = shell.create()
    shell.bring(task, status)
    before = shell.rows()

    answer = shell.run("task", "repin", task)

    assert answer.code == 1
    assert shell.rows() == before


def test_a_base_whose_configuration_is_wrong_changes_nothing(shell: Shell) -> None:
    task = shell.create()
    shell.bring(task, Status.WORKING)
    old = rules(shell, task)
    commit_config(shell, "nope = 1\n")

    answer = shell.run("task", "repin", task)

    assert answer.code == 2
    assert "line 1" in answer.err
    assert rules(shell, task) == old


def test_an_agent_may_not_change_its_own_rules(shell: Shell) -> None:
    task = shell.create()
    shell.bring(task, Status.WORKING)
    token = shell.begin(task, Role.WORKER)
    commit_config(shell, NEW)

    answer = shell.run("task", "repin", task, token=token)

    assert answer.code == 1
    assert "a worker may not do that" in answer.err
