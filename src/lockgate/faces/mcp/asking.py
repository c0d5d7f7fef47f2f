"""A yes is a human's: how an assistant's client asks its human before something is approved.

In 2026-07-28 the call is answered with the question, and comes back with what the human said; in
2025-11-25 the question is a request of its own. A client that cannot ask is refused.
"""

import json
import secrets
import time
from hashlib import sha256
from typing import Any

import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lockgate.core.lifecycle.assistants import said_no
from lockgate.core.model.task import TaskId
from lockgate.faces.mcp.calls import Desk
from lockgate.faces.words import task as words
from lockgate.services.task.assistants import Question, Wanted
from lockgate.services.task.coordinator import refused

Context = ServerRequestContext[Any, Any]
KEY = "lockgate-yes"  # the question's name in a result that asks
HOLDS = 900.0  # seconds that a question waits for its answer
SHOWN = 30  # files that the form names
HOW = "asked by form"
MOST = 100  # questions that wait at once, of one connection


class Form(BaseModel):
    """What the human fills in."""

    model_config = ConfigDict(extra="ignore", strict=True)

    confirm: bool = Field(
        title="Do it", description="Yes: it is done in your name. No: nothing is."
    )


class Asked(Struct):
    """The questions of one connection that wait for an answer; each is good for one."""

    waiting: dict[str, tuple[str, float]] = field(default_factory=dict[str, tuple[str, float]])

    def ask(self, digest: str) -> str:
        token, now = secrets.token_urlsafe(24), time.monotonic()
        kept = {key: it for key, it in self.waiting.items() if it[1] > now}
        self.waiting = dict(list(kept.items())[-MOST:])
        self.waiting[token] = (digest, now + HOLDS)
        return token

    def answers(self, token: str | None, digest: str) -> bool:
        """Whether this very question was asked and not answered yet."""
        found = self.waiting.pop(token or "", ("", 0.0))
        return found[0] == digest and found[1] > time.monotonic()


async def confirmed(
    asked: Asked,
    desk: Desk,
    ctx: Context,
    params: types.CallToolRequestParams,
    wanted: tuple[TaskId, Wanted],
) -> Desk | types.InputRequiredResult:
    """The desk as the human's own, once they have said yes; Refused where they have not."""
    id, it = wanted
    question = await anyio.to_thread.run_sync(_question, desk, id, it, can_ask(ctx))
    message = form_text(desk.assistant, it, question)
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        answer: object = await _elicited(ctx, message)
    else:
        digest = _digest(params, message)
        if not asked.answers(params.request_state, digest):
            form = types.ElicitRequest(params=_form(message))
            return types.InputRequiredResult(
                input_requests={KEY: form}, request_state=asked.ask(digest)
            )
        answer = (params.input_responses or {}).get(KEY)
    if not _is_yes(answer):
        raise refused(id, said_no(it.command), it.what)
    return replace(desk, how=HOW)


def _question(desk: Desk, id: TaskId, wanted: Wanted, asks: bool) -> Question:  # noqa: FBT001 - run in a thread, by place
    it = desk.app
    return it.assistants.question(id, wanted, desk.assistant, it.caller, asks=asks)


def can_ask(ctx: Context) -> bool:
    """A bare `elicitation` is what clients declared before there were kinds of it: forms."""
    declared = ctx.session.client_capabilities
    found = declared.elicitation if declared else None
    return found is not None and (found.form is not None or found.url is None)


def form_text(assistant: str, wanted: Wanted, question: Question) -> str:
    """What the human reads: the task, the change, its files, and who asks."""
    task, files = question.task, question.files
    more = [f"  and {len(files) - SHOWN} more"] if len(files) > SHOWN else []
    return "\n".join(
        (
            f"{words.one_line(assistant)} asks you: {words.one_line(wanted.command)}",
            f"task {task.id}: {words.one_line(task.summary)}",
            f"change {task.patch[:12]}, {len(files)} files:",
            *(f"  {words.one_line(it)}" for it in files[:SHOWN]),
            *more,
            f"read it first: lockgate diff {task.id}",
        )
    )


async def _elicited(ctx: Context, message: str) -> types.ElicitResult | None:
    """None where the client answers with an error: it is no yes."""
    form = _form(message)
    try:
        return await ctx.session.elicit_form(form.message, form.requested_schema, ctx.request_id)
    except (MCPError, ValidationError):
        return None


def _form(message: str) -> types.ElicitRequestFormParams:
    return types.ElicitRequestFormParams(message=message, requested_schema=Form.model_json_schema())


def _is_yes(answer: object) -> bool:
    if not isinstance(answer, types.ElicitResult) or answer.action != "accept":
        return False
    try:
        return Form.model_validate(answer.content or {}).confirm
    except ValidationError:
        return False


def _digest(params: types.CallToolRequestParams, message: str) -> str:
    """Of the call and the question together: an answer counts for no other."""
    asked = json.dumps([params.name, params.arguments, message], sort_keys=True, default=str)
    return sha256(asked.encode(errors="replace")).hexdigest()
