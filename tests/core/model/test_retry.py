"""S1's retry protocol: how often a sandboxed call is tried, and what the caller gets."""

import ast
import asyncio
import inspect
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lockgate
from lockgate.core.model.retry import (
    Accept,
    Exhausted,
    RetryAfter,
    RetryOptions,
    ToolCall,
    ToolResult,
    after_attempt,
    may_change,
    narrowed,
)
from lockgate.core.model.task import AgentPhase
from lockgate.errors import LockgateError, SandboxRetryExhaustedError
from lockgate.services.gates import command
from lockgate.services.gates.command import SandboxRetryProtocol, ToolProxy

CALL = ToolCall("call-7", ("make", "test"))
failures = st.none() | st.integers().filter(bool)


class Sandbox:
    """Gives back its results in turn, and remembers what it was asked."""

    def __init__(self, *results: ToolResult | int | None) -> None:
        self.results = [it if isinstance(it, ToolResult) else ToolResult(it) for it in results]
        self.calls: list[ToolCall] = []

    async def execute(self, tool_call: ToolCall) -> ToolResult:
        self.calls.append(tool_call)
        return self.results[len(self.calls) - 1]


class OverlaySandbox:
    """Each attempt writes into a layer of its own, which is thrown away unless it succeeds."""

    def __init__(self, fails: int) -> None:
        self.fails = fails
        self.tree: list[str] = []

    async def execute(self, tool_call: ToolCall) -> ToolResult:
        layer = [*self.tree, f"line written by {tool_call.id}"]
        self.fails -= 1
        if self.fails >= 0:
            return ToolResult(1)
        self.tree = layer
        return ToolResult(0)


class Recorder:
    def __init__(self) -> None:
        self.records: list[ToolCall] = []

    def record(self, tool_call: ToolCall, phase: AgentPhase, output: str = "") -> None:
        self.records.append(tool_call)


class Waits:
    def __init__(self) -> None:
        self.milliseconds: list[float] = []

    async def __call__(self, milliseconds: float) -> None:
        self.milliseconds.append(milliseconds)


def run(
    sandbox: Sandbox | OverlaySandbox,
    phase: AgentPhase = AgentPhase.VERIFY,
    options: RetryOptions | None = None,
    waits: Waits | None = None,
) -> ToolResult:
    protocol = SandboxRetryProtocol(sandbox, Recorder(), options, delay=waits or Waits())
    return asyncio.run(ToolProxy(protocol).call(CALL, phase))


@pytest.mark.req("R32", "R53")
@pytest.mark.parametrize("phase", [AgentPhase.GREEN, AgentPhase.VERIFY])
def test_a_failing_call_is_tried_three_times_in_all(phase: AgentPhase) -> None:
    sandbox = Sandbox(1, 1, 1)

    with pytest.raises(SandboxRetryExhaustedError):
        run(sandbox, phase)

    assert len(sandbox.calls) == 3


@pytest.mark.req("R33", "R53")
@pytest.mark.parametrize("phase", [AgentPhase.RED, AgentPhase.REFACTOR])
@pytest.mark.parametrize("code", [1, 124, None])
def test_in_other_phases_a_failing_call_is_given_back_at_once(
    phase: AgentPhase, code: int | None
) -> None:
    sandbox, waits = Sandbox(code), Waits()

    result = run(sandbox, phase, waits=waits)

    assert result.exit_code == code
    assert (len(sandbox.calls), waits.milliseconds) == (1, [])


@pytest.mark.req("R34")
@given(st.text(), st.lists(st.text()))
def test_every_attempt_gets_the_call_as_it_was(id: str, argv: list[str]) -> None:
    sandbox = Sandbox(1, 124, 0)
    call = ToolCall(id, tuple(argv))
    protocol = SandboxRetryProtocol(sandbox, Recorder(), delay=Waits())

    asyncio.run(protocol.execute_with_retry(call, AgentPhase.GREEN))

    assert sandbox.calls == [ToolCall(id, tuple(argv))] * 3


