"""What operators' assistants read, as the services give it: rows, pages, findings, events."""

from lockgate.bootstrap.team import root_of_clone
from lockgate.core.config.clones import Clone
from lockgate.core.model.facts import json_facts
from lockgate.core.model.findings import Finding
from lockgate.core.model.task import TaskId
from lockgate.errors import NoSuchTask
from lockgate.faces.mcp import answers, inputs
from lockgate.faces.mcp.calls import Desk, Facts
from lockgate.faces.words import task as words
from lockgate.ports import Project
from lockgate.services.task.boards import BoardFilter

BRIEF = ("key", "kind", "task", "project", "ask", "since", "blocks", "patch")


def board(desk: Desk, asked: inputs.ListTasks) -> Facts:
    """As many rows as fit; where not even all needs do, those are told in brief."""
    which = BoardFilter(
        projects=frozenset([project(desk, asked.project).id] if asked.project else ()),
        statuses=frozenset(asked.status),
        text=asked.text or "",
        needs=asked.needs,
    )
    limit, fleet = asked.limit, _fleet(desk)
    while True:
        facts = desk.app.boards.board(which, asked.after, limit).facts() | fleet
        if answers.fits(facts):
            return facts
        if limit == 1:
            return _in_brief(facts)
        limit //= 2


def _fleet(desk: Desk) -> dict[str, object]:
    """The hosts, who leads and what waits, as `status` has them; where one machine works, nothing.

    Where there are too many of them, the rest of the board is shown without.
    """
    fleet = desk.app.fleet()
    found: dict[str, object] = {"fleet": json_facts(fleet)} if fleet else {}
    return found if len(answers.written(found)) <= answers.MOST // 2 else {}


def _in_brief(facts: dict[str, object]) -> Facts:
    """The needs without their rows, each with the first command that answers it."""
    found = answers.plain(facts)
    return found | {"needs": _brief(facts), "rows": [], "cut": {"rows": len(found["rows"])}}


def _brief(facts: dict[str, object]) -> list[Facts]:
    needs = answers.plain(facts)["needs"]
    return [{key: it[key] for key in BRIEF} | {"actions": it["actions"][:1]} for it in needs]


def inbox(desk: Desk) -> Facts:
    """Of all projects; where not all fit, in brief."""
    facts = desk.app.boards.inbox().facts()
    return facts if answers.fits(facts) else {**facts, "needs": _brief(facts)}


def row(desk: Desk, id: TaskId) -> Facts:
    found = desk.app.boards.row(id)
    if found is None:
        raise NoSuchTask(id)
    return found.facts()


def need(desk: Desk, id: TaskId) -> object:
    return row(desk, id)["need"]


def page(desk: Desk, id: TaskId) -> Facts:
    """Its parts may be long: what does not fit is cut, the longest first."""
    return desk.app.boards.page(id).facts()


def findings(desk: Desk, id: TaskId, *, every: bool) -> list[Facts]:
    """Of the last evaluation that failed, beside the one before; of all, where every is wanted."""
    page = desk.app.boards.page(id)
    found = [_finding(it.gate, it.finding, it.state) for it in page.findings]
    earlier = [it.feedback for it in page.iterations[:-2] if it.feedback] if every else []
    older = [_finding(it.gate_name, one, "fixed") for it in earlier for one in it.findings]
    return [*found, *(it for it in older if it not in found)]


def _finding(gate: str, found: Finding, state: str) -> Facts:
    return {
        "gate": gate,
        "priority": found.priority,
        "file": found.location.file if found.location else None,
        "line": found.location.line if found.location else None,
        "issue": found.issue,
        "suggestion": found.suggestion,
        "state": state,
    }


def events(desk: Desk, id: TaskId | None, asked: inputs.Events) -> Facts:
    """As many as fit: `next` goes on behind the last of them."""
    found = desk.app.views.events(id, asked.since, asked.limit)
    kept: list[Facts] = []
    last, room = asked.since, answers.MOST - 100
    for it in found:
        facts = words.event_facts(it)
        room -= len(answers.written(answers.plain(facts))) + 2
        if room < 0 and kept:
            break
        last = it.seq
        if not asked.types or it.type in asked.types:
            kept.append(facts)
    return {"events": kept, "next": last}


def train(desk: Desk, at: Project) -> Facts:
    return desk.app.train_boards.of(at.id).facts()


def project(desk: Desk, name: str | None) -> Project:
    """By its path or its name; without one, where the client was started."""
    if name is None:
        return desk.app.projects.here(desk.where() if desk.where else desk.directory)
    if desk.app.caller.far:  # no path of this machine is theirs to name
        return desk.app.projects.here(root_of_clone(desk.app, Clone(project=name))())
    return desk.app.projects.named(name, desk.directory)
