"""What a session sees: its own task. Of any other it learns nothing, not even that there is one."""

from pathlib import Path
from typing import cast

import click
import pytest

from lockgate.core.model.task import Role, Status, TaskId
from lockgate.faces.cli.app import root
from tests.faces.shell import HANDOFF, Shell, a_shell

# Every command that names a task; NAME is what the session types.
ABOUT_A_TASK = (
    ("answer", "NAME", "-m", "x"),
    ("approve", "NAME"),
    ("checkpoint", "--task-id", "NAME"),
    ("checkpoint", "--task-id", "NAME", "--done"),
    ("comment", "NAME", "-m", "x"),
    ("diff", "NAME"),
    ("events", "NAME"),
    ("gate", "list", "NAME"),
    ("handback", "NAME"),
    ("notify", "mute", "NAME"),
    ("open", "NAME"),
    ("pr", "adopt", "NAME"),
    ("pr", "restore", "NAME"),
    ("pr", "show", "NAME"),
    ("queue", "approve", "NAME"),
    ("queue", "drop", "NAME", "-m", "x"),
    ("queue", "hold", "NAME", "-m", "x"),
    ("reject", "NAME", "-m", "x"),
    ("resume", "NAME"),
    ("review", "submit", "NAME", "--file", "-"),
    ("say", "NAME", "x"),
    ("shell", "NAME", "--", "true"),
    ("step", "list", "NAME"),
    ("step", "run", "red", "NAME"),
    ("takeover", "NAME"),
    ("task", "attach", "NAME"),
    ("task", "cancel", "NAME"),
    ("task", "complete", "NAME"),
    ("task", "delete", "NAME"),
    ("task", "drop-dependency", "NAME", "x"),
    ("task", "edit", "NAME"),
    ("task", "log", "NAME"),
    ("task", "peek", "NAME"),
    ("task", "repin", "NAME"),
    ("task", "respawn", "NAME"),
    ("task", "show", "NAME"),
    ("task", "start", "NAME"),
    ("task", "update", "NAME", "--status", "agent-review"),
    ("task", "update", "NAME", "--summary", "Mine"),
    ("task", "why", "NAME"),
    ("undo", "NAME"),
)
# Commands about several tasks, or about what others landed.
ABOUT_ALL = (
    (),
    ("task", "list"),
    ("task", "list", "--all"),
    ("events",),
    ("status",),
    ("queue", "list"),
    ("verify", "HEAD"),
    ("backup", "copy"),
    ("db", "migrate-to", "postgresql://127.0.0.1/x"),
    ("du",),
    ("fleet", "check"),
    ("fleet", "drain", "h1"),
    ("fleet", "forget", "h1"),
    ("fleet", "hub", "none"),
    ("fleet", "status"),
    ("fleet", "undrain", "h1"),
    ("forge", "check"),
    ("forge", "listen", "--secret-stdin"),
    ("forge", "sync"),
    ("inbox",),
    ("issue", "list"),
    ("issue", "take"),
    ("notify", "add", "json://127.0.0.1"),
    ("notify", "list"),
    ("notify", "remove", "1"),
    ("notify", "test", "ann"),
    ("people", "add", "ann", "--may", "admin"),
    ("people", "list"),
    ("people", "remove", "ann"),
    ("prune",),
    ("restore", "copy"),
    ("stats",),
    ("tui",),
    ("web", "login"),
    ("web", "token", "ann"),
    ("web", "tokens"),
)
# Commands that tell nothing of a task that is there.
ABOUT_NONE = {
    *(
        ("auth",),
        ("demo",),
        ("doctor",),
        ("down",),
        ("init",),
        ("run",),
        ("trust",),
        ("up",),
        ("worker",),
    ),
    *(("gate", "check"), ("gate", "explain"), ("gate", "run"), ("queue", "simulate")),
    *(("task", "create"), ("task", "import"), ("completion",)),
    *(("login",), ("logout",), ("mcp",)),
}
READING = (
    ("diff",),
    ("events",),
    ("gate", "list"),
    ("step", "list"),
    ("task", "log"),
    ("task", "show"),
    ("task", "why"),
)


