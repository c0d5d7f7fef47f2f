"""What people answer a gate that waits: approve, reject, comment, and what they are shown."""

import json
import os
import pwd

import pytest

from lockgate.core.lifecycle import evaluation, moves
from lockgate.core.model.results import Waiting
from lockgate.core.model.task import Role, Status, TaskId
from lockgate.faces.cli.app import ACTING
from tests.faces.naughty import NAUGHTY
from tests.faces.shell import HANDOFF, Shell, commit_config

CONFIG = """\
[project]
agent = "scripted"
[gates]
formula = "none"
[[gates.list]]
name = "approval"
type = "human"
"""
APPROVE, REJECT = ("approve", "ID"), ("reject", "ID", "-m", "No.")
COMMENT = ("comment", "ID", "-m", "Hm")
ANSWERS = pytest.mark.parametrize("argv", [APPROVE, REJECT, COMMENT], ids=lambda it: it[0])

ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def asked(shell: Shell) -> tuple[Shell, TaskId]:
    """A task whose gate waits for a human; its change touches a workflow."""
    commit_config(shell, CONFIG)
    shell.git("switch", "--quiet", "fix-login")
    (shell.repo / ".github").mkdir()
    for name in ("a.py", ".github/ci.yml", "z.py"):
        (shell.repo / name).write_text("x\n", encoding="utf-8")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "--message", "The redirect")
    shell.git("switch", "--quiet", "main")
    id = shell.create()
    shell.bring(id, Status.AGENT_REVIEW)
    wait(shell, id)
    return shell, id


def wait(shell: Shell, id: TaskId) -> None:
    """As the orchestrator judges: the change as one commit, then the gate that waits."""
    app = shell.app()
    task = app.store.load(id)
    change = app.workspaces.adopt(app.store.project(task.project), task)
    assert change is not None
    facts = moves.Facts(change.patch)
    app.coordinator.turn(
        id,
        lambda seen: moves.change_taken(seen, change.commit, change.files, task.since, facts),
    )
    result = Waiting("approval", "Review and approve this change")
    app.coordinator.turn(id, lambda seen: evaluation.judged(seen, [result], task.since))
    app.store.close()


def filled(argv: tuple[str, ...], id: TaskId) -> list[str]:
    return [id if it == "ID" else it for it in argv]


# --- what is shown ------------------------------------------------------------------------------


@pytest.mark.req("R131")
def test_a_gate_that_waits_is_shown_wherever_people_look(asked):
    shell, id = asked

    status, board = shell.did("status"), shell.did()
    shown, why = shell.did("task", "show", id), shell.did("task", "why", id)

    assert "needs you: 1" in status
    for text in (status, board, why):
        assert f"lockgate approve {id}" in text
        assert f"lockgate reject {id} -m TEXT" in text
    for text in (status, board):
        assert "gate approval waits for you: Review and approve this change" in text
    assert "needs you, gate approval waits for you" in shown
    assert "approval: waiting (Review and approve this change)" in shown
    assert "steering:    .github/ci.yml" in shown
    assert shell.facts(id)["patch"][:12] in shown


def test_with_json_it_is_told_in_facts(asked):
    shell, id = asked

    facts = shell.facts(id)
    why = json.loads(shell.did("task", "why", id, "--json"))
    [needed] = json.loads(shell.did("status", "--json"))["needs"]

    assert (facts["waiting"], facts["protected"]) == ("approval", [".github/ci.yml"])
    [gate] = facts["gates"]
    assert (gate["gate"], gate["result"], gate["why"]) == (
        "approval",
        "waiting",
        "Review and approve this change",
    )
    assert gate["data"]["prompt"] == "Review and approve this change"
    assert (needed["task"], needed["kind"], needed) == (id, "approve", why["need"])


