"""The review: a change line by line, with comments that go back to its agent."""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from lockgate.bootstrap import App
from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.people import Draft
from lockgate.core.model.task import Status, Task
from lockgate.faces.web.site import Site
from lockgate.faces.words.changes import FileChange, Line
from lockgate.services.task.rows import BoardRow

OPEN_LINES = 1_500  # lines that a page shows at once; more files are opened one by one
PLACE = re.compile(r"(\d{1,6})([no])(\d{1,9})")  # file, side, line
SHORT = 6
PRIORITIES = {"P0": "Must not land so", "P1": "Must change", "P2": "Should change", "P3": "A note"}


class Shown(Struct, frozen=True, kw_only=True):
    """A file as the page has it; `opened` has its lines in it."""

    index: int
    file: FileChange
    opened: bool
    protected: bool
    comments: Mapping[tuple[str, int], list[object]]
    loose: Sequence[Draft]  # of lines that are no longer there


class Place(Struct, frozen=True):
    """The line that somebody is about to comment on."""

    index: int
    side: str
    line: int


def review(site: Site, request: Request) -> Response:
    app = site.app_of(request)
    row = site.row(app, request.path_params["id"])
    return show(site, request, app, row)


def show(site: Site, request: Request, app: App, row: BoardRow, *, moved: bool = False) -> Response:
    """`moved`: somebody answered a change that is not there any more, and sees the new one."""
    files = site.files(app, row.task)
    drafts = app.desk.drafts(row.id, app.caller)
    wanted = request.query_params.get("file", "")
    place = read_place(request.query_params.get("c", ""), len(files))
    shown = _shown(files, row.task, drafts, _opened(files, wanted, place))
    if request.query_params.get("part"):  # of a change with many files: those alone
        shown = [it for it in shown if it.opened]
    values = {
        "page": "review",
        "task_id": row.id,
        "r": row,
        "t": row.task,
        "patch": row.task.patch,
        "short": row.task.patch[:SHORT],
        "files": shown,
        "drafts": drafts,
        "place": place,
        "moved": moved,
        "priorities": PRIORITIES,
        "asks": _asks(row),
        "added": sum(it.added for it in files),
        "removed": sum(it.removed for it in files),
        "code_of": code_of,
        "earlier": row.task.history[-1].feedback if row.task.history else None,
    }
    return site.page(request, "review.html", values, 409 if moved else 200)


def code_of(index: int, line: Line) -> str:
    """How a link names a line."""
    return f"{index}{line.side[0]}{line.number}"


def findings_of(drafts: Sequence[Draft]) -> list[Finding]:
    """Comments as the agent gets them, each with the line that it is about."""
    return [
        Finding(Priority(it.priority), it.text, Location(it.file, it.line), quote=it.quote)
        for it in drafts
    ]


def draft_of(
    files: Sequence[FileChange], task: Task, place: Place, said: Mapping[str, str]
) -> Draft:
    """A comment on that line, with the line itself, so that it is found again."""
    file = files[place.index]
    lines = (line for hunk in file.hunks() for line in hunk.lines)
    at = next((it for it in lines if (it.side, it.number) == (place.side, place.line)), None)
    return Draft(
        id=said.get("draft", ""),
        task=task.id,
        patch=task.patch,
        file=file.name,
        side=place.side,
        line=place.line,
        quote=at.text if at else "",
        text=said.get("text", "").strip(),
        priority=said.get("priority") or Priority.P1_MAJOR,
    )


def read_place(text: str, files: int) -> Place | None:
    found = PLACE.fullmatch(text)
    if found is None or int(found[1]) >= files:
        return None
    return Place(int(found[1]), "new" if found[2] == "n" else "old", int(found[3]))


def _opened(files: Sequence[FileChange], wanted: str, place: Place | None) -> frozenset[int]:
    """What is small enough to be shown at once, and what was asked for."""
    opened, lines = set[int](), 0
    for index, it in enumerate(files):
        lines += it.added + it.removed + 8
        if lines <= OPEN_LINES and not it.folded:
            opened.add(index)
    if wanted.isdecimal() and len(wanted) < 7:  # noqa: PLR2004 - no change has a million files
        opened = {int(wanted)}
    return frozenset(opened | ({place.index} if place else set()))


def _shown(
    files: Sequence[FileChange], task: Task, drafts: Sequence[Draft], opened: frozenset[int]
) -> list[Shown]:
    shown: list[Shown] = []
    for index, file in enumerate(files):
        own = [it for it in drafts if it.file == file.name]
        placed, loose = _placed(file, own) if index in opened else ({}, [])
        for found in _findings(task, file.name) if index in opened else ():
            if found.location and found.location.line:
                placed.setdefault(("new", found.location.line), []).append(found)
        shown.append(
            Shown(
                index=index,
                file=file,
                opened=index in opened,
                protected=file.name in task.protected,
                comments=placed,
                loose=loose,
            )
        )
    return shown


def _placed(
    file: FileChange, drafts: Sequence[Draft]
) -> tuple[dict[tuple[str, int], list[object]], list[Draft]]:
    """Each comment at its line; where the change has moved, at the line that reads the same."""
    lines = [line for hunk in file.hunks() for line in hunk.lines]
    texts = {(it.side, it.number): it.text for it in lines}
    placed, loose = dict[tuple[str, int], list[object]](), list[Draft]()
    for draft in drafts:
        at = (draft.side, draft.line)
        if texts.get(at) != draft.quote:
            same = [key for key, text in texts.items() if text == draft.quote]
            near = [key for key in same if key[0] == draft.side] or same
            if not near:
                loose.append(draft)
                continue
            at = min(near, key=lambda key: abs(key[1] - draft.line))
        placed.setdefault(at, []).append(draft)
    return placed, loose


def _findings(task: Task, name: str) -> list[Finding]:
    """What gates and reviewers said of this file last."""
    told = [it.feedback for it in task.history if it.feedback]
    found = told[-1].findings if told else ()
    return [it for it in found if it.location and it.location.file == name]


def _asks(row: BoardRow) -> str:
    """What a yes means here: a gate's, the landing's, or nothing to say yes to."""
    if row.status is Status.AGENT_REVIEW and row.task.waiting:
        return "gate"
    waits = row.status is Status.REVIEWING and not (row.task.to_land or row.task.landed)
    return "land" if waits or (row.status is Status.REVIEWING and row.task.held) else ""
