"""S4 end to end: five failures pause a task in the database, and only a human resumes it."""

import sqlite3
from contextlib import closing

import pytest

from lockgate.core.model.escalation import EscalationGuard, escalation_guard
from lockgate.core.model.limits import ESCALATION_THRESHOLD
from lockgate.core.model.task import Actor, Role, Status
from lockgate.errors import TransitionRefused, TurnDeclined
from lockgate.services.task.callers import HUMAN
from lockgate.services.task.people import TaskRunner
from tests.scenarios.world import REVIEW_ONLY, World

S = Status


class AlwaysFails:
    def __init__(self) -> None:
        self.attempts = 0

    def __call__(self, _task: object) -> str:
        self.attempts += 1
        return "the tests are red"


@pytest.mark.req("R183", "R184", "R185", "R186")
def test_five_failures_pause_the_task_and_say_so(world) -> None:
    id, agent = world.started(), AlwaysFails()

    TaskRunner(world.app.coordinator).run(id, agent)

    assert agent.attempts == ESCALATION_THRESHOLD
    with closing(sqlite3.connect(world.home / "lockgate.db")) as database:
        [[status]] = database.execute("SELECT status FROM tasks WHERE id = ?", (id,)).fetchall()
    assert status == "PAUSED_FOR_INTERVENTION"
    last = world.app.views.all_events(id)[-1]
    assert last.type == "escalation"
    assert dict(last.data) == {
        "taskId": id,
        "attemptCount": 5,
        "state": "PAUSED_FOR_INTERVENTION",
    }


@pytest.mark.req("R187")
def test_no_sixth_attempt_is_made_on_any_path_without_resume(world) -> None:
    id, agent = world.started(), AlwaysFails()
    runner = TaskRunner(world.app.coordinator)
    runner.run(id, agent)

    runner.run(id, agent)
    world.restart()
    TaskRunner(world.app.coordinator, EscalationGuard()).run(id, agent)
    for target in (S.WORKING, S.AGENT_REVIEW, S.CLARIFICATION):
        with pytest.raises(TransitionRefused):
            world.move(id, target)

    assert agent.attempts == ESCALATION_THRESHOLD


@pytest.mark.req("R188", "R189", "R190")
def test_resume_lets_the_task_be_attempted_again_from_nought(world) -> None:
    id, agent = world.started(), AlwaysFails()
    runner = TaskRunner(world.app.coordinator)
    runner.run(id, agent)

    resumed = runner.resume(id, "read the log first")

    assert (resumed.status, resumed.failed_attempts) == (S.PENDING, 0)
    assert runner.guard.get_attempt_count(id) == 0
    assert world.task(id).directive == "read the log first"
    assert world.task(id).auto_start
    world.move(id, S.WORKING)
    runner.run(id, agent)
    assert agent.attempts == 2 * ESCALATION_THRESHOLD
    assert world.task(id).status is S.PAUSED_FOR_INTERVENTION


def test_an_agent_that_hands_on_is_not_attempted_again(world) -> None:
    id = world.started()
    attempts: list[object] = []

    TaskRunner(world.app.coordinator).run(id, attempts.append)

    assert len(attempts) == 1
    assert world.task(id).failed_attempts == 0


@pytest.mark.req("R189")
def test_a_resume_that_is_refused_leaves_guard_and_row_as_they_were(world) -> None:
    id = world.started()
    runner = TaskRunner(world.app.coordinator, EscalationGuard())
    runner.guard.load(id, 3)

    with pytest.raises(TurnDeclined, match="only a paused task is resumed"):
        runner.resume(id)

    assert runner.guard.get_attempt_count(id) == 3
    assert world.task(id).status is S.WORKING


@pytest.mark.req("R182")
def test_a_runner_guards_with_the_singleton_unless_it_is_given_another(world) -> None:
    own = EscalationGuard()

    assert TaskRunner(world.app.coordinator).guard is escalation_guard
    assert TaskRunner(world.app.coordinator, own).guard is own


def test_counters_are_rebuilt_from_the_row_after_a_restart(world) -> None:
    id = world.started()
    for _ in range(4):
        world.app.coordinator.attempt_failed(id, "red")
    world.restart()
    agent = AlwaysFails()

    TaskRunner(world.app.coordinator, EscalationGuard()).run(id, agent)

    assert agent.attempts == 1
    assert world.task(id).status is S.PAUSED_FOR_INTERVENTION


def test_a_project_that_allows_more_attempts_gets_them(tmp_path) -> None:
    world = World.at(tmp_path, REVIEW_ONLY + "[limits]\nescalation_threshold = 7\n")
    id, agent = world.started(), AlwaysFails()

    TaskRunner(world.app.coordinator).run(id, agent)

    assert agent.attempts == 7
    assert world.task(id).status is S.PAUSED_FOR_INTERVENTION


def test_a_workers_token_does_not_resume_its_task(world) -> None:
    id = world.started()
    worker = world.begin(id, Role.WORKER)
    TaskRunner(world.app.coordinator).run(id, AlwaysFails())

    with pytest.raises(TransitionRefused):
        TaskRunner(world.app.coordinator).resume(id, "", worker)

    assert worker.actor is Actor.WORKER
    assert HUMAN.session is None
    assert world.task(id).status is S.PAUSED_FOR_INTERVENTION
