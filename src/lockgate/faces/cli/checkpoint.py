"""`lockgate checkpoint`: what hooks call at the end of an agent's turn."""

import json
import math
import sys
from typing import cast

import click

from lockgate.core.lifecycle.moves import Move
from lockgate.core.model.task import Status, TaskId
from lockgate.errors import LockgateError, Refused, TransitionRefused, TurnDeclined
from lockgate.faces.cli.output import app, echo, json_option, named, show, terminal
from lockgate.services.task.signals import FINAL, INCREMENTAL, Said
from lockgate.services.task.views import task_facts

LARGEST = 1 << 20
TYPES = click.Choice([INCREMENTAL, "pre_compact", FINAL])


def _number(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    """A range lets `nan` through: it is neither below nor above."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is not a number from 0 to 1.")
    return value


@click.command()
@click.option("--task-id", "name", metavar="ID", help="Default: the session's own task.")
@click.option("--done", is_flag=True, help="The work is done: hand it on to be judged.")
@click.option("--type", "kind", type=TYPES, help="Default: final with --done, else incremental.")
@click.option("--summary", default="", help="What was done.")
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1),
    callback=_number,
    help="How sure the agent is, 0 to 1.",
)
@json_option
def checkpoint(
    *,
    name: str | None,
    done: bool,
    kind: str | None,
    summary: str,
    confidence: float | None,
    as_json: bool,
) -> None:
    """Keep where the work stands, with a snapshot of it; --done also hands it on.

    A Stop hook's JSON on stdin makes it answer as a hook does: it blocks the stop once where there
    is no fresh ## Handoff, and never fails.
    """
    it = app()
    id = named(it, name)
    hook = _hook()
    said = Said(
        type=kind or (FINAL if done else INCREMENTAL),
        summary=summary or str(hook.get("last_assistant_message") or ""),
        confidence=confidence,
    )
    if not done:
        noted = it.signals.checkpoint(id, it.caller, said)
        show(
            {"task": id, "sequence": noted.sequence},
            f"checkpoint {noted.sequence}",
            as_json=as_json,
        )
        return
    try:
        task = it.signals.move(id, Move(Status.AGENT_REVIEW), it.caller, said)
    except (TransitionRefused, TurnDeclined) as refusal:
        if not hook:
            raise
        _answer_hook(id, refusal, active=bool(hook.get("stop_hook_active")))
        return
    show(task_facts(task), f"{task.id} is {task.status}", as_json=as_json or bool(hook))


def _answer_hook(id: TaskId, refusal: LockgateError, *, active: bool) -> None:
    """Once the agent is asked to go on; a second time it may stop, and its exit is judged."""
    it = app()
    stopped_at = it.store.load(id).status
    if active or stopped_at is not Status.WORKING:
        return
    it.signals.checkpoint(id, it.caller, Said(type=INCREMENTAL))
    reason = f"{refusal.why}. {refusal.fix}"
    echo(json.dumps({"decision": "block", "reason": reason}))


def _hook() -> dict[str, object]:
    """What a hook wrote to stdin; nothing where it is no hook's."""
    it = terminal()
    if it:
        text = it.stdin
    else:
        text = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read(LARGEST)
    try:
        found: object = json.loads(text)
    except ValueError:
        return {}
    except RecursionError:
        raise Refused(
            "no checkpoint was kept",
            why="the JSON on stdin is nested too deeply to be read",
            fix="run it again with no input: lockgate checkpoint < /dev/null",
        ) from None
    if not isinstance(found, dict) or "hook_event_name" not in found:
        return {}
    return cast("dict[str, object]", found)  # the keys of a JSON object are texts
