"""`lockgate events`: the log of everything that happened, and what happens now."""

import json
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from lockgate.core.model.facts import StoredEvent, event_line
from lockgate.core.model.task import ProjectId, TaskId
from lockgate.faces.cli.output import app, echo, here, is_far, json_option, named, terminal
from lockgate.faces.words import task as words

if TYPE_CHECKING:
    from lockgate.bootstrap import App

BATCH = 500
LAST = 2**63 - 1
Need = Mapping[str, object]


@click.command()
@click.argument("name", metavar="[ID]", required=False)
@click.option(
    "--since",
    default=0,
    type=click.IntRange(0, LAST),
    metavar="SEQ",
    help="Only events after this number.",
)
@click.option("--type", "pattern", default="*", metavar="GLOB", help="Only these, as 'session.*'.")
@click.option("--project", metavar="DIR", help="Only those of the project in this directory.")
@click.option("--follow", is_flag=True, help="Follow new events until Ctrl-C.")
@click.option("--needs", is_flag=True, help="With --follow: what comes to need you, and what went.")
@json_option
def events(**asked: object) -> None:
    """Show everything that happened, oldest first.

    With --json each event is one JSON object in a line. A session sees the events of its task.
    With --follow the orchestrator tells what happens as it happens; where none runs, one starts.
    """
    pattern, as_json = str(asked["pattern"]), bool(asked["as_json"])
    name, project = cast("str | None", asked["name"]), cast("str | None", asked["project"])
    since = cast("int", asked["since"])
    if asked["follow"]:
        _follow(name, project, None if asked["needs"] else since, pattern, as_json=as_json)
    elif asked["needs"]:
        raise click.UsageError("--needs goes with --follow; what needs you now: lockgate status")
    else:
        for event in _stored(app(), name, since, project):
            _print(event, pattern, as_json=as_json)


def _follow(
    name: str | None, project: str | None, since: int | None, pattern: str, *, as_json: bool
) -> None:
    """Without a number to begin with: what needs a human instead of events."""
    from lockgate.faces.cli.look.follow import told

    place = str(_place(project)) if project else None
    flags = ("--needs",) if since is None else ("--every",)
    for item in told(since=since, project=place, task=name, flags=flags):
        if "event" in item and since is not None:
            _print(StoredEvent(**item["event"]), pattern, as_json=as_json)
        for sign, needs in (("+", "came"), ("-", "went")):
            for need in item.get("live", {}).get("needs", {}).get(needs, ()):
                _print_need(sign, need, as_json=as_json)


def _stored(it: "App", name: str | None, since: int, project: str | None) -> Iterator[StoredEvent]:
    id = named(it, name) if name is not None or it.caller.session else None
    only = it.projects.here(_place(project)).id if project else None
    known = dict[TaskId, ProjectId | None]()
    while batch := it.views.events(id, since, BATCH):
        since = batch[-1].seq
        for event in batch:
            if only and event.task not in known:
                known[event.task] = it.views.project_id(event.task)
            if only is None or known[event.task] in {None, only}:
                yield event


def _place(project: str) -> Path:
    """A directory of another machine stands for the clone that its user is in."""
    return here() if is_far() else here() / project


def _print(event: StoredEvent, pattern: str, *, as_json: bool) -> None:
    """What is hashed is the line as a pipe gets it."""
    if fnmatchcase(event.type, pattern):
        _say(event_line(event) if as_json else words.event_text(event))


def _print_need(sign: str, need: Need, *, as_json: bool) -> None:
    whose = need.get("task") or need.get("project") or "all projects"
    text = f"{sign} {whose}  {need['kind']}  {words.one_line(str(need['ask']))}"
    facts = {"state": "came" if sign == "+" else "went", "need": need}
    _say(json.dumps(facts) if as_json else text)


def _say(line: str) -> None:
    echo(words.escaped(line) if terminal() is None and sys.stdout.isatty() else line)
