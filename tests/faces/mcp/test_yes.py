"""A yes is a human's: who may ask for one, what the human is shown, and what they say."""

import json
import os
import pty
import pwd
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import Any

import pytest

from lockgate.core.model.task import Status, TaskId
from tests.faces.cli.test_approving import CONFIG, wait
from tests.faces.mcp.room import ASSISTANT, BOTH, CANCELLED, DECLINED, NEW, NO, YES, Room
from tests.faces.shell import Shell, commit_config

pytestmark = pytest.mark.measured

DIFFERENTIAL = CONFIG.replace('type = "human"', 'type = "differential"\ncommand = "true"')


def waiting(shell: Shell, *files: str, config: str = CONFIG) -> TaskId:
    """A task whose gate waits for a human, with a change of these files."""
    commit_config(shell, config)
    shell.git("switch", "--quiet", "fix-login")
    for name in files:
        place = shell.repo / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("x\n", encoding="utf-8")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "--message", "The redirect")
    shell.git("switch", "--quiet", "main")
    id = shell.create()
    shell.bring(id, Status.AGENT_REVIEW)
    wait(shell, id)
    return id


@pytest.fixture
def asked(shell: Shell) -> tuple[Shell, TaskId, str]:
    id = waiting(shell, "a.py", "z.py")
    return shell, id, shell.facts(id)["patch"]


def grant(shell: Shell, name: str = ASSISTANT) -> None:
    app = shell.app()
    app.assistants.grant(name, app.caller)
    app.store.close()


def answers(id: str, patch: str) -> dict[str, dict[str, Any]]:
    return {
        "approve": {"task_id": id, "patch": patch},
        "reject": {"task_id": id, "patch": patch, "message": "No."},
        "queue": {"action": "approve", "task_id": id, "patch": patch},
    }


@pytest.mark.parametrize("mode", BOTH)
@pytest.mark.parametrize("tool", ["approve", "reject", "queue"])
@pytest.mark.unmeasured
def test_without_a_grant_in_the_home_nobody_is_even_asked(asked, mode, tool) -> None:
    shell, id, patch = asked
    grant(shell, "another-assistant")
    before, room = shell.rows(), Room(shell, mode=mode, says=YES)

    told = room.refused(tool, **answers(id, patch)[tool])

    assert "the assistant 'claude-code' is not the human" in told["why"]
    assert f"lockgate {'queue approve' if tool == 'queue' else tool} {id}" in told["fix"]
    assert room.shown == []
    assert shell.rows() == before


@pytest.mark.parametrize("mode", BOTH)
def test_with_a_grant_the_human_sees_the_change_and_their_yes_counts(asked, mode) -> None:
    shell, id, patch = asked
    grant(shell)
    room = Room(shell, mode=mode, says=YES)

    row = room.did("approve", task_id=id, patch=patch[:12], message="Fine.")

    assert len(room.shown) == 1
    for shown in (
        ASSISTANT,
        id,
        "Fix the login",
        patch[:12],
        "a.py",
        "z.py",
        f"lockgate diff {id}",
    ):
        assert shown in room.shown[0]
    assert row["need"] is None or row["need"]["kind"] != "approve"
    yes = shell.facts(id)["approvals"][0]
    me = pwd.getpwuid(os.getuid()).pw_name
    assert (yes["patch"], yes["by"], yes["how"]) == (
        patch,
        f"{me} via {ASSISTANT}",
        "asked by form",
    )
    assert "HumanReviewCompleted" in [
        it["type"] for it in json.loads(shell.did("task", "log", id, "--json"))
    ]


@pytest.mark.parametrize("mode", BOTH)
@pytest.mark.parametrize("says", [NO, DECLINED, CANCELLED], ids=lambda it: it.action)
@pytest.mark.unmeasured
def test_anything_else_than_a_yes_changes_nothing(asked, mode, says) -> None:
    shell, id, patch = asked
    grant(shell)
    before, room = shell.rows(), Room(shell, mode=mode, says=says)

    told = room.refused("approve", task_id=id, patch=patch)

    assert told["why"] == "the human did not say yes to it"
    assert len(room.shown) == 1
    assert shell.rows() == before


@pytest.mark.parametrize("mode", BOTH)
def test_a_client_that_cannot_show_a_form_is_refused_with_the_command(asked, mode) -> None:
    shell, id, patch = asked
    grant(shell)
    before = shell.rows()

    told = Room(shell, mode=mode).refused("approve", task_id=id, patch=patch)

    assert "cannot show a form" in told["why"]
    assert told["fix"] == f"a human runs: lockgate approve {id} --patch {patch[:12]}"
    assert shell.rows() == before