def every_command(group: click.Group, before: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    found = set[tuple[str, ...]]()
    with click.Context(group) as ctx:
        for name in group.list_commands(ctx):
            command = group.get_command(ctx, name)
            path = (*before, name)
            inside = isinstance(command, click.Group)
            found |= every_command(cast("click.Group", command), path) if inside else {path}
    return found


def begun(shell: Shell, branch: str, role: Role) -> tuple[TaskId, str]:
    """A task, and the token of a session of that role on it."""
    id = shell.create(branch)
    shell.bring(id, Status.WORKING)
    token = shell.begin(id, Role.WORKER)
    if role is Role.REVIEWER:
        shell.write(id, HANDOFF)
        shell.did("task", "update", id, "--status", "agent-review")
        token = shell.begin(id, Role.REVIEWER)
    return id, token


@pytest.fixture(scope="module", params=Role, ids=str)
def two(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, configured: Path
) -> tuple[Shell, TaskId, str, TaskId]:
    """A session's own task, its token, and a task of another's in the same state.

    All tests share them: whatever a session tries here changes nothing.
    """
    shell = a_shell(tmp_path_factory.mktemp("two"), configured)
    own, token = begun(shell, "fix-login", request.param)
    other, _ = begun(shell, "fix-logout", request.param)
    return shell, own, token, other


def test_every_command_has_its_place_in_these_tables() -> None:
    placed = {it[:2] for it in ABOUT_A_TASK} | {it[:2] for it in ABOUT_ALL} | ABOUT_NONE

    assert [it for it in every_command(root) if not {it, it[:1]} & cut(placed)] == []


def cut(placed: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """A command of one word is followed by what it names, and that is no part of it."""
    groups = {it[0] for it in every_command(root) if len(it) > 1}
    return {it if it[:1] and it[0] in groups else it[:1] for it in placed}


@pytest.mark.parametrize("argv", ABOUT_A_TASK, ids=" ".join)
def test_another_task_is_refused_in_the_same_words_whether_it_is_there_or_not(two, argv) -> None:
    shell, own, token, other = two
    before = shell.traces()

    def said(name: str) -> str:
        answer = shell.run(*(name if it == "NAME" else it for it in argv), token=token)
        assert (answer.code, answer.out) == (1, "")
        assert f"this session belongs to task {own}" in answer.why
        return str(answer.why.replace(name, "NAME"))

    there = {said(other), said(other[:-1]), said(other[: len("fix-logou")])}
    not_there = {said("fix-logaut-3f9a"), said("zzz")}

    assert there == not_there
    assert shell.traces() == before


@pytest.mark.parametrize("argv", READING, ids=" ".join)
def test_a_name_that_others_share_means_the_sessions_own_task(two, argv) -> None:
    shell, own, token, other = two

    by_id = shell.run(*argv, own, token=token)
    by_prefix = shell.run(*argv, "fix-log", token=token)

    assert by_prefix == by_id
    assert other not in by_id.out + by_id.err


@pytest.mark.parametrize("argv", ABOUT_ALL, ids=lambda it: " ".join(it) or "the board")
def test_what_is_about_all_tasks_tells_a_session_of_its_own_or_of_none(two, argv) -> None:
    shell, own, token, other = two

    answer = shell.run(*argv, token=token)
    as_json = shell.run(*argv, "--json", token=token)

    said = answer.out + answer.err + as_json.out + as_json.err
    assert other not in said
    assert "fix-logout" not in said
    assert answer.code == 1 or own in answer.out


def test_a_human_still_sees_every_task(two) -> None:
    shell, own, _, other = two

    listed, status, queue = (
        shell.run(*it) for it in (("task", "list"), ("status",), ("queue", "list"))
    )

    assert own in listed.out
    assert other in listed.out
    assert (status.code, queue.code) == (0, 0)
    assert "several ids begin so" in shell.run("task", "show", "fix-log").why
