"""The pages that only look: board, task, output, merge queue, statistics, events, new task."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lockgate.bootstrap import App
from lockgate.bootstrap.outside import day_of
from lockgate.core.lifecycle.needs import ENDED, Need
from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.task import ProjectId, Session, Status
from lockgate.errors import LockgateError, Refused
from lockgate.faces.web.draw import STANDINGS, drawn
from lockgate.faces.web.site import FILTERS, Site, failed, link, wanted
from lockgate.faces.words import task as words
from lockgate.faces.words.fleet import fleet_lines, fleet_text
from lockgate.faces.words.output import readable

PAGE = 50
LINES = 2_000  # of an agent's output
EVENTS = 200
NOISE = frozenset({"session.started", "session.ended", "words.heard", "agent.respawned"})
Page = Callable[[Site, Request], Response]


def board(site: Site, request: Request) -> Response:
    asked = dict(request.query_params)
    app = site.app_of(request)
    status, q = asked.get("status", ""), asked.get("q", "").strip()
    found = app.boards.board(wanted(asked), asked.get("after") or None, PAGE)
    projects = app.projects.known()
    named = {it.id: it.name for it in projects}
    rows = {it.id: it for it in found.rows}
    first = not asked.get("after")
    above = found.needs if first and not q and not status else ()
    needed = {it.task for it in above}

    def url(**changed: str | None) -> str:
        kept = {k: v for k, v in asked.items() if k in {"project", "status", "q", "agent"}}
        return link("/", {**kept, **{k: v or "" for k, v in changed.items()}})

    values = {
        "page": "board",
        "q": q,
        "status": status,
        "filters": [(name, label) for name, (label, _) in FILTERS.items()],
        "project_title": named.get(ProjectId(asked.get("project", "")), ""),
        "first_page": first and status in {"", "needs"},
        "needs": _needs(site, found.needs, asked.get("project", "")),
        "row_by_id": rows,
        "rows": [it for it in found.rows if it.id not in needed],
        "many": len(projects) > 1,
        "after": found.after,
        "url": url,
        "seq": found.seq,
        "counts": _counts(app, found.counts),
        "hosts": _hosts(app),
    }
    return site.page(request, "board.html", values)


def _needs(site: Site, found: Iterable[Need], project: str) -> tuple[Need, ...]:
    return tuple(it for it in site.needs(found) if not project or it.project in {project, ""})


def _hosts(app: App) -> tuple[str, ...]:
    """Of a fleet in words, all of them first; none where this machine works alone."""
    fleet = app.fleet()
    return (fleet_text(fleet), *fleet_lines(fleet)) if fleet else ()


def _counts(app: App, counts: Mapping[Status, int]) -> dict[str, object]:
    live = sum(n for status, n in counts.items() if status not in ENDED)
    midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0).timestamp()
    days = [day_of(app, it.id, midnight) for it in app.projects.known()]
    return {
        "live": live,
        "sessions": len(app.agents.at_work()),
        "landed": sum(it.landed for it in days),
        "usd": sum(it.usd for it in days),
    }


def task(site: Site, request: Request) -> Response:
    app = site.app_of(request)
    row = site.row(app, request.path_params["id"])
    view = app.boards.page(row.id)
    everything = request.query_params.get("all") == "1"
    values = {
        "page": "task",
        "task_id": row.id,
        "it": view,
        "r": row,
        "t": row.task,
        "story": _story(view.timeline, everything=everything),
        "everything": everything,
        "sessions": list(reversed(view.sessions)),
        "causes": words.question_text(row.task) if row.status is Status.CLARIFICATION else "",
    }
    return site.page(request, "task.html", values)


def _story(
    events: Sequence[StoredEvent], *, everything: bool
) -> list[tuple[StoredEvent, str, str]]:
    """The newest first, each with its words and who did it."""
    told: list[tuple[StoredEvent, str, str]] = []
    for event in reversed(events):
        story = words.event_story(event)
        if story and (everything or event.type not in NOISE):
            told.append((event, story, str(event.data.get("by") or "")))
    return told


def output(site: Site, request: Request) -> Response:
    """The newest session's where none is named."""
    app = site.app_of(request)
    row = site.row(app, request.path_params["id"])
    sessions = app.agents.of(row.id)
    session = _chosen(sessions, request.path_params.get("session", ""))
    if session is None:
        raise Refused(
            f"no output of task {row.id} is shown",
            why="no agent has worked on it yet",
            fix=f"lockgate task why {row.id}",
        )
    said = [words.safe(it) for it in readable(app.agents.output(session))]
    q = request.query_params.get("q", "").strip()
    found = [it for it in said if q.lower() in it.lower()] if q else said
    values = {
        "page": "output",
        "task_id": row.id,
        "r": row,
        "session": session,
        "sessions": list(reversed(sessions)),
        "is_over": app.agents.is_over(session),
        "find": q,
        "lines": found[-LINES:],
        "left_out": max(0, len(found) - LINES),
        "count": len(found),
        "split": _split,
    }
    return site.page(request, "output.html", values)


def _chosen(sessions: Sequence[Session], name: str) -> Session | None:
    if not name:
        return sessions[-1] if sessions else None
    return next((it for it in sessions if it.id == name), None)


def _split(line: str, q: str) -> list[tuple[str, bool]]:
    """The line in pieces, and which of them were looked for."""
    if not q:
        return [(line, False)]
    pieces, low, at = list[tuple[str, bool]](), line.lower(), 0
    while (found := low.find(q.lower(), at)) >= 0:
        pieces += [(line[at:found], False), (line[found : found + len(q)], True)]
        at = found + len(q)
    return [*pieces, (line[at:], False)]


def train(site: Site, request: Request) -> Response:
    app = site.app_of(request)
    projects = app.projects.known()
    name = request.path_params.get("project", "")
    known = next((it for it in projects if name in {it.id, it.name}), None)
    if known is None and projects and not name:
        return RedirectResponse(f"/train/{quote(projects[0].id)}", 303)
    values: dict[str, object] = {"page": "train", "project": known, "board": None, "trouble": None}
    if known is None:
        return site.page(request, "train.html", values, 404 if name else 200)
    try:
        found = site.trains.get(known.id) or app.train_boards.of(known.id)
        values |= {"board": found, "drawing": drawn(found), "standings": STANDINGS}
    except LockgateError as error:
        values |= {"trouble": error}
    return site.page(request, "train.html", {**values, "project_id": known.id})


def events(site: Site, request: Request) -> Response:
    app = site.app_of(request)
    since = request.query_params.get("since", "")
    newest = app.boards.inbox().seq
    first = int(since) if since.isdecimal() and len(since) < 16 else max(0, newest - EVENTS)  # noqa: PLR2004 - a seq has fewer digits
    found = app.views.events(None, first, EVENTS)
    values = {
        "page": "events",
        "events": [(it, words.event_story(it)) for it in reversed(found)],
        "earlier": max(0, first - EVENTS) if first > 0 else None,
        "later": found[-1].seq if found and found[-1].seq < newest else None,
    }
    return site.page(request, "events.html", values)


NOTHING = {"goal": "", "branch": "", "agent": "", "priority": "", "context": ""}


def new(site: Site, request: Request) -> Response:
    given = {**NOTHING, "project": request.query_params.get("project", "")}
    return site.page(request, "new.html", {"page": "new", "given": given, "error": None})


def shown_or_told(page: Page) -> Page:
    """What a person must fix is a page too."""

    def answer(site: Site, request: Request) -> Response:
        try:
            return page(site, request)
        except LockgateError as error:
            return failed(site, request, error)

    return answer
