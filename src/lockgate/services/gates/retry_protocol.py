"""S1's retry protocol: a sandboxed call gets its attempts, with waits between them."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from lockgate.core.model.retry import (
    Accept,
    Exhausted,
    RetryAfter,
    RetryOptions,
    ToolCall,
    ToolResult,
    after_attempt,
)
from lockgate.core.model.task import AgentPhase
from lockgate.errors import SandboxRetryExhaustedError


class SandboxExecutor(Protocol):
    async def execute(self, tool_call: ToolCall) -> ToolResult:
        """Run the call from the same fresh tree each time.

        What an earlier attempt wrote must be gone: the protocol relies on it, or a retry would
        double the call's side effects.
        """
        ...


class EntropyRecorder(Protocol):
    def record(self, tool_call: ToolCall, phase: AgentPhase, output: str = "") -> object: ...


class SandboxRetryProtocol:
    """`delay` waits for that many milliseconds."""

    def __init__(
        self,
        executor: SandboxExecutor,
        entropy_detector: EntropyRecorder,
        options: RetryOptions | None = None,
        *,
        delay: Callable[[float], Awaitable[None]],
    ) -> None:
        self._executor = executor
        self._entropy = entropy_detector
        self._options = options or RetryOptions()
        self._delay = delay

    async def execute_with_retry(self, tool_call: ToolCall, phase: AgentPhase) -> ToolResult:
        """The first result that holds; SandboxRetryExhaustedError when no attempt gave one."""
        attempt = 0
        while True:
            result = await self._executor.execute(tool_call)
            match after_attempt(phase, attempt, result, self._options):
                case Accept():
                    return result
                case RetryAfter(delay_ms):
                    await self._delay(delay_ms)
                    attempt += 1
                case Exhausted(transient):
                    if not transient:
                        self._entropy.record(tool_call, phase, result.output)
                    raise SandboxRetryExhaustedError(
                        exit_code=result.exit_code,
                        attempt_count=attempt + 1,
                        phase=phase,
                        tool_call_id=tool_call.id,
                    )


class ToolProxy:
    """The one way for a tool call to reach the sandbox."""

    def __init__(self, protocol: SandboxRetryProtocol) -> None:
        self._protocol = protocol

    async def call(self, tool_call: ToolCall, phase: AgentPhase) -> ToolResult:
        return await self._protocol.execute_with_retry(tool_call, phase)


class Blocking:
    """Attempts and waits (in milliseconds) that block the thread in which they are called."""

    def __init__(self, attempt: Callable[[], ToolResult], delay: Callable[[float], object]) -> None:
        self._attempt, self._delay = attempt, delay

    async def execute(self, tool_call: ToolCall) -> ToolResult:  # noqa: ARG002 - it has its own
        return self._attempt()

    async def wait(self, milliseconds: float) -> None:
        self._delay(milliseconds)

    def record(self, tool_call: ToolCall, phase: AgentPhase, output: str = "") -> None:
        """Nothing: the entropy of a gate is seen in its findings, between evaluations."""


def call_with_retry(
    call: Blocking, tool_call: ToolCall, phase: AgentPhase, options: RetryOptions
) -> None:
    """The protocol for code that blocks; SandboxRetryExhaustedError when no attempt held.

    The protocol itself is asynchronous because its requirement asks for that signature (R41);
    here nothing is ever left to be scheduled, so its first step is also its last.
    """
    protocol = SandboxRetryProtocol(call, call, options, delay=call.wait)
    with suppress(StopIteration):
        ToolProxy(protocol).call(tool_call, phase).send(None)
