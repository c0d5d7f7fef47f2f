"""A task's steps: which one is next, who may run one, and how it is run."""

from enum import StrEnum

from lockgate.core.dag import TaskDAG
from lockgate.core.decision import Declined, Evidence
from lockgate.core.gates import CommandGate, Placement, Where
from lockgate.core.lifecycle import unheard
from lockgate.core.limits import Limits
from lockgate.core.model import Actor, Session, Status, Task
from lockgate.core.needs import Missing, steps_left
from lockgate.core.settings import Expect, Step


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
