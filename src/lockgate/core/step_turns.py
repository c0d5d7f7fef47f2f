"""The turn of a step that was run: S0's orchestrator decides, and the row keeps its count."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lockgate.core.arrival import also, stay
from lockgate.core.binary_gate import GateResult
from lockgate.core.decision import Decision, Declined, Evidence
from lockgate.core.effects import EndSessions, NotifyHuman
from lockgate.core.gate_orchestrator import (
    Advance,
    BinaryGateOrchestrator,
    Complete,
    Escalate,
    Stay,
    TransitionResult,
)
from lockgate.core.model import Actor, Role, Status
from lockgate.core.step_events import StepFailed, StepPassed, StepsEscalated, UserEscalated
from lockgate.core.steps import Standing, choose, graph, standing
from lockgate.core.turns import attempt_failed

S = Status
NEVER = 1 << 30  # failures in a row, for a run that escalates to nobody
Told = StepFailed | StepsEscalated
EVENTS: dict[str, type[Told]] = {"GATE_FAILED": StepFailed, "ESCALATION_TRIGGERED": StepsEscalated}


@dataclass(frozen=True, slots=True)
class Ran:
    """A step, the commit it was run on, and what its exit comes to."""

    node: str
    commit: str
    result: GateResult


@dataclass(frozen=True, slots=True)
class Stepped:
    """What the turn does, and S0's word for it."""

    decision: Decision
    moved: TransitionResult


def stepped(seen: Evidence, ran: Ran) -> Stepped | Declined:
    """What the next step's exit does to its task; no other step's does anything."""
    node, task = choose(seen, ran.node), seen.task
    if isinstance(node, Declined):
        return node
    if standing(task, node) is not Standing.NEXT:
        return Declined(f"step {node} is not the next one", f"lockgate step list {task.id}")
    said: list[Mapping[str, object]] = []
    run = _run(seen, said)
    moved = run.transition(node, ran.result)
    failures = run.consecutive_failures
    told = tuple(
        EVENTS[str(entry["event"])](node, str(entry["reason"]), failures) for entry in said
    )
    return Stepped(_decided(seen, ran, moved, told, failures), moved)


def counts(seen: Evidence) -> bool:
    """A human's failures, and those of one who sits in the agent's place, end no agent."""
    return seen.actor is not Actor.HUMAN and not seen.task.taken_over


def _run(seen: Evidence, said: list[Mapping[str, object]]) -> BinaryGateOrchestrator:
    """The worker's run as its row has it; a human's is one of its own."""
    limit = seen.rules.limits.step_failures if counts(seen) else NEVER
    failures = seen.task.step_failures if counts(seen) else 0
    return BinaryGateOrchestrator(
        graph(seen.task), said.append, limit, consecutive_failures=failures
    )


def _decided(
    seen: Evidence, ran: Ran, moved: TransitionResult, told: tuple[Told, ...], failures: int
) -> Decision:
    task = seen.task
    match moved:
        case Advance() | Complete():
            done = (*task.steps_passed, ran.node)
            passed = replace(task, steps_passed=done, step_failures=0, escalated="")
            return also(stay(seen, passed), StepPassed(ran.node, ran.commit))
        case Stay():
            kept = failures if counts(seen) else task.step_failures
            return also(stay(seen, replace(task, step_failures=kept)), *told)
        case Escalate():
            return _escalated(seen, ran.node, told, failures)


def _escalated(seen: Evidence, node: str, told: tuple[Told, ...], failures: int) -> Decision:
    """One failed attempt; the worker goes, a human hears of it and a fresh worker comes."""
    why = f"step {node} failed {failures} times in a row"
    task = replace(seen.task, step_failures=failures, escalated=why)
    decision = attempt_failed(replace(seen, task=task, actor=Actor.ORCHESTRATOR), why)
    events = (*told, UserEscalated(node, why, failures), *decision.events)
    if decision.task.status is not S.WORKING:  # the pause, or the budget's end, tells a human
        return replace(decision, events=events)
    ends = (EndSessions(task.rev, Role.WORKER), NotifyHuman(S.WORKING, why))
    return replace(decision, events=events, effects=(*ends, *decision.effects))
