"""Which secrets a task's agents and gates are given, and what Lockgate writes of them."""

import json
from pathlib import Path

import pytest

from lockgate.bootstrap import App, open_app
from lockgate.core.lifecycle.sessions import Place
from lockgate.core.model.secrets import Secret
from lockgate.core.model.task import Role, Status, TaskId
from lockgate.ports import candidate_of
from lockgate.services.task.callers import HUMAN, Caller, identify
from lockgate.services.task.sessions import Said
from lockgate.services.task.tasks import NewTask
from tests.given import HANDOFF
from tests.scenarios.world import REVIEW_ONLY, World

CONFIG = (
    REVIEW_ONLY.replace('agent = "scripted"', 'agent = "mine"')
    + 'reviewer = "claude"\n'
    + '[agents.mine]\ncommand = ["sh"]\nenv = ["MY_WORD"]\n[env]\ncopy = [".env", "absent"]\n'
    + 'pass = ["PIP_INDEX_URL", "UV_INDEX_CORP_PASSWORD"]\n'
)
GIVEN = {
    "MY_WORD": "a word of my own, long",
    "ANTHROPIC_API_KEY": "sk-ant-0123456789abc",
    "ANTHROPIC_MODEL": "a-model-with-a-long-name",
    "ANTHROPIC_AUTH_TOKEN": "too short",
    "UNRELATED_TOKEN": "not-handed-to-anybody",
    "PIP_INDEX_URL": "https://me:index-password@pypi.corp/simple",
    "UV_INDEX_CORP_PASSWORD": "the-word-of-the-index",
    "HTTPS_PROXY": "http://me:proxy-password@proxy:1",
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made, program = World.at(tmp_path, CONFIG), tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    made.app.store.close()
    made.app = open_app({"LOCKGATE_HOME": str(made.home), **GIVEN})
    made.app.credentials.store("claude", "CLAUDE_CODE_OAUTH_TOKEN", value="oauth-0123456789")
    (made.root / ".env").write_text("DATABASE_URL=postgres://user:word@host/db\nSHORT=1\n")
    return made


def _started(app: App, world: World) -> TaskId:
    asked = NewTask(branch="fix-login", summary="Fix it")
    id = app.tasks.create(world.project(), asked, HUMAN).id
    world.move(id, Status.WORKING)
    return id


def test_what_its_agents_log_in_with_what_they_are_passed_and_what_is_copied(world) -> None:
    app, id = world.app, _started(world.app, world)

    found = app.coordinator.witness.secrets.of(
        candidate_of(world.project(), app.store.load(id)), app.store.load(id).agent
    )

    assert set(found) == {
        Secret("MY_WORD", GIVEN["MY_WORD"]),
        Secret("ANTHROPIC_API_KEY", GIVEN["ANTHROPIC_API_KEY"]),
        Secret("CLAUDE_CODE_OAUTH_TOKEN", "oauth-0123456789"),
        Secret("HTTPS_PROXY", "me:proxy-password"),
        Secret("PIP_INDEX_URL", "me:index-password"),
        Secret("UV_INDEX_CORP_PASSWORD", GIVEN["UV_INDEX_CORP_PASSWORD"]),
        Secret("DATABASE_URL", "postgres://user:word@host/db"),
    }


def _worker(world: World, id: TaskId, directory: Path) -> Caller:
    spawn = world.wanted(id, Role.WORKER)
    world.app.attendance.session_started(id, spawn, "token", Place(str(directory)))
    return identify(world.app.store, "token")


def test_what_an_agent_says_is_stored_without_the_values(world, tmp_path) -> None:
    app, id, desk = world.app, _started(world.app, world), tmp_path / "desk"
    desk.mkdir()
    caller, key = _worker(world, id, desk), GIVEN["ANTHROPIC_API_KEY"]
    (desk / "TASK.md").write_text(f"{HANDOFF}\nThe key is {key}.\n")

    app.signals.checkpoint(id, caller, Said(summary=f"found {key}", confidence=0.5))
    world.move(id, Status.AGENT_REVIEW, caller, reason=f"because of {key}")
    app.store.close()

    files = [it for it in world.home.rglob("*") if it.is_file() and it.parent.name != "auth"]
    assert not [it for it in files if key.encode() in it.read_bytes()]
    hidden = "[secret ANTHROPIC_API_KEY]"
    assert f"The key is {hidden}." in world.path(id).read_text()
    assert hidden in (world.home / "tasks" / id / "history.jsonl").read_text()
    checkpoint = next((world.home / "tasks" / id / "checkpoints").iterdir())
    assert json.loads(checkpoint.read_text())["work_summary"] == f"found {hidden}"


def test_a_task_that_has_not_started_was_handed_nothing(world) -> None:
    id = world.create()

    task = world.app.store.load(id)

    assert (
        world.app.coordinator.witness.secrets.of(candidate_of(world.project(), task), task.agent)
        == ()
    )
