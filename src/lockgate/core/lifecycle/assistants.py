"""What an assistant may carry to a human for a yes or a no, and what it may not.

An assistant is a program that speaks for a person. It is not that person: each answer is asked of
the human in a form, and what a human must look at with their own eyes is not answered so at all.
"""

import re

from lockgate.core.lifecycle.decision import Declined
from lockgate.core.lifecycle.records import Unacceptable
from lockgate.core.model.task import GateKind, Task

SHOWN = 3  # files that a refusal names
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@/-]{0,63}")


def check_name(name: str) -> Unacceptable | None:
    if _NAME.fullmatch(name):
        return None
    fix = "name it as it names itself, for example claude-code"
    return Unacceptable(f"{name!r} is no name that an assistant can have", fix)


def only_in_person(task: Task, command: str) -> Declined | None:
    """Why no form may ask this: the change has protected files, or a gate asks about tests."""
    fix = f"a human looks at it and runs: {command}"
    if task.protected:
        more = f" and {len(task.protected) - SHOWN} more" if len(task.protected) > SHOWN else ""
        files = ", ".join(task.protected[:SHOWN])
        return Declined(f"it changes files that a human must look at: {files}{more}", fix)
    if task.waiting in _differential(task):
        why = f"gate {task.waiting} asks about tests, which a human must look at"
        return Declined(why, fix)
    return None


def not_granted(assistant: str, command: str) -> Declined:
    why = f"the assistant {assistant!r} is not the human, and no human lets it ask for a yes"
    fix = f"a human runs: {command} (or lets it ask: lockgate trust --assistant {assistant!r})"
    return Declined(why, fix)


def cannot_ask(assistant: str, command: str) -> Declined:
    why = f"the assistant {assistant!r} cannot show a form that asks its human"
    return Declined(why, f"a human runs: {command}")


def said_no(command: str) -> Declined:
    return Declined("the human did not say yes to it", f"leave it, or a human runs: {command}")


def _differential(task: Task) -> frozenset[str]:
    gates = task.pinned.gates if task.pinned else ()
    return frozenset(it.name for it in gates if it.kind is GateKind.DIFFERENTIAL)