@pytest.mark.req("R131")
def test_an_answer_shows_what_it_is_for_and_what_was_wrong_before(asked):
    shell, id = asked
    first = shell.did("reject", id, "-m", "Not like this.")
    shell.rewrite(id, "DONE: the redirect", "DONE: the redirect, once more")
    shell.did("task", "update", id, "--status", "agent-review")
    wait(shell, id)

    told = shell.did("comment", id, "-m", "Better.").splitlines()

    patch = shell.facts(id)["patch"][:12]
    assert first.endswith(f"{id} is working\n")
    assert told == [
        f"change {patch} of {id}, 3 files:",
        "  .github/ci.yml  (steering)",
        "  a.py",
        "  z.py",
        "earlier: iteration 1, gate approval: a human rejected it: Not like this.",
        f"{id} needs you, gate approval waits for you",
        f"  read it: lockgate diff {id}",
        f"  approve: lockgate approve {id}",
        f"  reject: lockgate reject {id} -m TEXT",
    ]


def test_a_change_of_many_files_is_not_shown_at_length(asked):
    shell, id = asked
    shell.did("reject", id, "-m", "All of them.")
    shell.git("switch", "--quiet", "fix-login")
    for number in range(100):
        (shell.repo / f"many-{number}.py").write_text("x\n", encoding="utf-8")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "--message", "Many")
    shell.git("switch", "--quiet", "main")
    shell.rewrite(id, "DONE: the redirect", "DONE: all")
    shell.did("task", "update", id, "--status", "agent-review")
    wait(shell, id)

    answer = shell.run("approve", id)

    assert f"  and 53 more: lockgate diff {id}" in answer.out
    assert len(answer.out.splitlines()) < 60


# --- answering ----------------------------------------------------------------------------------


def test_a_yes_moves_the_task_on_and_is_told(asked):
    shell, id = asked

    answer = shell.run("approve", id, "-m", "Good.", "--json")

    assert answer.code == 0, answer
    assert (answer.facts["status"], answer.facts["waiting"]) == ("reviewing", "")
    assert answer.facts["files"] == [".github/ci.yml", "a.py", "z.py"]
    [yes] = answer.facts["approvals"]
    assert (yes["gate"], yes["comment"]) == ("approval", "Good.")
    assert (yes["by"], yes["how"]) == (ME, f"uid {os.getuid()}")
    assert yes["patch"] == answer.facts["patch"]
    assert "HumanReviewCompleted" in shell.did("task", "log", id)
    [gate] = shell.facts(id)["gates"]
    assert (gate["result"], gate["data"]["proof"]["ran"]) == (
        "passed",
        [f"{ME} said yes: Good."],
    )


@pytest.mark.parametrize("length", [1, 12, 64])
def test_a_yes_to_the_change_that_was_shown(asked, length):
    shell, id = asked
    patch = shell.facts(id)["patch"]

    assert shell.run("approve", id, "--patch", patch[:length]).code == 0
    assert shell.status(id) is Status.REVIEWING


@pytest.mark.parametrize("argv", [APPROVE, REJECT], ids=lambda it: it[0])
def test_an_answer_to_another_change_than_the_one_that_is_there_is_refused(asked, argv):
    shell, id = asked
    before = shell.traces()

    answer = shell.run(*filled(argv, id), "--patch", "x" * 64)

    assert "the change was updated after it was shown" in answer.why
    assert f"lockgate task show {id}" in answer.why
    assert shell.traces() == before


@pytest.mark.req("R133")
def test_a_no_says_what_is_wrong_and_where(asked):
    shell, id = asked

    answer = shell.run(
        "reject", id, "-m", "Not like this.", "a.py:3=this loops", "b=c.py:12=use x:1=y", "--json"
    )

    assert answer.code == 0, answer
    feedback = answer.facts["phase"]["feedback"]
    found = [(it["issue"], it["location"]) for it in feedback["findings"]]
    assert found == [
        ("Not like this.", None),
        ("this loops", {"file": "a.py", "line": 3, "column": None}),
        ("use x:1=y", {"file": "b=c.py", "line": 12, "column": None}),
    ]
    assert (answer.facts["status"], answer.facts["iteration"]) == ("working", 2)
    assert answer.facts["failed_attempts"] == 1


@pytest.mark.parametrize(
    "place", ["a", "a:3", "a:=x", "a:x=y", "a:0=x", ":3=x", "a:3=", "a:3= ", ""]
)
def test_a_place_that_is_none_is_wrong_usage(asked, place):
    shell, id = asked
    before = shell.traces()

    answer = shell.run("reject", id, "-m", "No.", place)

    assert answer.code == 2
    assert "FILE:LINE=TEXT" in answer.why
    assert shell.traces() == before


