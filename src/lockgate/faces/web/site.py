"""What the pages share: the services, who looks, what every page shows around its content."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar, cast
from urllib.parse import urlencode

from msgspec import Struct, convert, field
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from lockgate.bootstrap import App
from lockgate.bootstrap.outside import for_person
from lockgate.core.lifecycle.needs import ENDED, Need, order
from lockgate.core.model.people import Right, allows
from lockgate.core.model.task import ProjectId, Status, Task, TaskId
from lockgate.errors import LockgateError, NoSuchTask
from lockgate.faces.web.guard import Served, Tries, Visitor
from lockgate.faces.web.live import Hub
from lockgate.faces.web.look import rendered
from lockgate.faces.words.changes import FileChange, files_of, in_reading_order
from lockgate.ports import Line, TaskFilter
from lockgate.services.task.measures import Counted
from lockgate.services.task.rows import BoardRow
from lockgate.services.train.board import TrainBoard

FILTERS: Mapping[str, tuple[str, frozenset[Status]]] = {
    "": ("All", frozenset()),
    "live": ("In work", frozenset(Status) - ENDED),
    "needs": ("Needs you", frozenset()),
    "done": ("Landed", frozenset({Status.DONE})),
    "cancelled": ("Cancelled", frozenset({Status.CANCELLED})),
}
KEPT = 6  # diffs that are kept, each of one change
T = TypeVar("T")
CarryOut = Callable[[App, bytes, Line], bool]  # whether the orchestrator has news


class Site(Struct, kw_only=True):
    """One for all requests; `app` is the home's, and each visitor acts by their own name."""

    app: App
    served: Served
    tries: Tries = field(default_factory=Tries)
    hub: Hub
    wake: Callable[[], None]
    carry_out: CarryOut | None = None  # what runs the commands of people on other machines
    counted: Counted = field(default_factory=Counted)
    lanes: dict[str, Need] = field(default_factory=dict[str, Need])
    """What projects and the loop need, which only the orchestrator knows: by the feed."""
    trains: dict[str, TrainBoard] = field(default_factory=dict[str, TrainBoard])
    _diffs: dict[tuple[TaskId, str], tuple[FileChange, ...]] = field(
        default_factory=dict[tuple[TaskId, str], tuple[FileChange, ...]]
    )

    def app_of(self, request: Request) -> App:
        visitor = visitor_of(request)
        return for_person(self.app, visitor.person, visitor.how, read_only=visitor.read_only)

    def page(
        self, request: Request, template: str, values: Mapping[str, object], status: int = 200
    ) -> Response:
        return HTMLResponse(rendered(template, {**self.around(request), **values}), status)

    def around(self, request: Request) -> dict[str, object]:
        """What each page shows besides its content."""
        app, visitor = self.app_of(request), visitor_of(request)
        inbox = app.boards.inbox()
        projects = app.projects.known()
        names = {it.id: it.name for it in projects}
        asked = request.query_params.get("project", "")
        project = asked if asked in names else ""
        train = project or (projects[0].id if projects else "")
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return {
            "page": "",
            "q": "",
            "me": visitor.person,
            "may": app.caller.may,
            "may_work": allows(app.caller.may, Right.WORK),
            "may_land": allows(app.caller.may, Right.LAND),
            "may_log_out": not self.served.header,
            "csrf": visitor.key,
            "theme": theme_of(request),
            "path": path,
            "notice": "",
            "calls": sum(1 for it in self.needs(inbox.needs) if not it.dimmed),
            "projects": projects,
            "project_name": partial(_named, names),
            "project_id": project,
            "task_id": "",
            "seq": inbox.seq,
            "views": _views(train),
        }

    def row(self, app: App, name: str) -> BoardRow:
        found = app.boards.row(TaskId(name))
        if found is None:
            raise NoSuchTask(name)
        return found

    def files(self, app: App, task: Task) -> tuple[FileChange, ...]:
        """The change as it is read; of a change that does not move it is made once."""
        key = (task.id, task.patch)
        if key not in self._diffs or not task.patch:
            made = in_reading_order(files_of(app.people.diff(task.id)), task.protected)
            while len(self._diffs) >= KEPT:
                self._diffs.pop(next(iter(self._diffs)), None)
            self._diffs[key] = made
        return self._diffs[key]

    def told(self, item: dict[str, object]) -> tuple[str, dict[str, object]] | None:
        """A line of the feed as browsers get it, with the HTML that it changes."""
        for kind in ("lost", "back", "resync", "live"):
            if kind in item:
                found = item[kind]
                self._note(kind, _facts(found))
                return kind, _facts(found) or {"why": str(found)}
        if "event" not in item:
            return None
        return "event", self._changed(item)

    def needs(self, found: Iterable[Need]) -> tuple[Need, ...]:
        """With those that the orchestrator told of."""
        known = tuple(found)
        more = [it for key, it in self.lanes.items() if key not in {need.key for need in known}]
        return tuple(sorted((*known, *more), key=order))

    def _note(self, kind: str, found: dict[str, object]) -> None:
        """What the orchestrator knows is forgotten with it."""
        if kind == "lost":
            self.lanes.clear()
            self.trains.clear()
        train, needs = _facts(found.get("train")), _facts(found.get("needs"))
        if train:
            self.trains[str(train["project"])] = convert(train, TrainBoard, strict=False)
        for facts in _listed(needs.get("went")):
            self.lanes.pop(str(_facts(facts).get("key")), None)
        for facts in _listed(needs.get("came")):
            if not _facts(facts).get("task"):
                need = convert(_facts(facts), Need, strict=False)
                self.lanes[need.key] = need

    def _changed(self, item: dict[str, object]) -> dict[str, object]:
        event = _facts(item["event"])
        id = TaskId(str(event["task"]))
        boards = self.app.boards
        row, inbox = boards.row(id), boards.inbox()
        need = next((it for it in inbox.needs if it.task == id), None)
        projects = self.app.projects.known()
        many = len(projects) > 1
        return {
            "task": id,
            "type": event["type"],
            "project": row.project if row else "",
            "patch": row.task.patch if row else "",
            "calls": len(self.needs(inbox.needs)),
            "row": row_html(row, many=many) if row else "",
            "need": need_html(need, row, {it.id: it.name for it in projects}) if need else "",
            "need_key": need.key if need else "",
        }


