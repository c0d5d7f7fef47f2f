"""What people do on the web board: each form is one call of a service, then back to a page.

Every yes and every no carries the change that was shown; where it is another one by now, the answer
is the new change, and nothing was done.
"""

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from lockgate.bootstrap import App
from lockgate.bootstrap.outside import web_logins_of
from lockgate.core.lifecycle.moves import Move
from lockgate.core.model.people import is_note, noted
from lockgate.core.model.task import ProjectId, Status, TaskId
from lockgate.core.notices.hours import UNITS
from lockgate.errors import LockgateError, Refused
from lockgate.faces.web.guard import same
from lockgate.faces.web.pages import NOTHING
from lockgate.faces.web.review import draft_of, findings_of, read_place, show
from lockgate.faces.web.site import Site, failed, theme_of, visitor_of
from lockgate.services.task.tasks import NewTask

Said = Mapping[str, str]
Act = Callable[[App, TaskId, Said], object]
SNOOZE = UNITS["d"]


def approve(app: App, id: TaskId, said: Said) -> object:
    return _yes(app, id, said, lambda text: app.queue.say_yes(id, text, _patch(said), app.caller))


def land(app: App, id: TaskId, said: Said) -> object:
    return _yes(app, id, said, lambda text: app.queue.approve(id, _patch(said), app.caller, text))


def _yes(app: App, id: TaskId, said: Said, deed: Callable[[str], object]) -> object:
    """The person's notes on the change are kept with the yes; other comments stay drafts."""
    drafts = app.desk.drafts(id, app.caller)
    done = deed("; ".join(filter(None, (said.get("message", "").strip(), noted(drafts)))))
    notes = tuple(it.id for it in drafts if is_note(it))
    if notes:  # none would be all of them
        app.desk.discard(id, notes, app.caller)
    return done


def reject(app: App, id: TaskId, said: Said) -> object:
    drafts = app.desk.drafts(id, app.caller)
    message = said.get("message", "").strip() or "See the comments on its lines."
    done = app.approvals.reject(id, message, findings_of(drafts), _patch(said), app.caller)
    app.desk.discard(id, tuple(it.id for it in drafts), app.caller)
    return done


def comment(app: App, id: TaskId, said: Said) -> object:
    return app.approvals.comment(id, _text(said, "message"), app.caller)


def hold(app: App, id: TaskId, said: Said) -> object:
    return app.queue.hold(id, said.get("message", ""), app.caller)


def drop(app: App, id: TaskId, said: Said) -> object:
    return app.queue.drop(id, _text(said, "message"), app.caller)


def answer(app: App, id: TaskId, said: Said) -> object:
    return app.people.answer(id, _text(said, "message"), app.caller)


def say(app: App, id: TaskId, said: Said) -> object:
    return app.people.say(id, _text(said, "message"), app.caller)


def resume(app: App, id: TaskId, said: Said) -> object:
    """Out of a pause, or out of being stuck: both go on with a hint."""
    directive = said.get("directive", "").strip()
    if app.views.load(id).status is Status.STUCK:
        return app.signals.move(id, Move(Status.WORKING, "", directive), app.caller)
    return app.runner.resume(id, directive, app.caller)


def respawn(app: App, id: TaskId, said: Said) -> object:
    return app.attendance.respawn(id, said.get("directive", ""), app.caller)


def start(app: App, id: TaskId, _said: Said) -> object:
    return app.signals.move(id, Move(Status.WORKING), app.caller)


def cancel(app: App, id: TaskId, said: Said) -> object:
    return app.signals.move(id, Move(Status.CANCELLED, said.get("message", "")), app.caller)


ACTS: Mapping[str, Act] = {
    "approve": approve,
    "land": land,
    "reject": reject,
    "comment": comment,
    "hold": hold,
    "drop": drop,
    "answer": answer,
    "say": say,
    "resume": resume,
    "respawn": respawn,
    "start": start,
    "cancel": cancel,
}
BOUND = frozenset({"approve", "land", "reject"})  # to the change that was shown


def on_task(site: Site, request: Request, said: Said) -> Response:
    app, name = site.app_of(request), request.path_params["act"]
    id = site.row(app, request.path_params["id"]).id
    act = ACTS.get(name)
    if act is None:
        return PlainTextResponse("there is no such action", 404)
    if name in BOUND and app.views.load(id).patch != said.get("patch", ""):
        return show(site, request, app, site.row(app, id), moved=True)
    try:
        act(app, id, said)
    except LockgateError:
        if name in BOUND and app.views.load(id).patch != said.get("patch", ""):
            return show(site, request, app, site.row(app, id), moved=True)
        raise
    site.wake()
    return RedirectResponse(f"/t/{quote(id)}", 303)


