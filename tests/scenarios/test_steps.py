"""S0's steps: what a sandboxed command exits with is all that moves the DAG."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.dag import TaskDAG
from lockgate.core.entropy import EntropyDetector
from lockgate.core.gate_orchestrator import (
    Advance,
    BinaryGateOrchestrator,
    Complete,
    Escalate,
    Stay,
)
from lockgate.core.model import AgentPhase
from lockgate.core.retry import ToolCall, ToolResult
from lockgate.core.settings import Expect, Step
from lockgate.services.patience import SandboxRetryProtocol, ToolProxy
from lockgate.services.steps import Steps

RED = Step(name="red", phase=AgentPhase.RED, command="pytest", expect=Expect.FAIL)
GREEN = Step(name="green", phase=AgentPhase.GREEN, command="pytest", after=("red",))
REFACTOR = Step(name="refactor", phase=AgentPhase.REFACTOR, command="pytest", after=("green",))
STEPS = (RED, GREEN, REFACTOR)


class Sandbox:
    """Exits as it is told, one code a call; the last one for ever after."""

    def __init__(self, *exits: int | None) -> None:
        self.exits = list(exits)
        self.calls = 0

    async def execute(self, tool_call: ToolCall) -> ToolResult:
        self.calls += 1
        code = self.exits.pop(0) if len(self.exits) > 1 else self.exits[0]
        return ToolResult(code, "output says: all tests passed")


async def _no_wait(_milliseconds: float) -> None:
    return


def _steps(sandbox: Sandbox) -> tuple[Steps, list[object]]:
    dag = TaskDAG.of({step.name: step.after for step in STEPS})
    assert isinstance(dag, TaskDAG)
    told: list[object] = []
    protocol = SandboxRetryProtocol(sandbox, EntropyDetector(), delay=_no_wait)
    return Steps(ToolProxy(protocol), BinaryGateOrchestrator(dag, told.append)), told


def _run(steps: Steps, step: Step):
    return asyncio.run(steps.run(step, ToolCall("call-1", ("sh", "-c", step.command))))


@pytest.mark.req("R20")
def test_a_run_goes_from_red_to_the_end_by_exit_codes_alone() -> None:
    steps, told = _steps(Sandbox(1, 0, 0))

    assert _run(steps, RED) == Advance("green")
    assert _run(steps, GREEN) == Advance("refactor")
    assert _run(steps, REFACTOR) == Complete()
    assert told == []


@pytest.mark.req("R20")
def test_what_the_output_claims_moves_nothing() -> None:
    steps, told = _steps(Sandbox(1))

    assert _run(steps, GREEN) == Stay("NON_ZERO_EXIT")
    assert told == [
        {
            "event": "GATE_FAILED",
            "nodeId": "green",
            "reason": "NON_ZERO_EXIT",
            "consecutiveFailures": 1,
        }
    ]


@pytest.mark.req("R20")
def test_a_step_that_fails_in_every_attempt_is_one_failure_of_the_run() -> None:
    sandbox = Sandbox(1)
    steps, _ = _steps(sandbox)

    _run(steps, GREEN)

    assert sandbox.calls == 3
    assert steps.orchestrator.consecutive_failures == 1


def test_a_red_step_whose_tests_pass_stays_red() -> None:
    steps, _ = _steps(Sandbox(0))

    assert _run(steps, RED) == Stay("NON_ZERO_EXIT")


@pytest.mark.parametrize("code", [None, 124, 127, 137])
def test_a_red_step_is_not_made_by_a_command_that_was_killed_or_not_found(code) -> None:
    steps, _ = _steps(Sandbox(code))

    assert isinstance(_run(steps, RED), Stay)


@given(st.lists(st.sampled_from([0, 1, 2, 127, None]), min_size=1, max_size=10))
def test_a_run_escalates_exactly_when_three_steps_fail_in_a_row(codes) -> None:
    sandbox = Sandbox(0)
    steps, _ = _steps(sandbox)
    in_a_row = 0

    for code in codes:
        sandbox.exits = [code]
        result = _run(steps, GREEN)

        escalated = in_a_row >= 3
        in_a_row = 0 if code == 0 and not escalated else in_a_row + (code != 0)
        assert isinstance(result, Escalate) == (in_a_row >= 3)
