"""S1's decision: what follows one attempt of a sandboxed call. Others do the waiting."""

from dataclasses import dataclass

from lockgate.core.exits import ErrorClassifier
from lockgate.core.limits import BACKOFF_MULTIPLIER, BASE_DELAY_MS, MAX_ATTEMPTS
from lockgate.core.model import AgentPhase

RETRYABLE = frozenset({AgentPhase.GREEN, AgentPhase.VERIFY})


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What to run. The id names this one call; the same command run again has another id."""

    id: str
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """How one attempt ended. No exit code means killed; `timed_out`, that our own limit did it."""

    exit_code: int | None
    output: str = ""
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class RetryOptions:
    max_attempts: int = MAX_ATTEMPTS
    base_delay_ms: int = BASE_DELAY_MS
    backoff_multiplier: float = BACKOFF_MULTIPLIER


@dataclass(frozen=True, slots=True)
class Accept:
    """The result goes to the caller as it is."""


@dataclass(frozen=True, slots=True)
class RetryAfter:
    delay_ms: float


@dataclass(frozen=True, slots=True)
class Exhausted:
    """No further attempt; `transient` when the last one failed for its surroundings."""

    transient: bool


AttemptDecision = Accept | RetryAfter | Exhausted


def after_attempt(
    phase: AgentPhase, attempt: int, result: ToolResult, options: RetryOptions
) -> AttemptDecision:
    """What follows the attempt with this index, counted from 0. Our own time-out is not retried."""
    if result.exit_code == 0 or phase not in RETRYABLE:
        return Accept()
    transient = ErrorClassifier.classify(result.exit_code) == "TransientError"
    if result.timed_out or attempt + 1 >= options.max_attempts:
        return Exhausted(transient)
    return RetryAfter(options.base_delay_ms * options.backoff_multiplier**attempt)
