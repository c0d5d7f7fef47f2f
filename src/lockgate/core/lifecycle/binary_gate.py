"""S0's gate: exit code 0 passes, any other code fails, and so does a process that gave none."""

from typing import ClassVar, Literal

from msgspec import Struct

from lockgate.core.model.retry import TRANSIENT_EXITS

_PASSED, _FAILED = 0, 1


class GatePassed(Struct, frozen=True):
    passed: ClassVar[Literal[True]] = True


class NonZeroExit(Struct, frozen=True):
    exit_code: int
    passed: ClassVar[Literal[False]] = False
    reason: ClassVar[Literal["NON_ZERO_EXIT"]] = "NON_ZERO_EXIT"


class ProcessKilled(Struct, frozen=True):
    """Killed, or out of time: there is no exit code."""

    passed: ClassVar[Literal[False]] = False
    reason: ClassVar[Literal["PROCESS_KILLED"]] = "PROCESS_KILLED"


GateResult = GatePassed | NonZeroExit | ProcessKilled


def evaluate(exit_code: int | None) -> GateResult:  # REQ: 3_MCP-TAS-041
    match exit_code:
        case None:
            return ProcessKilled()
        case 0:
            return GatePassed()
        case int():
            return NonZeroExit(exit_code)


def as_json(result: GateResult) -> dict[str, object]:
    """The result in S0's shape, with S0's spelling of the keys."""
    match result:
        case GatePassed():
            return {"passed": True}
        case NonZeroExit(exit_code):
            return {"passed": False, "reason": result.reason, "exitCode": exit_code}
        case ProcessKilled():
            return {"passed": False, "reason": result.reason}


def expect_failure(exit_code: int | None, *, failed_tests: int | None = None) -> int | None:
    """The exit code to evaluate where a failing test is wanted (RED).

    Tests that ran and failed become 0, a pass becomes 1. What is no verdict of the tests stays as
    it is, so it never passes: a killed process (None, a negative code, or one over 128, as a shell
    reports a signal), 124 to 128, and a failure in which a report counted no failed test.
    """
    if exit_code == _PASSED:
        return _FAILED
    if exit_code is None or failed_tests == 0:
        return exit_code
    return _PASSED if 0 < exit_code < min(TRANSIENT_EXITS) else exit_code
