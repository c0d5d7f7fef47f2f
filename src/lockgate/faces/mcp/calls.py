"""One call of a tool: who calls from where, and how a tool says what it needs of them."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel

from lockgate.bootstrap import App
from lockgate.core.model.task import Actor, TaskId
from lockgate.errors import Refused
from lockgate.faces.mcp.inputs import Input
from lockgate.faces.mcp.news import News
from lockgate.faces.words.task import one_line
from lockgate.services.task.assistants import Wanted

HOW = "by MCP"
LONGEST_NAME = 64  # characters of an assistant's name that are kept
Facts = Mapping[str, object]


class Part(StrEnum):
    """As whom somebody calls: a person's assistant, or an agent by its session's token."""

    OPERATOR = "operator"
    WORKER = "worker"
    REVIEWER = "reviewer"


PARTS = {
    Actor.HUMAN: Part.OPERATOR,
    Actor.WORKER: Part.WORKER,
    Actor.REVIEWER: Part.REVIEWER,
}


class Desk(Struct, frozen=True, kw_only=True):
    """What a call works with: the services for its caller, and the directory they stand in."""

    app: App
    directory: Path
    where: Callable[[], Path] | None = None  # on another machine: what stands for the directory
    assistant: str = ""  # the name that the client gives itself
    news: News
    how: str = HOW  # a human's act came about

    def acting(self) -> "Desk":
        """For what is done, and kept with a name: the human's, and the assistant's that did it."""
        caller = self.app.caller
        if caller.actor is not Actor.HUMAN or not self.assistant:
            return self
        by = " via ".join(it for it in (caller.by, one_line(self.assistant)[:LONGEST_NAME]) if it)
        return replace(self, app=replace(self.app, caller=replace(caller, by=by, how=self.how)))

    @property
    def part(self) -> Part:
        return PARTS[self.app.caller.actor]

    def task(self, name: str) -> TaskId:
        return self.app.projects.task_named(name, self.app.caller)

    def mine(self) -> TaskId:
        """The task of the session that calls."""
        return self.app.projects.task_here(self.directory, self.app.caller)


class Tool(Struct, frozen=True, kw_only=True):
    """A tool, who may call it, and the command line that does the same."""

    name: str
    says: str
    parts: frozenset[Part]
    command: tuple[str, ...]
    takes: type[Input]
    gives: type[BaseModel]
    does: Callable[[Desk, Any], Facts]  # gets what `takes` made of the arguments
    wants: Callable[[Desk, Any], tuple[TaskId, Wanted] | None] = lambda _desk, _asked: None
    """The yes or no that it needs of a human first; None where it needs none."""
    reads: bool = False  # it changes nothing
    destroys: bool = False
    again: bool = False  # a second call with the same input changes nothing more


def unknown(name: str, known: list[str]) -> Refused:
    from lockgate.errors import did_you_mean

    meant = did_you_mean(name, known)
    why = f"no tool that you may call has this name. {meant}".strip()
    return Refused(f"{name[:80]!r} was not called", why=why, fix=f"call one of {', '.join(known)}")
