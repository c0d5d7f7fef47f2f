"""When the next worker of a task begins, and for how long, while the one before is leaving."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from lockgate.core.config.settings import Service, Settings
from lockgate.core.lifecycle.decision import SpawnAgent
from lockgate.core.model.task import Role
from tests.given import a_task
from tests.scenarios.stage import Stage
from tests.scenarios.world import REVIEW_ONLY


@pytest.fixture
def stage(tmp_path) -> Iterator[Stage]:
    made = Stage(tmp_path, REVIEW_ONLY)
    yield made
    made.app.store.close()


def test_whoever_comes_next_knows_the_conversation_of_the_one_before(stage) -> None:
    id = stage.world.create()
    stage.turn()

    stage.app.attendance.take_over(id, stage.app.caller)
    stage.turn()

    agent, human = stage.app.store.sessions(id)
    assert stage.sessions.ended == [agent.id]
    assert agent.ended is not None
    assert (agent.native, human.native) == ("n1", "n1")
    assert stage.harnesses.jobs[-1].native == "n1"


def test_who_sits_down_opens_the_agents_session_and_nothing_is_said_in_it(stage) -> None:
    id = stage.world.create()
    stage.turn()
    stage.app.people.say(id, "Use blue.", stage.app.caller)

    stage.app.attendance.take_over(id, stage.app.caller)
    stage.turn()

    job = stage.harnesses.jobs[-1]
    assert (job.interactive, job.prompt) == (True, "")
    assert [it.text for it in stage.world.task(id).words] == ["Use blue."]


def test_a_session_gets_no_more_time_than_it_may_have_at_most(stage) -> None:
    spawner = replace(stage.spawner, wall_seconds=20.0)
    stage.loop.crew.hands = replace(stage.loop.crew.hands, spawner=spawner)
    id = stage.world.create()

    stage.turn()

    [session] = stage.app.store.sessions(id)
    assert stage.sessions.noted[session.id].wall_seconds == 20


SERVED = f"""{REVIEW_ONLY}
[[services]]
service = "postgres"
"""


def test_a_worker_has_the_projects_services_and_its_prompt_says_so(tmp_path) -> None:
    stage = Stage(tmp_path, SERVED)
    id = stage.world.create()

    stage.turn()

    [session] = stage.app.store.sessions(id)
    start = stage.sessions.noted[session.id]
    assert [it.name for it in start.services] == ["postgres"]
    assert start.data == stage.world.home / "data-of-"
    assert "DATABASE_URL" in stage.harnesses.jobs[-1].prompt
    stage.app.store.close()


def test_a_worker_whose_migrations_fail_starts_from_bases_data_to_mend_them(tmp_path) -> None:
    stage = Stage(tmp_path, SERVED)
    stage.workspaces.not_prepared = "no such column"
    task, spawn = a_task(candidate="c" * 40), SpawnAgent(Role.WORKER, 1)
    settings = Settings(formula="none", gates=(), services=(Service("db", "x"),))
    known = stage.world.task(stage.world.create())

    found = stage.spawner._service_data(replace(task, project=known.project), spawn, settings)

    assert found == stage.world.home / "data-of-"
    stage.app.store.close()