@pytest.mark.parametrize("mode", BOTH)
def test_a_no_sends_the_change_back_with_its_findings(asked, mode) -> None:
    shell, id, patch = asked
    grant(shell)
    place = {"file": "a.py", "line": 1, "text": "It loops."}

    row = Room(shell, mode=mode, says=YES).did(
        "reject", task_id=id, patch=patch, message="Not yet.", findings=[place]
    )

    assert row["status"] == "working"
    feedback = json.dumps(shell.facts(id)["phase"])
    assert "Not yet." in feedback
    assert "It loops." in feedback
    found = Room(shell, mode=mode).did("list_findings", task_id=id, all=True)["findings"]
    assert [(it["file"], it["line"], it["issue"], it["state"]) for it in found] == [
        (None, None, "Not yet.", "new"),
        ("a.py", 1, "It loops.", "new"),
    ]


ONLY_IN_PERSON = {
    "protected": ((".github/ci.yml", "a.py"), CONFIG, "it changes files that a human must look at"),
    "differential": (("a.py",), DIFFERENTIAL, "gate approval asks about tests"),
}


@pytest.mark.parametrize("name", ONLY_IN_PERSON)
def test_what_a_human_must_see_is_never_answered_by_a_form(shell, name) -> None:
    files, config, why = ONLY_IN_PERSON[name]
    id = waiting(shell, *files, config=config)
    grant(shell)
    before, room = shell.rows(), Room(shell, says=YES)
    patch = shell.facts(id)["patch"]

    told = [room.refused(tool, **answers(id, patch)[tool]) for tool in ("approve", "reject")]

    assert all(why in it["why"] for it in told), told
    assert room.shown == []
    assert shell.rows() == before


@pytest.mark.parametrize("mode", BOTH)
def test_a_yes_to_a_change_that_moved_meanwhile_counts_for_nothing(asked, mode) -> None:
    shell, id, patch = asked
    grant(shell)
    room = Room(shell, mode=mode, says=YES)
    room.before = lambda: _another(shell, id)

    told = room.refused("approve", task_id=id, patch=patch)
    wrong = room.refused("approve", task_id=id, patch="0" * 12)

    assert told["why"] == "the change was updated after it was shown"
    assert wrong["why"] == "the change was updated after it was shown"
    assert len(room.shown) == 1  # the second was refused before anybody was asked
    assert shell.facts(id)["approvals"] == []


def _another(shell: Shell, id: TaskId) -> None:
    with closing(sqlite3.connect(shell.home / "lockgate.db")) as db, db:
        db.execute("UPDATE tasks SET patch = 'ffff' || patch WHERE id = ?", (id,))


def test_an_answer_is_good_for_one_call_and_for_no_question_that_was_not_asked(asked) -> None:
    """A client that says it asked, without a question of ours, is asked again."""
    shell, id, patch = asked
    grant(shell)
    room = Room(shell, mode=NEW, says=YES)
    arguments = {"task_id": id, "patch": patch}

    async def forged(client: Any) -> Any:
        return await client.session.call_tool(
            "approve",
            arguments,
            input_responses={"lockgate-yes": YES},
            request_state="made-up",
            allow_input_required=True,
        )

    result = room.with_client(forged)

    assert result.result_type == "input_required"
    assert result.request_state != "made-up"
    assert shell.facts(id)["approvals"] == []


def test_landing_is_approved_by_the_human_alone(shell) -> None:
    id = waiting(shell, "a.py")
    shell.did("approve", id)
    grant(shell)
    patch = shell.facts(id)["patch"]
    assert shell.status(id) is Status.REVIEWING

    cannot = Room(shell).refused("queue", action="approve", task_id=id, patch=patch)
    landed = Room(shell, says=YES).did("queue", action="approve", task_id=id, patch=patch)
    held = Room(shell).did("queue", action="hold", task_id=id, message="Wait.")

    assert "cannot show a form" in cannot["why"]
    assert landed["cars"][0]["task"] == id
    assert held["cars"][0]["task"] == id
    assert shell.facts(id)["held"] == "Wait."


# --- the grant ----------------------------------------------------------------------------------


def test_a_grant_is_given_at_a_terminal_shown_and_taken_back(shell) -> None:
    piped = shell.run("trust", "--assistant", ASSISTANT)
    agent = shell.create()
    shell.bring(agent, Status.WORKING)
    theirs = shell.run("trust", "--assistant", ASSISTANT, token="nobody")  # noqa: S106
    refused = at_a_terminal(shell, "n\n")
    granted = at_a_terminal(shell, "y\n")
    shown = json.loads(shell.did("trust", "--assistant", ASSISTANT, "--show", "--json"))
    forgotten = json.loads(shell.did("trust", "--assistant", ASSISTANT, "--forget", "--json"))

    assert "there is no terminal to ask you at" in piped.why
    assert theirs.code == 1
    assert refused == 1
    assert granted == 0
    assert shown == {"assistants": [ASSISTANT]}
    assert forgotten == {"assistants": []}
    assert (shell.home / "assistants.json").stat().st_mode & 0o777 == 0o600


def at_a_terminal(shell: Shell, types: str) -> int:
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "lockgate", "trust", "--assistant", ASSISTANT]
    with subprocess.Popen(
        argv, cwd=shell.repo, env=shell.environment(), stdin=theirs, stdout=theirs, stderr=theirs
    ) as program:
        os.close(theirs)
        os.write(ours, types.encode())
        code = program.wait(60)
    os.close(ours)
    return code
