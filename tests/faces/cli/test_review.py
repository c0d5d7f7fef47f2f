"""`lockgate review submit`: whole or not at all, by a reviewer of the task and nobody else."""

import click
import pytest

from lockgate.adapters.sessions.runner.relay import ALLOWED
from lockgate.core.model.task import Role, Status, TaskId
from lockgate.faces.cli.app import ACTING, root
from tests.faces.cli.test_own_task import every_command
from tests.faces.shell import HANDOFF, Shell

PASSED = '{"verdict": "PASS", "summary": "fine"}'
FAILED = """{"verdict": "FAIL", "summary": "one hole", "findings": [
  {"priority": "P1", "file": "a.py", "line": 3, "issue": "it loops", "suggestion": "stop"}]}"""


@pytest.fixture
def reviewed(shell: Shell) -> tuple[Shell, TaskId, str]:
    """A task in review, and its reviewer's token."""
    id = shell.create()
    shell.bring(id, Status.WORKING)
    shell.begin(id, Role.WORKER)
    shell.write(id, HANDOFF)
    shell.did("task", "update", id, "--status", "agent-review")
    return shell, id, shell.begin(id, Role.REVIEWER)


def hand_in(shell: Shell, text: str, token: str | None, *id: TaskId):
    return shell.run("review", "submit", "--file", "-", *id, token=token, stdin=text.encode())


def text_of(shell: Shell, id: TaskId) -> str:
    return (shell.home / "tasks" / id / "TASK.md").read_text(encoding="utf-8")


def test_a_pass_is_the_gates_and_lockgate_writes_the_review(reviewed) -> None:
    shell, id, token = reviewed

    answer = hand_in(shell, PASSED, token)

    assert answer.out == f"handed in; {id} is reviewing\n"
    assert "## Review\n\nPASS\n" in text_of(shell, id)


def test_a_fail_goes_back_with_its_findings(reviewed) -> None:
    shell, id, token = reviewed

    answer = hand_in(shell, FAILED, token)

    assert answer.out == f"handed in; {id} is working\n"
    assert "## Review\n\nFAIL\n" in text_of(shell, id)
    assert "a.py:3 - " in text_of(shell, id)
    assert shell.facts(id)["phase"]["feedback"]["findings"][0]["location"]["line"] == 3


def test_stdin_is_a_file_too(reviewed) -> None:
    shell, id, token = reviewed

    answer = shell.run(
        "review", "submit", "--file", "-", "--json", token=token, stdin=PASSED.encode()
    )

    assert answer.facts["id"] == id
    assert answer.facts["status"] == "reviewing"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not one JSON document"),
        (PASSED[:-1], "not one JSON document"),
        ('{"verdict": "LGTM"}', "PASS or FAIL"),
        ('{"verdict": "PASS", "mood": 1}', "mood"),
        ('{"verdict": "FAIL", "findings": [{"priority": "P9", "issue": "x"}]}', "P0, P1, P2 or P3"),
        ("[" * 100_000, "JSON"),
        ('{"summary": "' + "x" * (1 << 20) + '"}', "more than 1 MB"),
    ],
    ids=["empty", "cut", "no verdict", "unknown key", "no priority", "deep", "large"],
)
def test_what_is_not_taken_says_why_and_changes_nothing(reviewed, text, why) -> None:
    shell, id, token = reviewed
    before = shell.traces()

    answer = hand_in(shell, text, token)

    assert why in answer.why
    assert shell.traces() == before
    assert shell.status(id) is Status.AGENT_REVIEW


@pytest.mark.parametrize("more", [(), ("--file", "-")], ids=["once", "twice"])
def test_a_file_is_read_by_the_client_in_the_session_and_never_here(reviewed, more) -> None:
    shell, _, token = reviewed
    file = shell.place / "review.json"
    file.write_text(PASSED, encoding="utf-8")
    before = shell.traces()

    for name in (str(file), "nothing", str(shell.place), "/dev/stdin"):
        answer = shell.run("review", "submit", *more, "--file", name, token=token)

        assert "only - is taken" in answer.why
        assert "lockgate review submit --file - < FILE" in answer.why
    assert shell.traces() == before


def test_no_other_command_that_a_session_may_call_names_a_file() -> None:
    found = {
        (" ".join(path), option.opts[0])
        for path in every_command(root)
        if any(path[: len(it)] == it for it in ALLOWED)
        for option in command_at(path).params
        if isinstance(option.type, click.Path | click.File)
        or {option.metavar, option.type.name.upper()} & {"FILE", "PATH", "FILENAME", "DIRECTORY"}
    }

    assert found == {("review submit", "--file")}


def command_at(path: tuple[str, ...]) -> click.Command:
    command: click.Command = root
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    return command


def test_neither_a_human_nor_a_worker_hands_in_a_review(reviewed) -> None:
    shell, id, _ = reviewed
    worker = f"token-{id}-worker-1"

    assert "no review" in hand_in(shell, PASSED, None, id).why
    assert hand_in(shell, PASSED, worker).why
    assert shell.status(id) is Status.AGENT_REVIEW


@pytest.mark.req("R129")
def test_a_reviewer_that_looks_at_its_task_is_shown_no_story(reviewed) -> None:
    shell, id, token = reviewed

    told = shell.did("task", "show", id, token=token)
    facts = shell.run("task", "show", id, "--json", token=token).facts

    assert set(facts) == {"id", "summary", "branch", "status", "review_round"}
    assert "session" not in told


def test_the_orchestrator_hears_of_it_and_help_shows_the_document(shell: Shell) -> None:
    assert "review" in ACTING
    told = shell.did("review", "submit", "--help")
    assert '"verdict"' in told