def drafts(site: Site, request: Request, said: Said) -> Response:
    """A comment is kept for its author until the change is sent back."""
    app = site.app_of(request)
    row = site.row(app, request.path_params["id"])
    if said.get("patch", "") != row.task.patch:
        return show(site, request, app, row, moved=True)
    where = ""
    if said.get("drop"):
        app.desk.discard(row.id, (said["drop"],), app.caller)
    else:
        files = site.files(app, row.task)
        place = read_place(said.get("at", ""), len(files))
        if place is None:
            why, fix = "the line is not part of this change", "load the page again"
            raise Refused("the comment was not saved", why=why, fix=fix)
        kept = app.desk.save(draft_of(files, row.task, place, said), app.caller)
        part = "&part=1" if said.get("part") else ""
        where = f"?file={place.index}{part}" if len(files) > 1 else ""
        where += f"#d-{kept.id}"
    return RedirectResponse(f"/t/{quote(row.id)}/review{where}", 303)


def on_need(site: Site, request: Request, said: Said) -> Response:
    del said
    app, key = site.app_of(request), request.path_params["key"]
    if request.path_params["act"] == "seen":
        app.desk.mark_seen(key, app.caller)
    else:
        app.desk.snooze(key, SNOOZE, app.caller)
    return RedirectResponse("/#needs", 303)


def create(site: Site, request: Request, said: Said) -> Response:
    app = site.app_of(request)
    given = {**NOTHING, **{key: said.get(key, "") for key in (*NOTHING, "project")}}
    first, _, rest = given["goal"].strip().partition("\n")
    try:
        project = app.projects.with_id(ProjectId(given["project"]))
        asked = NewTask(
            branch=given["branch"].strip() or app.readiness.branch_for(project, first),
            summary=first.strip(),
            agent=given["agent"].strip() or None,
            priority=int(given["priority"]) if given["priority"].isdecimal() else 3,
            context="\n\n".join(filter(None, (rest.strip(), given["context"].strip()))),
            auto_start=bool(said.get("start")),
        )
        made = app.tasks.create(project, asked, app.caller)
    except LockgateError as error:
        return site.page(request, "new.html", {"page": "new", "given": given, "error": error}, 422)
    site.wake()
    return RedirectResponse(f"/t/{quote(made.id)}", 303)


def theme(site: Site, request: Request, said: Said) -> Response:
    answer = RedirectResponse(local(said.get("next", "")), 303)
    chosen = said.get("theme", "")
    if chosen in {"dark", "light"} and chosen != theme_of(request):
        answer.set_cookie(
            "theme", chosen, max_age=31_536_000, samesite="lax", secure=site.served.secure
        )
    return answer


def logout(site: Site, request: Request, said: Said) -> Response:
    del said
    web_logins_of(site.app).log_out(request.cookies.get(site.served.cookie, ""))
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(site.served.cookie)
    return answer


Form = Callable[[Site, Request, Said], Response]


def posted(site: Site, form: Form) -> Callable[[Request], Awaitable[Response]]:
    """Read the form, see that it is one of ours, carry it out."""

    async def endpoint(request: Request) -> Response:
        fields = await request.form(max_files=0, max_fields=50)
        said = {key: value for key, value in fields.items() if isinstance(value, str)}
        if not same(said.get("csrf", ""), visitor_of(request).key):
            return PlainTextResponse("this form is not of your login; load the page again", 403)
        return await run_in_threadpool(_carried_out, site, form, request, said)

    return endpoint


def _carried_out(site: Site, form: Form, request: Request, said: Said) -> Response:
    try:
        return form(site, request, said)
    except LockgateError as error:
        return failed(site, request, error)


def local(path: str) -> str:
    """A path of ours, and no address of anybody else's."""
    plain = path.startswith("/") and not path.startswith(("//", "/\\"))
    return path if plain and path.isprintable() else "/"


def _patch(said: Said) -> str:
    """There must be one: an empty one would be a yes to whatever is there."""
    if not said.get("patch"):
        raise Refused("nothing was done", why="no change was shown", fix="open the review first")
    return said["patch"]


def _text(said: Said, name: str) -> str:
    text = said.get(name, "").strip()
    if not text:
        raise Refused("nothing was done", why="you said nothing", fix="write what you mean")
    return text
