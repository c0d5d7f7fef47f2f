"""S3's retry controller: whether to try again, and with which agent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.model.findings import Finding, GateFeedback, Priority
from lockgate.core.model.limits import RetryConfig, Strategy
from lockgate.core.model.retry import IterationOutcome, IterationRecord, RetryController
from lockgate.core.model.task import TaskId

RETRY = IterationOutcome.FAILED_WITH_RETRY
records = st.builds(
    IterationRecord,
    iteration=st.integers(1, 6),
    agent_id=st.sampled_from(["ann", "ben"]),
    outcome=st.sampled_from(IterationOutcome),
)
histories = st.lists(records, max_size=6).map(tuple)


def feedback(issue: str) -> GateFeedback:
    return GateFeedback(
        gate_name="tests",
        findings=(Finding(Priority.P0_CRITICAL, issue),),
        summary="red",
        suggested_action="fix it",
    )


def failed(iteration: int, agent: str = "ann", issue: str | None = None) -> IterationRecord:
    return IterationRecord(
        iteration=iteration,
        agent_id=agent,
        outcome=RETRY,
        feedback=feedback(issue) if issue else None,
    )


def passed(iteration: int) -> IterationRecord:
    return IterationRecord(iteration=iteration, agent_id="ann", outcome=IterationOutcome.PASSED)


def controller(
    *history: IterationRecord, strategy: Strategy = Strategy.AUTO, fresh_after: int = 2
) -> RetryController:
    config = RetryConfig(strategy=strategy, fresh_after_failures=fresh_after)
    return RetryController(TaskId("t1"), config, history)


@pytest.mark.req("R137")
def test_by_default_auto_goes_fresh_after_two_failures_and_ends_after_three_iterations() -> None:
    assert set(Strategy) == {"same", "fresh", "auto"}
    assert RetryConfig() == RetryConfig(
        strategy=Strategy.AUTO, fresh_after_failures=2, max_iterations=3
    )


@pytest.mark.req("R162")
def test_a_controller_holds_task_config_and_history() -> None:
    assert list(RetryController.__struct_fields__) == ["task_id", "config", "history"]


@pytest.mark.req("R163")
def test_a_record_holds_iteration_agent_outcome_and_perhaps_feedback() -> None:
    record = passed(2)

    assert set(IterationRecord.__struct_fields__) == {
        "iteration",
        "agent_id",
        "outcome",
        "feedback",
    }
    assert record.feedback is None
    assert set(IterationOutcome) == {"Passed", "FailedWithRetry", "FailedMaxIterations"}


@pytest.mark.req("R162")
@given(histories, records)
def test_recording_gives_a_new_controller_and_leaves_the_old(
    history: tuple[IterationRecord, ...], record: IterationRecord
) -> None:
    before = controller(*history)

    after = before.record_iteration(record)

    assert before.history == history
    assert after == controller(*history, record)


@pytest.mark.parametrize(
    ("history", "again"),
    [
        ((), True),
        ((failed(1),), True),
        ((failed(1), failed(2)), True),
        ((failed(1), failed(2), failed(3)), False),
        ((failed(3), failed(1)), True),  # a human restarted the count
        ((failed(1), passed(2)), False),
    ],
)
def test_another_iteration_begins_while_the_last_was_below_the_limit(
    history: tuple[IterationRecord, ...], again: bool
) -> None:
    assert controller(*history).should_retry() is again


@given(histories)
def test_at_the_limit_nothing_is_tried_again(history: tuple[IterationRecord, ...]) -> None:
    at_limit = controller(*history, failed(3))

    assert not at_limit.should_retry()


@pytest.mark.req("R138")
@given(histories, st.booleans(), st.booleans())
def test_strategy_same_never_asks_for_a_fresh_agent(
    history: tuple[IterationRecord, ...], context_exhausted: bool, call_repeats: bool
) -> None:
    same = controller(*history, strategy=Strategy.SAME)

    assert not same.should_use_fresh_agent(
        context_exhausted=context_exhausted, call_repeats=call_repeats
    )


@pytest.mark.req("R139")
@given(histories)
def test_strategy_fresh_always_asks_for_one(history: tuple[IterationRecord, ...]) -> None:
    assert controller(*history, strategy=Strategy.FRESH).should_use_fresh_agent()


@pytest.mark.req("R138", "R140")
@pytest.mark.parametrize(
    ("history", "fresh"),
    [
        ((), False),
        ((failed(1),), False),
        ((failed(1), failed(2)), True),
        ((failed(1, "ann"), failed(2, "ben")), False),
        ((failed(1, "ann"), failed(2, "ann"), failed(3, "ben")), False),
        ((failed(1), passed(2), failed(1)), False),  # dropped from the train after a pass
    ],
)
def test_auto_goes_fresh_after_two_failures_of_the_same_agent(
    history: tuple[IterationRecord, ...], fresh: bool
) -> None:
    assert controller(*history).should_use_fresh_agent() is fresh


@pytest.mark.req("R140")
def test_auto_goes_fresh_when_the_context_is_exhausted() -> None:
    assert controller(failed(1)).should_use_fresh_agent(context_exhausted=True)


@pytest.mark.req("R140")
def test_auto_goes_fresh_when_a_call_keeps_failing_alike() -> None:
    assert controller(failed(1)).should_use_fresh_agent(call_repeats=True)


@pytest.mark.req("R140")
@pytest.mark.parametrize(("second", "fresh"), [("boom", True), ("bang", False)])
def test_auto_goes_fresh_when_the_findings_repeat(second: str, fresh: bool) -> None:
    history = (failed(1, "ann", "boom"), failed(2, "ben", second))

    assert controller(*history, fresh_after=9).should_use_fresh_agent() is fresh


@pytest.mark.req("R140")
@given(st.integers(1, 5), st.integers(0, 6))
def test_auto_counts_the_failures_of_the_last_agent_only(limit: int, failures: int) -> None:
    history = [failed(1, "ben")] * 9 + [failed(2, "ann")] * failures

    fresh = controller(*history, fresh_after=limit).should_use_fresh_agent()

    assert fresh is (failures >= limit if failures else limit <= 9)
