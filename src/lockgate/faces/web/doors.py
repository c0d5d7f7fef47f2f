"""How people and programs get in: the login, what a browser loads, the feed."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.types import Scope

from lockgate.bootstrap.outside import web_logins_of
from lockgate.faces.web.acts import local
from lockgate.faces.web.guard import Visitor
from lockgate.faces.web.look import rendered
from lockgate.faces.web.site import Site

MONTH = 30 * 86_400
LONGEST = 200  # characters of a link's key
STATIC = Path(__file__).parent / "static"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
SENT = {it.name: it for it in STATIC.iterdir() if it.suffix in TYPES}


def identify(site: Site, how: str, what: str) -> Visitor | None:
    """By a browser's login, a program's token, or a proxy's word."""
    logins = web_logins_of(site.app)
    if how == "header":
        person = what.strip()
        key = logins.form_key(f"header {person}")
        return Visitor(person=person, how="proxy", key=key) if person else None
    if not what or len(what) > LONGEST:
        return None
    found = logins.logged_in(what) if how == "login" else logins.with_token(what)
    if found is None:
        return None
    told = "web login" if how == "login" else f"token {found.name}"
    return Visitor(
        person=found.person,
        how=told,
        key=logins.form_key(found.hash),
        read_only=found.read_only,
    )


def turned_away(scope: Scope) -> Response:
    """A page that says how to log in; a program gets JSON."""
    path = str(scope["path"])
    if path.startswith(("/api/", "/metrics", "/feed", "/mcp", "/people/")):
        error = {"what": "nothing was shown", "why": "there is no login and no token"}
        return JSONResponse({"error": {**error, "fix": "lockgate web token NAME"}}, 401)
    return HTMLResponse(rendered("login.html", {"link": "", "next": "", "wrong": ""}), 401)


def login_page(site: Site, request: Request) -> Response:
    """Looking at it uses nothing up: a chat that previews links does not log anybody in."""
    del site
    link = request.query_params.get("link", "")[:LONGEST]
    then = local(request.query_params.get("next", "/"))
    return HTMLResponse(rendered("login.html", {"link": link, "next": then, "wrong": ""}))


def log_in(site: Site) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        fields = await request.form(max_files=0, max_fields=10)
        link, then = str(fields.get("link", "")), local(str(fields.get("next", "/")))
        return await run_in_threadpool(_logged_in, site, link, then)

    return endpoint


def _logged_in(site: Site, link: str, then: str) -> Response:
    if site.tries.are_too_many():
        return PlainTextResponse("too many wrong tries; wait a minute", 429)
    login = web_logins_of(site.app).log_in(link) if 0 < len(link) <= LONGEST else None
    if login is None:
        site.tries.note()
        wrong = "This link is used up, or older than a minute. Make another one."
        return HTMLResponse(rendered("login.html", {"link": "", "next": "", "wrong": wrong}), 403)
    answer = RedirectResponse(then, 303)
    answer.set_cookie(
        site.served.cookie,
        login,
        max_age=MONTH,
        httponly=True,
        samesite="lax",
        secure=site.served.secure,
    )
    return answer


def static(_site: Site, request: Request) -> Response:
    file = SENT.get(request.path_params["name"])
    if file is None:
        return PlainTextResponse("there is no such file", 404)
    kept = {"cache-control": "public, max-age=604800"}
    return Response(file.read_bytes(), media_type=TYPES[file.suffix], headers=kept)


def feed(site: Site) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        said = request.headers.get("last-event-id") or request.query_params.get("since", "")
        since = int(said) if said.isascii() and said.isdecimal() and len(said) < 16 else None  # noqa: PLR2004 - a seq has fewer digits
        stream = site.hub.stream(since)
        return stream or PlainTextResponse("too many browsers follow already", 503)

    return endpoint
