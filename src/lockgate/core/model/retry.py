"""What follows a failed try: of a sandboxed call, of an iteration; and when failures repeat."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.model.findings import GateFeedback, Identity, identity, normalise
from lockgate.core.model.limits import (
    BACKOFF_MULTIPLIER,
    BASE_DELAY_MS,
    MAX_ATTEMPTS,
    RetryConfig,
    Strategy,
)
from lockgate.core.model.task import AgentPhase, IterationOutcome, IterationRecord, TaskId

# What an exit code says about a failure: the surroundings' fault, or the work's own.


EXIT_COMPILATION_ERROR = 1
EXIT_NETWORK_TIMEOUT = 124
EXIT_DOCKER_DAEMON_UNAVAILABLE = 125
TRANSIENT_EXITS = frozenset({EXIT_NETWORK_TIMEOUT, EXIT_DOCKER_DAEMON_UNAVAILABLE, 126, 127, 128})

ErrorClass = Literal["TransientError", "PersistentError"]


class ErrorClassifier:
    """Asked about failures only; a process that was killed (None) counts against the work."""

    @staticmethod
    def classify(exit_code: int | None) -> ErrorClass:
        return "TransientError" if exit_code in TRANSIENT_EXITS else "PersistentError"


# What follows one attempt.


RETRYABLE = frozenset({AgentPhase.GREEN, AgentPhase.VERIFY})


class ToolCall(Struct, frozen=True):
    """What to run. The id names this one call; the same command run again has another id."""

    id: str
    argv: tuple[str, ...]


class ToolResult(Struct, frozen=True):
    """How one attempt ended. No exit code means killed; `timed_out`, that our own limit did it."""

    exit_code: int | None
    output: str = ""
    timed_out: bool = False


class RetryOptions(Struct, frozen=True):
    max_attempts: int = MAX_ATTEMPTS
    base_delay_ms: int = BASE_DELAY_MS
    backoff_multiplier: float = BACKOFF_MULTIPLIER


class Accept(Struct, frozen=True):
    """The result goes to the caller as it is."""


class RetryAfter(Struct, frozen=True):
    delay_ms: float


class Exhausted(Struct, frozen=True):
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


KILLED = frozenset({137, 143})  # SIGKILL and SIGTERM: no program sends them to itself
SIGNALLED = range(129, 193)  # what a shell exits with when a signal ended its command


def may_change(exit_code: int | None) -> bool:
    """Whether running a gate's failed command again can end otherwise without any change: a signal
    ended it (None too), or its surroundings did not let it run.
    """
    return exit_code is None or exit_code in TRANSIENT_EXITS or exit_code in SIGNALLED


_TEST_NAME = re.compile(r"[A-Za-z_]\w*")


def narrowed(command: str, tests: Collection[str]) -> str:
    """The command for these tests alone, where the runner can be told so by its environment; else
    the command as it is. Only pytest can: by the names of the tests, others of the same name too.
    """
    names = sorted({it.rpartition("::")[2].partition("[")[0] for it in tests})
    if "pytest" not in command or not all(map(_TEST_NAME.fullmatch, names)):
        return command
    chosen = " or ".join(names)
    return f"export PYTEST_ADDOPTS=\"${{PYTEST_ADDOPTS:-}} -k '{chosen}'\"; {command}"


# Entropy: the same failure repeating, in one call or from one evaluation to the next.


REPEATS_OF_A_CALL = 3
REPEATS_OF_FINDINGS = 2


class Command(Struct, frozen=True):
    """What makes two calls the same one: the id differs each time, this does not."""

    argv: tuple[str, ...]
    phase: AgentPhase


class Streak(Struct, frozen=True):
    """How often in a row a command failed with this fingerprint."""

    fingerprint: str
    length: int = 1

    def followed_by(self, fingerprint: str) -> "Streak":
        same = fingerprint == self.fingerprint
        return Streak(fingerprint, self.length + 1 if same else 1)

    @property
    def triggers(self) -> bool:
        return self.length >= REPEATS_OF_A_CALL


class EntropyDetector:
    """Remembers each command's streak; rebuilt from the streaks that were stored."""

    def __init__(
        self, streaks: Mapping[Command, Streak] | None = None, *, workspaces: Sequence[str] = ()
    ) -> None:
        self._streaks = dict(streaks or {})
        self._workspaces = tuple(workspaces)

    def record(self, tool_call: ToolCall, phase: AgentPhase, output: str = "") -> bool:
        """Count a failure that used up its attempts; True when it is one repetition too many."""
        command = Command(tool_call.argv, phase)
        seen = fingerprint(output, self._workspaces)
        before = self._streaks.get(command)
        streak = before.followed_by(seen) if before else Streak(seen)
        self._streaks[command] = streak
        return streak.triggers

    @property
    def streaks(self) -> Mapping[Command, Streak]:
        return MappingProxyType(self._streaks)

    @property
    def triggered(self) -> bool:
        return any(streak.triggers for streak in self._streaks.values())


def fingerprint(output: str, workspaces: Sequence[str] = ()) -> str:
    # A lone surrogate, as undecodable output has them, must not stop us.
    return sha256(normalise(output, workspaces).encode(errors="surrogatepass")).hexdigest()


def findings_repeat(feedbacks: Sequence[GateFeedback]) -> bool:
    """Whether the last evaluations, oldest first, failed with the same set of findings."""
    last = feedbacks[-REPEATS_OF_FINDINGS:]
    return len(last) == REPEATS_OF_FINDINGS and len({_identities(it) for it in last}) == 1


def _identities(feedback: GateFeedback) -> frozenset[Identity]:
    """Of a failure without findings, its summary is all there is to compare."""
    found = frozenset(identity(feedback.gate_name, finding) for finding in feedback.findings)
    return found or frozenset({Identity(feedback.gate_name, "", normalise(feedback.summary))})


# S3's retry controller: whether to try again, and with which agent.


__all__ = ["IterationOutcome", "IterationRecord", "RetryController"]


class RetryController(Struct, frozen=True):
    task_id: TaskId
    config: RetryConfig
    history: tuple[IterationRecord, ...] = ()

    def should_retry(self) -> bool:
        """Whether another iteration may begin, by the number of the last one."""
        if not self.history:
            return self.config.max_iterations > 0
        last = self.history[-1]
        retryable = last.outcome is IterationOutcome.FAILED_WITH_RETRY
        return retryable and last.iteration < self.config.max_iterations

    def should_use_fresh_agent(
        self, *, context_exhausted: bool = False, call_repeats: bool = False
    ) -> bool:
        """`call_repeats` is the entropy of a call (S1); that of the findings is seen from here."""
        match self.config.strategy:
            case Strategy.SAME:
                return False
            case Strategy.FRESH:
                return True
            case Strategy.AUTO:
                return context_exhausted or call_repeats or self._agent_is_spent()

    def record_iteration(self, record: IterationRecord) -> "RetryController":
        return replace(self, history=(*self.history, record))

    def _agent_is_spent(self) -> bool:
        failed = tuple(self._failed_in_a_row())
        by_this_agent = [it for it in failed if it.agent_id == failed[0].agent_id]
        newest_first = [it.feedback for it in failed if it.feedback]
        return len(by_this_agent) >= self.config.fresh_after_failures or findings_repeat(
            newest_first[::-1]
        )

    def _failed_in_a_row(self) -> Iterator[IterationRecord]:
        """Newest first, back to the last pass."""
        for record in reversed(self.history):
            if record.outcome is IterationOutcome.PASSED:
                return
            yield record
