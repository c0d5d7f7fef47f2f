"""A step that was run, as people and programs read it."""

from lockgate.core.config.settings import Expect
from lockgate.core.lifecycle import binary_gate, gate_orchestrator
from lockgate.core.lifecycle.gate_orchestrator import Advance, Complete, Escalate, Stay
from lockgate.services.gates.steps import StepRun

TAIL = 4000  # characters of what it printed


def step_facts(ran: StepRun) -> dict[str, object]:
    tried, last = ran.tried, ran.tried.made[-1]
    moved = {} if ran.moved is None else gate_orchestrator.as_json(ran.moved)
    return {
        "task": ran.task.id,
        "node": tried.step.name,
        "phase": tried.step.phase,
        "command": tried.step.command,
        "expect": tried.step.expect,
        "commit": tried.commit,
        "exit_code": last.exit_code,
        "attempts": len(tried.made),
        "seconds": last.seconds,
        "sandbox": last.level,
        "output": _output(ran),
        "gate": binary_gate.as_json(tried.result),
        "failures": ran.task.step_failures,
        "steps_passed": ran.task.steps_passed,
        **moved,
    }


def step_text(ran: StepRun) -> str:
    tried, last = ran.tried, ran.tried.made[-1]
    ended = last.why or "killed" if last.exit_code is None else f"exit {last.exit_code}"
    wanted = " (a failure is wanted)" if tried.step.expect is Expect.FAIL else ""
    attempts = f" in {len(tried.made)} attempts" if len(tried.made) > 1 else ""
    lines = [
        f"step {tried.step.name} ({tried.step.phase}) on {tried.commit[:12]}: {tried.step.command}",
        _output(ran),
        f"{ended}{attempts}, {last.seconds:.1f} s{wanted}",
        _verdict(ran),
    ]
    return "\n".join(line for line in lines if line)


def _verdict(ran: StepRun) -> str:
    limit = ran.task.pinned.limits.step_failures if ran.task.pinned else 0
    match ran.moved:
        case Advance(following):
            return f"advance: the next step is {following}"
        case Complete():
            return "complete: all steps have passed"
        case Stay(reason):
            count = f"{ran.task.step_failures} of {limit}"
            return f"stay: {reason} (the worker's failures in a row: {count})"
        case Escalate():
            return f"escalate: {limit} failures in a row; a human is told, and this session ends"
        case None:
            word = "passed" if ran.tried.result.passed else "failed"
            return f"{word}; it is not the next step, so nothing moves"


def _output(ran: StepRun) -> str:
    last = ran.tried.made[-1]
    return f"{last.out.rstrip()}\n{last.err.rstrip()}".strip()[-TAIL:]