def wanted(asked: Mapping[str, str]) -> TaskFilter:
    """Which tasks an address asks for."""
    status = asked.get("status", "")
    return TaskFilter(
        projects=frozenset({ProjectId(asked["project"])} if asked.get("project") else ()),
        statuses=frozenset(FILTERS.get(status, FILTERS[""])[1]),
        agent=asked.get("agent", ""),
        text=asked.get("q", "").strip(),
        needs=status == "needs",
    )


def row_html(row: BoardRow, *, many: bool) -> str:
    return rendered("row.html", {"r": row, "many": many}).strip()


def need_html(need: Need, row: BoardRow | None, names: Mapping[ProjectId, str]) -> str:
    """Without its forms, which belong to one login; the page has them when it is loaded again."""
    values: dict[str, object] = {"n": need, "r": row, "csrf": "", "may": False}
    values["many"] = len(names) > 1
    values["project_name"] = partial(_named, names)
    return rendered("need.html", values).strip()


def visitor_of(request: Request) -> Visitor:
    found = request.scope["state"]["visitor"]
    if not isinstance(found, Visitor):
        raise TypeError("the guard lets nobody through without a visitor")
    return found


def theme_of(request: Request) -> str:
    found = request.cookies.get("theme", "")
    return found if found in {"dark", "light"} else ""


def failed(site: Site, request: Request, error: LockgateError, status: int = 422) -> Response:
    """In three parts, as everywhere."""
    if isinstance(error, NoSuchTask):
        status = 404
    id = request.path_params.get("id", "")
    values = {"what": error.what, "why": error.why, "fix": error.fix}
    back = f"/t/{id}" if id and status != 404 else ""  # noqa: PLR2004 - no page of it is there
    return site.page(request, "message.html", {**values, "back": back}, status)


def link(path: str, params: Mapping[str, str]) -> str:
    said = urlencode({name: value for name, value in params.items() if value})
    return f"{path}?{said}" if said else path


def _views(train: str) -> tuple[tuple[str, str, str], ...]:
    return (
        ("board", "/", "Board"),
        ("train", f"/train/{train}" if train else "/train", "Merge queue"),
        ("stats", "/stats", "Statistics"),
        ("events", "/events", "Events"),
    )


def _listed(found: object) -> list[object]:
    return cast("list[object]", found) if isinstance(found, list) else []


def _facts(found: object) -> dict[str, object]:
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def _named(names: Mapping[ProjectId, str], id: ProjectId) -> str:
    return names.get(id, "")
