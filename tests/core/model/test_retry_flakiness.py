"""S1: which failures are the surroundings', which the work's, and who hears of them."""

import asyncio
import inspect
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.model.retry import (
    EXIT_COMPILATION_ERROR,
    EXIT_DOCKER_DAEMON_UNAVAILABLE,
    EXIT_NETWORK_TIMEOUT,
    ErrorClassifier,
    ToolCall,
    ToolResult,
)
from lockgate.core.model.task import AgentPhase
from lockgate.errors import SandboxRetryExhaustedError
from lockgate.services.gates.command import SandboxRetryProtocol

CALL = ToolCall("call-1", ("pytest", "-q"))


class Sandbox:
    """Gives back the exit codes it was made with, one a call."""

    def __init__(self, *exit_codes: int | None) -> None:
        self.exit_codes = list(exit_codes)

    async def execute(self, tool_call: ToolCall) -> ToolResult:
        return ToolResult(self.exit_codes.pop(0), "1 failed")


class Recorder:
    def __init__(self) -> None:
        self.records: list[tuple[ToolCall, AgentPhase, str]] = []

    def record(self, tool_call: ToolCall, phase: AgentPhase, output: str = "") -> None:
        self.records.append((tool_call, phase, output))


class Waits:
    def __init__(self) -> None:
        self.milliseconds: list[float] = []

    async def __call__(self, milliseconds: float) -> None:
        self.milliseconds.append(milliseconds)


def run(sandbox: Sandbox, recorder: Recorder, waits: Waits | None = None) -> ToolResult:
    protocol = SandboxRetryProtocol(sandbox, recorder, delay=waits or Waits())
    return asyncio.run(protocol.execute_with_retry(CALL, AgentPhase.GREEN))


@pytest.mark.req("R44")
def test_the_exit_codes_have_names() -> None:
    named = (EXIT_COMPILATION_ERROR, EXIT_NETWORK_TIMEOUT, EXIT_DOCKER_DAEMON_UNAVAILABLE)

    assert named == (1, 124, 125)


@pytest.mark.req("R43", "R53")
@pytest.mark.parametrize("code", [124, 125, 126, 127, 128])
def test_124_to_128_are_transient(code: int) -> None:
    assert ErrorClassifier.classify(code) == "TransientError"


@pytest.mark.req("R43", "R53")
@given(st.none() | st.integers().filter(lambda code: code not in range(124, 129)))
def test_every_other_failure_is_persistent(code: int | None) -> None:
    assert ErrorClassifier.classify(code) == "PersistentError"


@pytest.mark.req("R45")
@given(st.none() | st.integers(0, 255))
def test_classifying_needs_no_instance_and_keeps_no_state(code: int | None) -> None:
    kind: Literal["TransientError", "PersistentError"] = ErrorClassifier.classify(code)

    assert isinstance(inspect.getattr_static(ErrorClassifier, "classify"), staticmethod)
    assert kind == ErrorClassifier().classify(code)


@pytest.mark.req("R46", "R48")
def test_a_time_out_of_the_network_is_retried_and_its_recovery_is_not_recorded() -> None:
    recorder = Recorder()

    result = run(Sandbox(EXIT_NETWORK_TIMEOUT, 0), recorder)

    assert result.exit_code == 0
    assert recorder.records == []


@pytest.mark.req("R47")
def test_a_compilation_error_that_is_mended_by_a_retry_is_not_recorded() -> None:
    recorder = Recorder()

    result = run(Sandbox(EXIT_COMPILATION_ERROR, 0), recorder)

    assert result.exit_code == 0
    assert recorder.records == []


@pytest.mark.req("R42", "R49")
def test_a_persistent_failure_that_used_up_its_attempts_is_recorded_once() -> None:
    recorder = Recorder()

    with pytest.raises(SandboxRetryExhaustedError):
        run(Sandbox(1, 1, 1), recorder)

    assert recorder.records == [(CALL, AgentPhase.GREEN, "1 failed")]


@pytest.mark.req("R49")
def test_a_killed_process_that_used_up_its_attempts_is_recorded_once() -> None:
    recorder = Recorder()

    with pytest.raises(SandboxRetryExhaustedError):
        run(Sandbox(None, None, None), recorder)

    assert len(recorder.records) == 1


@pytest.mark.req("R42")
def test_a_transient_failure_that_used_up_its_attempts_is_not_recorded() -> None:
    recorder = Recorder()

    with pytest.raises(SandboxRetryExhaustedError) as raised:
        run(Sandbox(127, 127, 127), recorder)

    assert raised.value.exit_code == 127
    assert recorder.records == []


@pytest.mark.req("R42")
@given(st.lists(st.sampled_from([1, 2, 124, 126, None]), min_size=3, max_size=3))
def test_the_last_attempt_alone_says_whose_fault_it_was(codes: list[int | None]) -> None:
    recorder = Recorder()

    with pytest.raises(SandboxRetryExhaustedError):
        run(Sandbox(*codes), recorder)

    assert bool(recorder.records) == (ErrorClassifier.classify(codes[-1]) == "PersistentError")


@pytest.mark.req("R38")
def test_the_waits_grow_from_half_a_second_to_one() -> None:
    waits = Waits()

    with pytest.raises(SandboxRetryExhaustedError):
        run(Sandbox(1, 1, 1), Recorder(), waits)

    assert waits.milliseconds == [500, 1000]
