"""What agents and their hooks send: `lockgate review` and `lockgate checkpoint`."""

import json
import math
import sys
from typing import cast

import click

from lockgate.core.lifecycle.moves import Move
from lockgate.core.model.task import Status, TaskId
from lockgate.core.prompts.worker import asks_to_hand_in
from lockgate.errors import LockgateError, Refused, TransitionRefused, TurnDeclined, WordsWaiting
from lockgate.faces.cli.output import app, echo, json_option, named, show, terminal
from lockgate.services.task.sessions import FINAL, INCREMENTAL, Said
from lockgate.services.task.views import task_facts

LARGEST = 1 << 20

SHAPE = """{"verdict": "PASS", "summary": "...", "findings": [{"priority": "P1",
"file": "a.py", "line": 3, "issue": "...", "suggestion": "..."}]}"""


@click.group()
def review() -> None:
    """Hand in a review."""


@review.command(epilog=f"The document: {SHAPE}")
@click.argument("name", metavar="[ID]", required=False)
@click.option(
    "--file", "path", required=True, metavar="FILE", help="The JSON document; - is stdin."
)
@json_option
def submit(*, name: str | None, path: str, as_json: bool) -> None:
    """Hand in a review: one JSON document with the verdict and all findings, at once.

    Only a reviewer's session may, and once. The verdict that counts is computed: any P0 or P1 is a
    FAIL. A document that is not taken changes nothing.
    """
    it = app()
    id = named(it, name)
    task = it.signals.review(id, _text(path), it.caller)
    show(task_facts(task), f"handed in; {task.id} is {task.status}", as_json=as_json)


def _text(path: str) -> str:
    """At most a megabyte. A file is read by the client in the session, which sends it as `-`."""
    if path != "-":
        why = "only - is taken as its file here: what it names may be another's"
        fix = "lockgate review submit --file - < FILE"
        raise Refused("nothing was handed in", why=why, fix=fix)
    content = _stdin()
    if len(content) > LARGEST:
        raise Refused("nothing was handed in", why="it is more than 1 MB", fix="say what matters")
    return content.decode("utf-8", "replace")


def _stdin() -> bytes:
    it = terminal()
    if it:
        return it.stdin.encode("utf-8", "replace")
    return b"" if sys.stdin is None else sys.stdin.buffer.read(LARGEST + 1)


# `lockgate checkpoint`: what hooks call at the end of an agent's turn.


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
    """Save the state of the work; --done also hands it in.

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
    except WordsWaiting as words:
        if not hook:
            raise
        _block(f"{words.why}\n\n{words.fix}")
        return
    except (TransitionRefused, TurnDeclined) as refusal:
        if not hook:
            raise
        if not hook.get("stop_hook_active"):
            _hold_up(id, refusal, said)
        return
    show(task_facts(task), f"{task.id} is {task.status}", as_json=as_json or bool(hook))


def _hold_up(id: TaskId, refusal: LockgateError, said: Said) -> None:
    """Once the agent is asked to go on; a second time it may stop, and its exit is judged."""
    it = app()
    try:
        it.attendance.ask(id, said.summary, it.caller)
    except TurnDeclined:
        return
    it.signals.checkpoint(id, it.caller, Said(type=INCREMENTAL))
    _block(asks_to_hand_in(refusal.why))


def _block(reason: str) -> None:
    """The answer by which a Stop hook lets its agent go on."""
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
