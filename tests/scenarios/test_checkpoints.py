"""What the next agent is told of the work before it: on another host, and in an older home too."""

import shutil
from collections.abc import Iterator

import pytest

from lockgate.adapters.store.checkpoints import SqlCheckpoints
from lockgate.adapters.store.lanes import SqlLanes
from lockgate.bootstrap.worker import fenced
from lockgate.core.jobs import HostLost, Lead, lane_of
from lockgate.core.model.task import Actor, TaskId
from lockgate.core.text.checkpoints import number_of
from lockgate.errors import Fenced
from lockgate.services.agents.spawner import GOODBYE
from lockgate.services.orchestrator.loop import HEALTH_CHECK
from lockgate.services.task.callers import Caller
from lockgate.services.task.sessions import INCREMENTAL, Said
from tests.given import HANDOFF
from tests.scenarios.stage import Stage
from tests.scenarios.test_leader import attending
from tests.scenarios.test_loop import TESTS_FIRST

HALF = "Previous work summary:\n> half of it\n"


@pytest.fixture
def stage(tmp_path) -> Iterator[Stage]:
    made = Stage(tmp_path, TESTS_FIRST)
    made.harnesses.resumes, made.gates.results = False, ["fail"]
    yield made
    made.app.store.close()


@pytest.fixture
def id(stage) -> TaskId:
    """A task at host h1, whose second agent works on what a gate found. It has checkpoint 1."""
    made: TaskId = stage.world.create()
    stage.turn()
    (stage.workspaces.place(made) / "TASK.md").write_text(HANDOFF)
    stage.dies(stage.alive(made)[0])
    stage.event(stage.alive(made)[0])
    attending(stage, []).place(made, "h1")
    for _ in range(3):  # the agent before gets time to leave
        stage.turn(HEALTH_CHECK)
    return made


def noted(stage: Stage, id: TaskId, summary: str) -> int:
    """The number of the checkpoint that the task's agent leaves now."""
    session = stage.app.store.session(stage.alive(id)[0])
    said = Said(type=INCREMENTAL, summary=summary)
    return stage.signals.checkpoint(id, Caller(Actor.WORKER, session), said).sequence


def told_at(stage: Stage, id: TaskId, host: str) -> str:
    """What the next agent is told, on this host, after the one before it was lost."""
    work, task = attending(stage, []), stage.world.task(id)
    work.host_lost(HostLost(id, task.project, task.host))
    work.place(id, host)
    stage.turn(GOODBYE)
    assert len(stage.alive(id)) == 1
    prompt: str = stage.harnesses.jobs[-1].prompt
    return prompt


def test_the_agent_on_the_next_host_is_told_what_the_one_on_a_lost_host_has_done(stage, id) -> None:
    assert noted(stage, id, "half of it") == 2

    shutil.rmtree(stage.world.home / "tasks" / id / "checkpoints")  # h2 has none of h1's files
    prompt = told_at(stage, id, "h2")

    assert HALF in prompt
    assert "Files modified so far:\n- a.txt\n" in prompt
    assert noted(stage, id, "more of it") == 3


def test_on_a_host_with_older_files_the_agent_is_told_what_was_done_elsewhere_since(
    stage, id
) -> None:
    files = stage.world.home / "tasks" / id / "checkpoints"
    of_h1 = shutil.copytree(files, files.with_name("of-h1"))
    told_at(stage, id, "h2")
    noted(stage, id, "half of it")
    shutil.rmtree(files)
    of_h1.rename(files)

    assert HALF in told_at(stage, id, "h1")
    assert noted(stage, id, "more of it") == 3


def test_in_the_home_of_an_older_release_the_agent_is_told_what_the_files_say(stage, id) -> None:
    stage.app.witness.files.add_checkpoint(id, {"work_summary": "half of it"})
    stage.app.store.database.write(lambda run: run("DELETE FROM checkpoints", {}))

    assert HALF in told_at(stage, id, "h1")
    assert noted(stage, id, "more of it") == 3
    assert noted(stage, id, "all of it") == 4


def test_a_host_that_has_lost_the_job_leaves_no_checkpoint_for_the_next_agent(stage, id) -> None:
    lanes, lane = SqlLanes(stage.app.store.database), lane_of(Lead())
    lanes.ask(Lead(), "lead", 1.0)
    row = lanes.claim(lane, "h1", "first", 2.0)
    assert row is not None
    lanes.claim(lane, "h2", "second", 3.0)
    checkpoints = fenced(stage.app, row).signals.checkpoints

    with pytest.raises(Fenced):
        checkpoints.add(id, {"work_summary": "half of it"}, 1)

    assert number_of(SqlCheckpoints(stage.app.store.database).of(id) or {}) == 1