def test_a_change_that_waits_to_land_is_rejected_too(asked):
    shell, id = asked
    shell.did("approve", id)

    answer = shell.run("reject", id, "-m", "Not today.")

    assert f"{id} is working (its change was taken out of the merge queue)" in answer.out


def test_a_comment_leaves_it_waiting(asked):
    shell, id = asked

    shell.did("comment", id, "-m", "On Monday.")

    assert shell.facts(id)["waiting"] == "approval"
    assert "human.commented" in shell.did("task", "log", id)
    assert shell.run("approve", id).code == 0


def test_one_yes_at_a_time_answers_the_gate_and_then_the_landing(asked):
    shell, id = asked

    first = shell.run("approve", id)
    second = shell.run("approve", id, "-m", "Ship it.")

    assert first.out.endswith(
        f"{id} is ready to land\n  read it: lockgate diff {id}\n  land it: lockgate approve {id}\n"
    )
    assert second.out.endswith(
        f"{id} is approved; it lands once it is tested on the target branch\n"
        f"  follow it: lockgate events {id} --follow\n"
    )
    assert shell.facts(id)["to_land"] is True
    assert "Ship it." in shell.did("task", "log", id)


def test_a_yes_to_the_landing_is_bound_to_the_change_that_was_shown(asked):
    shell, id = asked
    shell.did("approve", id)

    answer = shell.run("approve", id, "--patch", "beef")

    assert "the change was updated after it was shown" in answer.why
    assert shell.facts(id)["to_land"] is False


# --- refusing -----------------------------------------------------------------------------------


@ANSWERS
@pytest.mark.parametrize("status", [it for it in Status if it is not Status.REVIEWING])
@pytest.mark.unmeasured
def test_where_nothing_waits_nothing_is_answered(shell, argv, status):
    id = shell.create()
    shell.bring(id, status)
    before = shell.traces()

    answer = shell.run(*filled(argv, id))

    why, fix = "nothing of it waits for your yes or no", f"lockgate task why {id}"
    if status is Status.CLARIFICATION:
        why, fix = "its agent asks a question", f"lockgate answer {id} -m TEXT"
    assert answer.code == 1
    assert why in answer.why
    assert fix in answer.why
    assert shell.traces() == before


@ANSWERS
def test_an_agent_answers_for_nobody(shell, argv):
    commit_config(shell, CONFIG)
    id = shell.create()
    shell.bring(id, Status.WORKING)
    token = shell.begin(id, Role.WORKER)
    shell.write(id, HANDOFF)
    shell.did("task", "complete", id, token=token)
    wait(shell, id)
    before = shell.traces()

    answer = shell.run(*filled(argv, id), token=token)

    assert "a worker may not do that" in answer.why
    assert shell.traces() == before


@ANSWERS
def test_a_task_that_is_not_there_is_not_answered(shell, argv):
    assert "was not found" in shell.run(*filled(argv, TaskId("nobody"))).why


@pytest.mark.parametrize("argv", [("reject", "ID"), ("comment", "ID"), ("approve",), ("reject",)])
def test_what_is_left_out_is_wrong_usage(asked, argv):
    shell, id = asked

    assert shell.run(*filled(argv, id)).code == 2


@pytest.mark.parametrize("name", ["reject", "comment"])
@pytest.mark.parametrize("message", ["", " ", "\n"])
def test_a_no_and_a_comment_must_say_something(asked, name, message):
    shell, id = asked

    assert "nothing was said" in shell.run(name, id, "-m", message).why
    assert shell.facts(id)["waiting"] == "approval"


def test_whatever_is_said_is_taken_or_refused_in_three_parts_and_moves_no_cursor(asked):
    shell, id = asked

    for text in NAUGHTY:
        answer = shell.run("comment", id, f"--message={text}")
        if answer.code:
            assert answer.why
        assert "\x1b" not in answer.out + answer.err

    assert "\x1b" not in shell.did("task", "log", id)
    assert shell.facts(id)["waiting"] == "approval"


@ANSWERS
def test_an_answer_that_leaves_something_to_do_wakes_the_orchestrator(argv):
    assert (argv[0] in ACTING) is (argv is not COMMENT)
