"""The turn of a step that was run: S0's orchestrator decides, and the row keeps its count."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.config.settings import Expect, Step
from lockgate.core.lifecycle.binary_gate import GateResult
from lockgate.core.lifecycle.decision import Decision, Declined, EndSessions, Evidence, NotifyHuman
from lockgate.core.lifecycle.gate_orchestrator import (
    Advance,
    BinaryGateOrchestrator,
    Complete,
    Escalate,
    Stay,
    TransitionResult,
)
from lockgate.core.lifecycle.map import Missing, steps_left, unheard
from lockgate.core.lifecycle.moves import attempt_failed
from lockgate.core.lifecycle.transition import also, stay
from lockgate.core.model.dag import TaskDAG
from lockgate.core.model.events import StepFailed, StepPassed, StepsEscalated, UserEscalated
from lockgate.core.model.gates import CommandGate, Placement, Where
from lockgate.core.model.limits import Limits
from lockgate.core.model.task import Actor, Role, Session, Status, Task

# A task's steps: which one is next, who may run one, and how it is run.


class Standing(StrEnum):
    """Where a step stands; the word is what people read."""

    PASSED = "passed"
    NEXT = "next"
    WAITING = "waiting"


def standing(task: Task, node: str) -> Standing:
    if node in task.steps_passed:
        return Standing.PASSED
    return Standing.NEXT if steps_left(task)[:1] == (node,) else Standing.WAITING


def graph(task: Task) -> TaskDAG[str]:
    """What is left of the steps, in their order."""
    return TaskDAG[str].line(steps_left(task))


def choose(seen: Evidence, asked: str = "") -> str | Declined:
    """The step to run: the one that is asked for, else the next one; or why none is."""
    missing = _not_theirs(seen) or _not_there(seen, asked)
    if missing:
        return Declined(missing.why, missing.fix)
    return asked or steps_left(seen.task)[0]


def called_off(task: Task | None, session: Session | None) -> bool:
    """Whether a step that is running would count for nothing any more."""
    if task is None or task.status is not Status.WORKING:
        return True
    return session is not None and session.generation != task.generation


def as_gate(step: Step, limits: Limits) -> CommandGate:
    """A failure that is wanted is not tried again; S1's attempts are for one that is not."""
    return CommandGate(
        name=step.name,
        place=Placement(serial=True, on=(Where.CHANGE,)),
        command=step.command,
        attempts=1 if step.expect is Expect.FAIL else limits.call_attempts,
    )


def _not_theirs(seen: Evidence) -> Missing | None:
    task = seen.task
    if seen.actor is Actor.REVIEWER:
        return Missing("steps are the worker's, and this is a reviewer", "leave them to the worker")
    if task.status is not Status.WORKING:
        why = f"steps are run while a task is working, and it is {task.status}"
        return Missing(why, f"lockgate task why {task.id}")
    return unheard(seen)


def _not_there(seen: Evidence, asked: str) -> Missing | None:
    names = seen.rules.steps
    if not names:
        fix = 'have some: steps = "tdd" in .lockgate/config.toml, for tasks that start after that'
        return Missing("it has no steps", fix)
    if asked and asked not in names:
        return Missing(f"it has no step {asked!r}", f"name one of {', '.join(names)}")
    if not asked and not steps_left(seen.task):
        fix = f"hand it on: lockgate task complete {seen.task.id}"
        return Missing("all of its steps have passed", fix)
    return None


S = Status
NEVER = 1 << 30  # failures in a row, for a run that escalates to nobody
Told = StepFailed | StepsEscalated
EVENTS: dict[str, type[Told]] = {"GATE_FAILED": StepFailed, "ESCALATION_TRIGGERED": StepsEscalated}


class Ran(Struct, frozen=True):
    """A step, the commit it was run on, and what its exit comes to."""

    node: str
    commit: str
    result: GateResult


class Stepped(Struct, frozen=True):
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
