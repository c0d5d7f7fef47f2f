"""`lockgate step`: what people and agents see of a task's steps, run in a real sandbox."""

import json

import pytest

from lockgate.adapters.sandbox import trouble
from lockgate.core.model.task import Role, Status, TaskId
from tests.faces.cli.test_lazy import HEAVY, loaded
from tests.faces.shell import Shell, commit_config

CONFIG = """\
steps = "tdd"
[project]
agent = "scripted"
[commands]
test = "sh check.sh"
[gates]
formula = "none"
[limits]
call_base_delay_ms = 1
"""


@pytest.fixture
def stepping(shell: Shell) -> tuple[Shell, TaskId]:
    """A task that is worked on, in a clone of its own, with steps to take."""
    why_not = trouble()
    if why_not:
        pytest.skip(f"needs a sandbox: {why_not}")
    commit_config(shell, CONFIG)
    id = shell.create()
    shell.bring(id, Status.WORKING)
    app = shell.app()
    task = app.store.load(id)
    app.workspaces.prepare(app.store.project(task.project), task)
    app.store.close()
    return shell, id


def writes(shell: Shell, id: TaskId, text: str) -> None:
    (shell.home / "workspaces" / id / "check.sh").write_text(text)


@pytest.mark.req("R21", "R22", "R23")
def test_a_worker_advances_stays_and_escalates_by_what_its_commands_exit_with(stepping) -> None:
    shell, id = stepping
    token = shell.begin(id, Role.WORKER)
    writes(shell, id, "echo one test failed; exit 1\n")

    red = shell.run("step", "run", token=token)
    greens = [shell.run("step", "run", "--json", token=token) for _ in range(3)]
    after = shell.run("step", "run", token=token)

    assert red.code == 0, red
    assert "step red (RED) on " in red.out
    assert "one test failed" in red.out
    assert "exit 1, " in red.out
    assert red.out.endswith("advance: the next step is green\n")
    assert [it.code for it in greens] == [1, 1, 1]
    stay = {"stay": True, "reason": "NON_ZERO_EXIT"}
    assert [{**stay, **it.facts} == it.facts for it in greens] == [True, True, False]
    assert (greens[-1].facts["escalate"], greens[-1].facts["failures"]) == (True, 3)
    assert greens[0].facts["attempts"] == 3
    assert "a newer session works on this task" in after.why
    types = [json.loads(it)["type"] for it in shell.did("events", id, "--json").splitlines()]
    assert types[-3:] == ["ESCALATION_TRIGGERED", "USER_ESCALATION", "attempt.failed"]
    assert types.count("GATE_FAILED") == 3


@pytest.mark.req("R23")
def test_an_escalation_of_the_steps_is_shown_to_people_until_a_step_passes(stepping) -> None:
    shell, id = stepping
    token = shell.begin(id, Role.WORKER)
    shell.git("branch", "elsewhere")
    writes(shell, id, "exit 1\n")
    for _ in range(4):  # red passes, green fails three times
        shell.run("step", "run", token=token)
    asked = (("status",), ("task", "list"), ("task", "show", id), ("task", "why", id))

    shown = [shell.did(*argv) for argv in asked]
    facts = json.loads(shell.did("status", "--json"))["needs"]
    writes(shell, id, "exit 0\n")
    shell.did("step", "run", id)

    assert ["step green failed 3 times in a row" in it for it in shown] == [True] * 4
    assert "needs you: 1" in shown[0]
    assert [it["task"] for it in facts] == [id]
    assert not any("failed 3 times" in shell.did(*argv) for argv in asked)


def test_a_human_takes_a_task_to_the_end_of_its_steps(stepping) -> None:
    shell, id = stepping
    writes(shell, id, "exit 1\n")
    shell.did("step", "run", id)
    writes(shell, id, "exit 0\n")

    told = [shell.did("step", "run", id).splitlines()[-1] for _ in range(3)]
    listed = shell.did("step", "list", id).splitlines()
    over = shell.run("step", "run", id)

    assert told[-1] == "complete: all steps have passed"
    assert [line.split()[:3] for line in listed[1:3]] == [
        ["red", "passed", "RED"],
        ["green", "passed", "GREEN"],
    ]
    assert "all of its steps have passed" in over.why
    assert f"lockgate task complete {id}" in over.why


def test_a_step_that_cannot_be_judged_says_why(stepping) -> None:
    shell, id = stepping
    writes(shell, id, "exec no-such-program\n")

    answer = shell.run("step", "run", id)

    assert "step red could not be judged, and nothing is counted" in answer.why
    assert "no-such-program" in answer.why
    assert shell.facts(id)["step_failures"] == 0


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("step", "run", "blue", "ID"), "it has no step 'blue'"),
        (("step", "run", "nobody"), "no task's id starts with 'nobody'"),
        (("step", "run"), "no task is named"),
    ],
)
def test_a_step_that_is_not_there_is_not_run(stepping, argv, why) -> None:
    shell, id = stepping

    assert why in shell.run(*(id if it == "ID" else it for it in argv)).why


def test_a_task_without_steps_says_so(shell) -> None:
    id = shell.create()
    shell.bring(id, Status.WORKING)

    assert shell.did("step", "list", id) == f"{id} has no steps\n"
    assert "it has no steps" in shell.run("step", "run", id).why


@pytest.mark.parametrize("argv", [("step", "--help"), ("step", "run", "--help")], ids=" ".join)
def test_help_on_steps_loads_nothing_heavy(shell, argv) -> None:
    assert loaded(shell, *argv).isdisjoint(HEAVY)
