"""A command gate: its attempts, each on the same tree, and what the last one's reports say.

The retry protocol gives a sandboxed call its attempts, with waits between them.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.core.model.findings import Finding, Priority
from lockgate.core.model.gates import CommandGate
from lockgate.core.model.limits import Limits
from lockgate.core.model.results import (
    FAILING,
    NOT_STARTED,
    Bad,
    Broken,
    Failed,
    Good,
    NoJudgement,
    Outcome,
    Passed,
    Proof,
    ReportRead,
    SingleGateResult,
    Unreadable,
    believed,
)
from lockgate.core.model.retry import (
    KILLED,
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
from lockgate.errors import SandboxRetryExhaustedError
from lockgate.ports import Attempt, Cut, GateRun, GateRuns

TAIL = 4000


class Patience(Struct, frozen=True):
    """How to wait between attempts, in milliseconds, and whether there is still any use in it."""

    delay: Callable[[float], object]
    cancelled: Callable[[], bool]


class Tries(Struct):
    """The attempts of one gate: the same arguments and the same tree each time."""

    gates: GateRuns
    gate: CommandGate
    run: GateRun
    patience: Patience
    made: list[Attempt] = field(default_factory=list[Attempt])

    def attempt(self) -> ToolResult:
        """A try that was called off ends the attempts, as our own time-out does."""
        if self.made:
            self.gates.read(self.made[-1], self.gate.report)  # what the last one left goes
        attempt = self.gates.attempt(self.gate, self.run, self.patience.cancelled)
        self.made.append(attempt)
        over = attempt.cut in {Cut.DEADLINE, Cut.CANCELLED} or self._is_settled(attempt)
        return ToolResult(attempt.exit_code, attempt.out, timed_out=over)

    def _is_settled(self, attempt: Attempt) -> bool:
        """The same command would fail in the same way, and nobody asks for another try."""
        asked = len(self.made) < self.gate.attempts
        return not asked and attempt.cut is None and not may_change(attempt.exit_code)


def judge_command(
    gates: GateRuns,
    gate: CommandGate,
    run: GateRun,
    limits: Limits,
    patience: Patience,
    flaky: Callable[[], frozenset[str]] = frozenset[str],
) -> SingleGateResult:
    """`flaky` gives the tests that pass and fail on base by themselves."""
    tries = Tries(gates, gate, run, patience)
    all_tries(tries, limits)
    return _result(tries, flaky)


def all_tries(
    tries: Tries, limits: Limits, phase: AgentPhase = AgentPhase.VERIFY
) -> tuple[Attempt, ...]:
    """S1's protocol to its end: the last attempt is the one that counts.

    A gate's failure is tried again only where that can change something, or as often as it asks.
    """
    gate, run = tries.gate, tries.run
    most = max(gate.attempts, limits.call_attempts)
    options = RetryOptions(most, limits.call_base_delay_ms, limits.call_backoff)
    call = ToolCall(f"{run.commit}:{gate.name}", (gate.command,))
    with suppress(SandboxRetryExhaustedError):  # what the last attempt says is the gate's result
        call_with_retry(Blocking(tries.attempt, tries.patience.delay), call, phase, options)
    return tuple(tries.made)


def unjudged(last: Attempt) -> str | None:
    """Why an attempt says nothing about the work; None where it does."""
    if last.cut not in {None, Cut.DEADLINE}:
        return last.why
    if last.exit_code in NOT_STARTED:
        return f"its command cannot be started: {tail(last.err)}"
    return None


def _result(tries: Tries, flaky: Callable[[], frozenset[str]]) -> SingleGateResult:
    gate, made, last = tries.gate, tries.made, tries.made[-1]
    read = tries.gates.read(last, gate.report)
    if last.cut is Cut.DEADLINE:
        return Failed(gate.name, (_finding(last.why, last),))
    broken = unjudged(last)
    if broken is not None:
        return Broken(gate.name, broken, passing=last.cut is Cut.BOX)
    if last.exit_code is None or last.exit_code in KILLED:
        return _killed(gate, last)
    match believed(last.exit_code, read, expected_some=False):
        case Good(tests_passed, findings):
            proof = _proof(gate, tries.run, last, tests_passed)
            return Passed(gate.name, proof, (*findings, *_flaky(made)))
        case Bad(why, findings):
            return _passed_again(tries, read, flaky) or Failed(
                gate.name, findings or (_finding(f"`{gate.command}`: {why}", last),)
            )
        case NoJudgement(why):
            return Broken(gate.name, why)


def _killed(gate: CommandGate, last: Attempt) -> Broken:
    """Another process ended the command, perhaps because memory was short: nobody is blamed yet."""
    how = "was killed" if last.exit_code is None else f"exited {last.exit_code}"
    why = f"`{gate.command}` was ended by a signal from outside (the command {how})"
    return Broken(gate.name, why, passing=True, if_repeated=(_finding(why, last),))


def _passed_again(
    tries: Tries, first: ReportRead | Unreadable, flaky: Callable[[], frozenset[str]]
) -> Passed | None:
    """Where base's own runs show that every failed test is flaky, those alone run once more."""
    if isinstance(first, Unreadable) or not first.complete or not first.tests:
        return None
    failed = frozenset(it.id for it in first.tests if it.outcome in FAILING)
    if not failed or not failed <= flaky():
        return None
    gate = tries.gate
    again = replace(gate, command=narrowed(gate.command, failed))
    attempt = tries.gates.attempt(again, tries.run, tries.patience.cancelled)
    read = tries.gates.read(attempt, gate.report)
    belief = believed(attempt.exit_code, read, expected_some=True)
    if attempt.cut is not None or not isinstance(belief, Good):
        return None
    again_passed = frozenset(belief.tests_passed or ())
    if not failed <= again_passed:
        return None
    passed = (it.id for it in first.tests if it.outcome is Outcome.PASSED or it.id in failed)
    proof = _proof(gate, tries.run, attempt, tuple(passed))
    names = ", ".join(sorted(failed))
    told = f"FLAKY, on base too: passed only when they ran once more: {names}"
    return Passed(gate.name, proof, (Finding(Priority.P2_MINOR, told),))


def _proof(
    gate: CommandGate, run: GateRun, last: Attempt, tests_passed: tuple[str, ...] | None
) -> Proof:
    return Proof(
        ran=(gate.command,),
        commit=run.commit,
        tree=run.tree,
        config_hash=run.config_hash,
        sandbox=last.level,
        seconds=last.seconds,
        exit_code=last.exit_code,
        tests_passed=tests_passed,
    )


def _flaky(made: Sequence[Attempt]) -> tuple[Finding, ...]:
    if len(made) == 1:
        return ()
    return (Finding(Priority.P2_MINOR, f"FLAKY: it passed only in attempt {len(made)}"),)


def _finding(how: str, last: Attempt) -> Finding:
    said = tail(f"{last.out}\n{last.err}")
    return Finding(Priority.P1_MAJOR, f"{how}:\n{said}" if said else how)


def tail(text: str) -> str:
    return text.strip()[-TAIL:]


# The retry protocol: a sandboxed call gets its attempts, with waits between them.


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
