"""The real agents under an orchestrator while their model refuses, limits or is not there."""

import time
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from lockgate.core.model.task import Cause, Status
from tests.e2e.agents.test_agents import LIMITED, REFUSED
from tests.e2e.agents.whole import CASES, Whole, at_work, by_agent, works

pytestmark = [pytest.mark.agents, pytest.mark.usefixtures("no_way_out")]

WALL_SECONDS = 20.0
LONGEST = 2 * (WALL_SECONDS + 25)  # for both of the sessions that a task gets before it is stuck
OUR_CLOCK = "ended as wall-clock"
NOTICED = 60.0
FALLS_BACK = '[agents.claude]\nfallback = "codex"\n'


@by_agent
def test_a_key_that_is_refused_is_its_own_cause_and_no_crash(case, tmp_path) -> None:
    with at_work(case, tmp_path, [REFUSED], wall=3 * WALL_SECONDS) as it:
        _wait(it)

        task, story = it.task, it.orchestra.story()
        assert (task.status, task.cause) == (Status.STUCK, Cause.LOGIN), story
        assert (task.crash_count, task.failed_attempts, len(it.sessions())) == (0, 0, 1)
        told = it.orchestra.lockgate("status").stdout
        assert f"{case.agent}'s login was refused" in told
        assert f"lockgate auth {case.agent}" in told


@by_agent
def test_an_agent_that_is_not_logged_in_is_told_before_it_starts(case, tmp_path) -> None:
    with at_work(case, tmp_path, [], login=False) as it:
        refused = it.orchestra.lockgate("run", "Say hello")
        it.orchestra.until(lambda: "is not logged in" in it.log_of_the_orchestrator())
        shown = it.orchestra.lockgate("auth", case.agent, "--show").stdout

        assert refused.returncode == 1
        for told in (refused.stderr, shown, it.log_of_the_orchestrator()):
            assert f"{case.agent} is not logged in" in told
            assert f"lockgate auth {case.agent}" in told
        assert it.task.status is Status.PENDING
        assert it.sessions() == []
        assert it.orchestra.app.store.named("say-hello") == (it.id,)


ENDLESS = LIMITED | {"headers": {"retry-after": "3600"}}  # codex and opencode wait for that


@by_agent
@pytest.mark.parametrize("answer", [LIMITED, ENDLESS], ids=["soon", "in an hour"])
def test_a_limit_is_noticed_within_a_minute_parks_the_task_and_counts_nothing(
    case, tmp_path, answer
) -> None:
    with at_work(case, tmp_path, [answer], wall=6 * WALL_SECONDS) as it:
        first = _first_answer(it)
        _wait(it)

        noticed = time.monotonic() - first
        assert it.task.status is Status.WORKING, it.orchestra.story()
        assert it.task.not_before > time.time()
        assert noticed < NOTICED, it.orchestra.story()
        assert (it.task.crash_count, it.task.failed_attempts) == (0, 0)
        assert len(it.sessions()) == 1
        assert "usage.limited" in it.orchestra.lockgate("task", "log", it.id).stdout
        assert it.orchestra.left_over() == []


@by_agent
def test_the_first_of_three_tasks_that_hits_a_limit_parks_them_all(case, tmp_path) -> None:
    with at_work(case, tmp_path, [LIMITED], wall=6 * WALL_SECONDS) as it:
        _wait(it)
        others = [it.orchestra.create(name, context="Say hello.") for name in ("two", "three")]
        it.orchestra.wake()
        time.sleep(3)

        told = it.orchestra.lockgate("status").stdout
        assert f"{case.agent}: limited until " in told, told
        assert "3 tasks wait" in told
        store = it.orchestra.app.store
        assert [store.sessions(id) for id in others] == [(), ()]
        tasks = [it.task, *(it.orchestra.task(id) for id in others)]
        assert [(task.crash_count, task.failed_attempts) for task in tasks] == [(0, 0)] * 3


@pytest.mark.parametrize("case", [it for it in CASES if it.agent == "claude"], ids=str)
def test_another_agent_goes_on_where_the_first_is_limited(case, tmp_path) -> None:
    """codex speaks to the same server, which has answered claude once by then."""
    codex = next(it for it in CASES if it.agent == "codex")
    both = replace(case, environ=case.environ | codex.environ)
    refused = LIMITED | {"headers": {"retry-after": "3600"}}
    answers = [refused, *works(codex, "hello")]
    with at_work(both, tmp_path, answers, gates=FALLS_BACK) as it:
        it.settle()

        assert it.task.status is Status.REVIEWING, it.orchestra.story()
        assert [session.agent for session in it.sessions()] == ["claude", "codex"]
        assert (it.task.agent, it.task.instead_of) == ("codex", "claude")
        assert it.types().count("agent.replaced") == 1
        assert "claude: limited until " in it.orchestra.lockgate("status").stdout


@by_agent
def test_a_model_that_is_down_is_a_crash_that_says_so(case, tmp_path) -> None:
    with at_work(case, tmp_path, [], wall=WALL_SECONDS) as it:
        _must_be_stuck(it, lambda why: "connect" in why.lower() or "fetch failed" in why)


def _must_be_stuck(it: Whole, told: Callable[[str], bool]) -> None:
    """Two crashes, each with the program's own reason or with ours, and nobody left behind."""
    _wait(it)

    task, story = it.task, it.orchestra.story()
    assert (task.status, task.cause) == (Status.STUCK, Cause.CRASH_THRESHOLD), story
    assert task.failed_attempts == 2
    events = it.orchestra.app.views.all_events(it.id)
    reasons = [str(event.data["reason"]) for event in events if event.type == "agent.crashed"]
    assert len(reasons) == 2
    assert all(told(why) or OUR_CLOCK in why for why in reasons), reasons
    log = it.orchestra.lockgate("task", "log", it.id).stdout
    assert all(why in log for why in reasons)
    assert it.orchestra.left_over() == []


def _first_answer(it: Whole) -> float:
    """When its model was first asked for work."""
    it.orchestra.until(lambda: bool(it.requests()), LONGEST)
    return time.monotonic()


def _wait(it: Whole) -> None:
    def over() -> bool:
        return it.task.status is Status.STUCK or "usage.limited" in it.types()

    it.orchestra.until(over, LONGEST)
    it.orchestra.until(lambda: all(session.ended for session in it.sessions()), LONGEST)
