"""What people answer a gate that waits for one: yes, no with what is wrong, a word in between."""

import re
from typing import Any

import click

from lockgate.bootstrap import App
from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.task import Task, TaskId
from lockgate.faces import words
from lockgate.faces.cli.output import app, json_option, named, show
from lockgate.services.task.views import files_in_order, task_facts

Files = tuple[str, ...]
# The first `:NUMBER=` ends the name of the file.
_PLACED = re.compile(r"(?P<file>.+?):(?P<line>[1-9][0-9]{0,8})=(?P<text>.+)", re.DOTALL)


class PlacedFinding(click.ParamType[Finding]):
    """What is wrong at one place, as FILE:LINE=TEXT."""

    name = "finding"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Finding:
        found = _PLACED.fullmatch(str(value))
        if found is None or not found["text"].strip():
            told = f"{value!r} is not FILE:LINE=TEXT, for example app.py:12='This loops.'"
            return self.fail(told, param, ctx)
        where = Location(found["file"], int(found["line"]))
        return Finding(Priority.P1_MAJOR, found["text"].strip(), where)


ID = click.argument("name", metavar="ID")
PATCH = click.option(
    "--patch",
    default="",
    metavar="P",
    help="Only the change that begins so, as `lockgate task show` has it.",
)


@click.command()
@ID
@click.option("-m", "--message", default="", metavar="TEXT", help="What you have to say of it.")
@PATCH
@json_option
def approve(*, name: str, message: str, patch: str, as_json: bool) -> None:
    """Say yes to the gate of a task that waits for a human; it goes on.

    The yes is bound to the change: it holds for the same one wherever it comes back, and for no
    other. See what you say yes to by lockgate task show and lockgate diff.
    """
    it = app()
    shown, files = _shown(it, named(it, name))
    task = it.approvals.approve(shown.id, message, patch or shown.patch, it.caller)
    _tell(shown, task, files, as_json=as_json)


@click.command()
@ID
@click.argument("places", nargs=-1, metavar="[FILE:LINE=TEXT]...", type=PlacedFinding())
@click.option("-m", "--message", required=True, metavar="TEXT", help="What is wrong with it.")
@PATCH
@json_option
def reject(
    *, name: str, places: tuple[Finding, ...], message: str, patch: str, as_json: bool
) -> None:
    """Say no to the gate of a task that waits for a human; its agent gets what you say.

    A change that has passed its gates and waits to land is taken back as well.
    """
    it = app()
    shown, files = _shown(it, named(it, name))
    task = it.approvals.reject(shown.id, message, places, patch or shown.patch, it.caller)
    _tell(shown, task, files, as_json=as_json)


@click.command()
@ID
@click.option("-m", "--message", required=True, metavar="TEXT", help="What you have to say of it.")
@json_option
def comment(*, name: str, message: str, as_json: bool) -> None:
    """Say something of a change that waits for a human, and leave it waiting."""
    it = app()
    shown, files = _shown(it, named(it, name))
    _tell(shown, it.approvals.comment(shown.id, message, it.caller), files, as_json=as_json)


def _shown(it: App, id: TaskId) -> tuple[Task, Files]:
    """The task as it is, and the files of the change that is judged."""
    task = it.store.load(id)
    if not task.candidate:
        return task, ()
    change = it.workspaces.change(it.store.project(task.project), task, task.candidate)
    return task, files_in_order(task, change.files)


def _tell(shown: Task, task: Task, files: Files, *, as_json: bool) -> None:
    text = f"{words.change_text(shown, files)}\n{words.moved_text(task)}"
    show({**task_facts(task), "files": files}, text, as_json=as_json)