@pytest.mark.req("R35", "R41")
@pytest.mark.parametrize("failed", [0, 1, 2])
def test_a_later_success_is_given_back_as_if_it_were_the_first(failed: int) -> None:
    success = ToolResult(0, "all green")
    waits = Waits()

    result = run(Sandbox(*[1] * failed, success), waits=waits)

    assert result == success
    assert len(waits.milliseconds) == failed


@pytest.mark.req("R36", "R37")
def test_the_error_tells_exit_code_attempts_phase_and_call() -> None:
    with pytest.raises(SandboxRetryExhaustedError) as raised:
        run(Sandbox(1, 1, 2))

    error = raised.value
    assert isinstance(error, LockgateError)
    assert (error.exit_code, error.attempt_count) == (2, 3)
    assert (error.phase, error.tool_call_id) == (AgentPhase.VERIFY, "call-7")


@pytest.mark.req("R37")
@pytest.mark.parametrize("missing", ["exit_code", "attempt_count", "phase", "tool_call_id"])
def test_the_error_cannot_be_made_without_all_four_facts(missing: str) -> None:
    facts = {
        "exit_code": 1,
        "attempt_count": 3,
        "phase": AgentPhase.GREEN,
        "tool_call_id": "call-7",
    }
    del facts[missing]

    with pytest.raises(TypeError, match=missing):
        SandboxRetryExhaustedError(**facts)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.req("R38", "R40")
def test_the_defaults_are_three_attempts_from_half_a_second_doubling() -> None:
    assert RetryOptions() == RetryOptions(3, 500, 2.0)


@pytest.mark.req("R38", "R40")
@given(st.integers(1, 6), st.integers(0, 1000), st.floats(1, 4))
def test_options_set_the_attempts_and_the_waits(
    attempts: int, base: int, multiplier: float
) -> None:
    waits = Waits()

    with pytest.raises(SandboxRetryExhaustedError) as raised:
        run(Sandbox(*[1] * attempts), options=RetryOptions(attempts, base, multiplier), waits=waits)

    assert raised.value.attempt_count == attempts
    assert waits.milliseconds == [base * multiplier**turn for turn in range(attempts - 1)]


@pytest.mark.req("R39")
def test_the_protocol_knows_no_timer_of_its_own() -> None:
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(inspect.getsource(command)))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [])
    }

    assert imported == {"collections", "contextlib", "typing", "msgspec", "lockgate"}
    assert inspect.signature(SandboxRetryProtocol).parameters["delay"].default is inspect._empty


@pytest.mark.req("R41")
def test_executing_with_retry_is_asynchronous() -> None:
    assert inspect.iscoroutinefunction(SandboxRetryProtocol.execute_with_retry)


@pytest.mark.req("R50")
def test_the_proxy_has_no_loop_and_no_executor() -> None:
    tree = ast.parse(textwrap.dedent(inspect.getsource(ToolProxy)))

    called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    loops = [it for it in ast.walk(tree) if isinstance(it, ast.For | ast.While | ast.AsyncFor)]

    assert called == {"_protocol", "execute_with_retry"}
    assert loops == []


@pytest.mark.req("R51")
def test_the_phases_are_red_green_refactor_and_verify() -> None:
    assert set(AgentPhase) == {"RED", "GREEN", "REFACTOR", "VERIFY"}


@pytest.mark.parametrize("fails", [0, 1, 2])
def test_side_effects_happen_once_however_many_attempts_it_took(fails: int) -> None:
    sandbox = OverlaySandbox(fails)

    run(sandbox)

    assert sandbox.tree == ["line written by call-7"]


def test_the_executor_is_bound_to_start_from_a_fresh_tree() -> None:
    promise = inspect.getdoc(command.SandboxExecutor.execute) or ""

    assert "same fresh tree each time" in promise


def test_our_own_time_out_is_not_retried() -> None:
    sandbox = Sandbox(ToolResult(None, timed_out=True))

    with pytest.raises(SandboxRetryExhaustedError) as raised:
        run(sandbox)

    assert raised.value.attempt_count == 1


