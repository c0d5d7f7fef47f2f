"""One step of a task's DAG: run it, evaluate its exit, and let that result alone move the run."""

from dataclasses import dataclass

from lockgate.core.binary_gate import evaluate, expect_failure
from lockgate.core.gate_orchestrator import BinaryGateOrchestrator, TransitionResult
from lockgate.core.retry import ToolCall
from lockgate.core.settings import Expect, Step
from lockgate.errors import SandboxRetryExhaustedError
from lockgate.services.patience import ToolProxy


@dataclass(frozen=True, slots=True)
class Steps:
    """One orchestration run; its count of failures is the orchestrator's."""

    proxy: ToolProxy
    orchestrator: BinaryGateOrchestrator

    async def run(self, step: Step, call: ToolCall) -> TransitionResult:
        try:
            exit_code = (await self.proxy.call(call, step.phase)).exit_code
        except SandboxRetryExhaustedError as exhausted:
            exit_code = exhausted.exit_code
        if step.expect is Expect.FAIL:
            exit_code = expect_failure(exit_code)
        return self.orchestrator.transition(step.name, evaluate(exit_code))
