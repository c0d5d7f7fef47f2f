"""S0's orchestrator: how results move a run along its graph."""

from collections.abc import Mapping
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.lifecycle.binary_gate import GateResult, evaluate
from lockgate.core.lifecycle.gate_orchestrator import (
    Advance,
    BinaryGateOrchestrator,
    Complete,
    Escalate,
    RunState,
    Stay,
    TransitionResult,
    as_json,
)
from lockgate.core.model.dag import TaskDAG

PASS, FAIL, KILLED = evaluate(0), evaluate(1), evaluate(None)
results = st.lists(st.sampled_from([PASS, FAIL, KILLED]), max_size=30)


class Log:
    """Remembers each entry, and what the orchestrator looked like when it came."""

    def __init__(self) -> None:
        self.entries: list[Mapping[str, object]] = []
        self.seen: list[tuple[RunState, int]] = []
        self.orchestrator: BinaryGateOrchestrator | None = None

    def __call__(self, entry: Mapping[str, object], /) -> None:
        self.entries.append(entry)
        if self.orchestrator:
            watched = self.orchestrator
            self.seen.append((watched.state, watched.consecutive_failures))

    def named(self, event: str) -> list[Mapping[str, object]]:
        return [entry for entry in self.entries if entry["event"] == event]


def a_dag() -> TaskDAG[str]:
    dag = TaskDAG.of({"red": (), "green": ("red",), "verify": ("green",)})
    assert isinstance(dag, TaskDAG)
    return dag


def a_run(log: Log | None = None, limit: int = 3, failures: int = 0) -> BinaryGateOrchestrator:
    return BinaryGateOrchestrator(a_dag(), log or Log(), limit, consecutive_failures=failures)


def after(run: BinaryGateOrchestrator, *given_results: GateResult) -> list[TransitionResult]:
    return [run.transition("red", result) for result in given_results]


@pytest.mark.req("R8", "R18", "R24")
def test_a_pass_advances_to_the_next_node_of_the_graph() -> None:
    run = a_run(failures=2)

    result = run.transition("red", PASS)

    assert result == Advance("green")
    assert as_json(result) == {"advance": True, "nextNodeId": "green"}
    assert run.consecutive_failures == 0


@pytest.mark.req("R9", "R24")
def test_a_pass_on_the_last_node_completes_the_run() -> None:
    result = a_run().transition("verify", PASS)

    assert result == Complete()
    assert as_json(result) == {"complete": True}


@pytest.mark.req("R10", "R24")
def test_a_failure_below_the_limit_stays_and_counts() -> None:
    run = a_run()

    result = run.transition("red", FAIL)

    assert result == Stay("NON_ZERO_EXIT")
    assert as_json(result) == {"stay": True, "reason": "NON_ZERO_EXIT"}
    assert (run.consecutive_failures, run.state) == (1, RunState.RUNNING)


@pytest.mark.req("R11", "R24")
def test_every_failure_is_logged_with_the_count_that_includes_it() -> None:
    log = Log()

    after(a_run(log), FAIL, KILLED)

    assert log.entries == [
        {
            "event": "GATE_FAILED",
            "nodeId": "red",
            "reason": "NON_ZERO_EXIT",
            "consecutiveFailures": 1,
        },
        {
            "event": "GATE_FAILED",
            "nodeId": "red",
            "reason": "PROCESS_KILLED",
            "consecutiveFailures": 2,
        },
    ]


@pytest.mark.req("R7", "R12", "R13", "R24")
def test_the_third_failure_in_a_row_escalates_by_default() -> None:
    log = Log()
    run = BinaryGateOrchestrator(a_dag(), log)

    given_back = after(run, FAIL, FAIL, FAIL)

    assert given_back[2] == Escalate()
    assert as_json(given_back[2]) == {"escalate": True}
    assert run.state is RunState.ESCALATION
    assert [entry["event"] for entry in log.entries][2:] == ["GATE_FAILED", "ESCALATION_TRIGGERED"]