def test_what_the_executor_raises_is_not_swallowed() -> None:
    class NoSandbox(Sandbox):
        async def execute(self, tool_call: ToolCall) -> ToolResult:
            raise ConnectionError(tool_call.id)

    with pytest.raises(ConnectionError):
        run(NoSandbox())


@given(st.sampled_from(AgentPhase), st.integers(0, 5))
def test_success_is_always_accepted(phase: AgentPhase, attempt: int) -> None:
    assert after_attempt(phase, attempt, ToolResult(0), RetryOptions()) == Accept()


@given(st.integers(0, 9), failures, st.integers(0, 5))
def test_a_failure_ends_in_a_wait_or_in_exhaustion_and_only_attempts_decide(
    attempt: int, code: int | None, max_attempts: int
) -> None:
    options = RetryOptions(max_attempts)

    decision = after_attempt(AgentPhase.GREEN, attempt, ToolResult(code), options)

    match decision:
        case RetryAfter(delay_ms):
            assert attempt + 1 < max_attempts
            assert delay_ms == 500 * 2**attempt
        case Exhausted(transient):
            assert attempt + 1 >= max_attempts
            assert transient == (code in range(124, 129))
        case Accept():
            pytest.fail("a failure is never accepted in GREEN")


@pytest.mark.unmeasured
def test_a_gate_calls_plain_code_and_only_the_protocol_and_some_faces_are_asynchronous() -> None:
    """The board in the terminal, the web, MCP and Temporal stand on libraries that are."""
    package = Path(lockgate.__file__).parent
    faces = [package / it for it in ("faces/tui", "faces/web", "faces/mcp", "adapters/engine")]
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if not any(path.is_relative_to(it) for it in faces)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.AsyncFunctionDef | ast.Await)
        or (isinstance(node, ast.Name) and node.id in {"Coroutine", "Awaitable"})
    }

    assert found == {"services/gates/command.py"}


@pytest.mark.parametrize(
    ("codes", "waits"), [((0,), []), ((1, 0), [500]), ((1, 1, 0), [500, 1000])]
)
def test_a_blocking_call_gets_the_protocols_attempts_and_waits(
    codes: tuple[int, ...], waits: list[float]
) -> None:
    left, waited = list(codes), list[float]()
    call = command.Blocking(lambda: ToolResult(left.pop(0)), waited.append)

    command.call_with_retry(call, CALL, AgentPhase.VERIFY, RetryOptions())

    assert (left, waited) == ([], waits)


def test_a_blocking_call_raises_what_the_protocol_raises() -> None:
    call = command.Blocking(lambda: ToolResult(1), lambda _milliseconds: None)

    with pytest.raises(SandboxRetryExhaustedError):
        command.call_with_retry(call, CALL, AgentPhase.VERIFY, RetryOptions())


@pytest.mark.parametrize("code", [None, 124, 125, 126, 127, 128, 129, 137, 143, 192])
def test_a_signal_or_its_surroundings_may_end_otherwise_when_it_runs_again(code) -> None:
    assert may_change(code)


@pytest.mark.parametrize("code", [1, 2, 5, 101, 123, 193, 255])
def test_a_failure_of_the_work_itself_ends_the_same_when_it_runs_again(code) -> None:
    assert not may_change(code)


@pytest.mark.parametrize(
    ("command", "tests", "line"),
    [
        (
            "pytest -q",
            ["a.py::test_b", "a.py::T::test_a[x y]", "a.py::test_a[z]"],
            "export PYTEST_ADDOPTS=\"${PYTEST_ADDOPTS:-} -k 'test_a or test_b'\"; pytest -q",
        ),
        ("npm test", ["a.js::adds"], "npm test"),
        ("pytest", ["a.py::it's; rm -rf x"], "pytest"),
    ],
)
def test_a_command_is_narrowed_to_tests_where_its_runner_can_be_told(command, tests, line) -> None:
    assert narrowed(command, tests) == line