@pytest.mark.req("R14")
def test_escalation_is_logged_before_anything_changes() -> None:
    log = Log()
    run = a_run(log, limit=1)
    log.orchestrator = run

    run.transition("red", FAIL)

    assert log.entries[-1]["event"] == "ESCALATION_TRIGGERED"
    assert log.seen[-1] == (RunState.RUNNING, 0)
    assert (run.state, run.consecutive_failures) == (RunState.ESCALATION, 1)


@pytest.mark.req("R14")
def test_a_log_that_breaks_leaves_the_run_as_it_was() -> None:
    def broken(entry: Mapping[str, object], /) -> None:
        raise OSError(entry["event"])

    run = BinaryGateOrchestrator(a_dag(), broken, 1)

    with pytest.raises(OSError, match="GATE_FAILED"):
        run.transition("red", FAIL)
    assert (run.state, run.consecutive_failures) == (RunState.RUNNING, 0)


@pytest.mark.req("R15")
def test_a_transition_gives_one_of_exactly_four_results() -> None:
    members = set(get_args(TransitionResult))

    assert members == {Advance, Complete, Stay, Escalate}


@pytest.mark.req("R16")
def test_two_runs_share_no_counter() -> None:
    first, second = a_run(), a_run()

    after(first, FAIL, FAIL)

    assert (first.consecutive_failures, second.consecutive_failures) == (2, 0)


@pytest.mark.req("R17")
def test_a_pass_between_failures_keeps_the_run_from_escalating() -> None:
    run = a_run()

    given_back = after(run, FAIL, FAIL, PASS, FAIL, FAIL)

    assert Escalate() not in given_back
    assert run.consecutive_failures == 2


@pytest.mark.req("R16")
def test_a_count_that_was_kept_goes_on_where_it_was() -> None:
    result = a_run(failures=2).transition("red", FAIL)

    assert result == Escalate()


def test_a_run_built_at_its_limit_is_escalated_already() -> None:
    run = a_run(failures=3)

    assert run.state is RunState.ESCALATION
    assert run.transition("red", PASS) == Escalate()


def test_an_escalated_run_does_not_move_on_a_pass() -> None:
    run = a_run(limit=1)
    run.transition("red", FAIL)

    result = run.transition("red", PASS)

    assert result == Escalate()
    assert (run.state, run.consecutive_failures) == (RunState.ESCALATION, 1)


def test_a_failure_after_escalation_is_counted_but_triggers_nothing_new() -> None:
    log = Log()
    run = a_run(log, limit=1)

    given_back = after(run, FAIL, FAIL)

    assert given_back == [Escalate(), Escalate()]
    assert [entry["consecutiveFailures"] for entry in log.named("GATE_FAILED")] == [1, 2]
    assert len(log.named("ESCALATION_TRIGGERED")) == 1


def test_a_pass_at_a_stranger_is_an_error_and_changes_nothing() -> None:
    run = a_run(failures=1)

    with pytest.raises(KeyError):
        run.transition("nowhere", PASS)
    assert run.consecutive_failures == 1


@pytest.mark.req("R8", "R10", "R12", "R17")
@given(results, st.integers(1, 5))
def test_a_run_escalates_exactly_when_its_limit_of_failures_in_a_row_is_reached(
    given_results: list[GateResult], limit: int
) -> None:
    log = Log()
    run = a_run(log, limit)
    row, over = 0, False

    for result in given_results:
        given_back = run.transition("red", result)
        row = 0 if result.passed else row + 1
        over = over or row >= limit

        assert (given_back == Escalate()) == over
        assert (run.state is RunState.ESCALATION) == over
        assert over or run.consecutive_failures == row
    assert len(log.named("ESCALATION_TRIGGERED")) == over
    assert len(log.named("GATE_FAILED")) == sum(not result.passed for result in given_results)


@pytest.mark.req("R19")
@given(results)
def test_no_run_changes_the_graph(given_results: list[GateResult]) -> None:
    dag = a_dag()
    run = BinaryGateOrchestrator(dag, Log())

    after(run, *given_results)

    assert dag == a_dag()
