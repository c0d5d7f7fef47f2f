"""Who gets in at the web board, and who does not."""

import asyncio
import json
import re
from itertools import product

import pytest
from starlette.types import Message, Receive, Scope, Send

from lockgate.adapters.store.database import Run
from lockgate.bootstrap.outside import web_logins_of
from lockgate.errors import Unavailable
from lockgate.faces.web import doors
from lockgate.faces.web.guard import COOKIE, Guard, Served, Tries, Visitor
from lockgate.faces.web.serve import _routes
from tests.faces.web.home import a_home
from tests.faces.web.serving import Board, serving

FORM = ("Content-Type", "application/x-www-form-urlencoded")


def head(board: Board) -> int:
    return board.home.app.store.head()


@pytest.fixture
def own(tmp_path):
    home = a_home(tmp_path)
    with serving(home) as board:
        yield board
    home.app.close()


HOSTS = (
    "evil.example",
    "localhost.evil.example:{port}",
    "{name}.evil.example:{port}",
    "x.{name}:{port}",
    "{name}",
    "{name}:1",
    "{NAME}:{port}",
    "{name}:{port}.",
    "{name}.:{port}",
    "{name}:{port}@evil.example",
    "evil.localhost:{port}",
    "0.0.0.0:{port}",
    "127.1:{port}",
    "[::1%25lo]:{port}",
    "",
)


@pytest.mark.parametrize(("host", "method"), list(product(HOSTS, ("GET", "POST"))))
def test_a_foreign_host_is_refused(board: Board, host: str, method: str) -> None:
    name = board.served.host.partition(":")[0]
    said = host.format(port=board.port, name=name, NAME=name.upper())
    headers = [(k, v) for k, v in board.usual(method) if k != "Host"]

    answer = board.ask(method, "/", [("Host", said), *headers])

    assert answer.status in {400, 421}
    assert answer.cookies == []


@pytest.mark.parametrize("hosts", [[], ["{own}", "{own}"], ["{own}", "evil.example"]])
def test_none_or_two_hosts_are_refused(board: Board, hosts: list[str]) -> None:
    said = [("Host", it.format(own=board.served.host)) for it in hosts]

    assert board.ask("GET", "/", said).status in {400, 421}


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]"])
def test_other_names_of_this_machine_lead_to_the_board_s_own_without_a_cookie(board, name) -> None:
    headers = [("Host", f"{name}:{board.port}"), ("Cookie", f"{COOKIE}={board.login}")]

    answer = board.ask("GET", "/t/x?q=1", headers)
    posted = board.ask("POST", "/tasks", [*headers, ("Origin", board.origin), FORM], "a=b")

    assert (answer.status, answer.headers["location"]) == (307, f"{board.origin}/t/x?q=1")
    assert answer.cookies == []
    assert posted.status == 421


@pytest.mark.parametrize("path", ["//evil.example/", "/\\evil.example", "///evil.example//x"])
def test_no_path_leads_away(board: Board, path: str) -> None:
    answer = board.ask("GET", path, [("Host", f"localhost:{board.port}")])

    assert answer.headers.get("location", board.origin).startswith(f"{board.origin}/")


ORIGINS = (
    None,
    "null",
    "http://evil.example",
    "http://localhost:{port}",
    "http://127.0.0.1:{port}",
    "https://{host}",
    "http://{host}.evil.example",
    "http://{name}",
    "http://{name}:1",
    "HTTP://{host}",
    "{host}",
    "http://{host}/",
)
FETCHED = (None, "same-origin", "same-site", "cross-site", "none")
REFUSED = [
    *product(ORIGINS, FETCHED),
    *(("http://{host}", it) for it in ("same-site", "cross-site", "none")),
]


@pytest.mark.parametrize(("origin", "fetched"), REFUSED)
@pytest.mark.unmeasured
def test_a_form_from_elsewhere_is_refused(board: Board, origin, fetched) -> None:
    host, before = board.served.host, head(board)
    headers = [("Host", host), ("Cookie", f"{COOKIE}={board.login}"), FORM]
    if origin is not None:
        said = origin.format(port=board.port, host=host, name=host.partition(":")[0])
        headers.append(("Origin", said))
    if fetched is not None:
        headers.append(("Sec-Fetch-Site", fetched))

    answer = board.ask("POST", "/tasks", headers, f"goal=x&csrf={board.csrf()}")

    assert answer.status == 403
    assert head(board) == before


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_no_other_method_is_served(board: Board, method: str) -> None:
    assert board.ask(method, "/", board.usual("GET")).status in {400, 405}


@pytest.mark.parametrize("key", ["", "x", "0" * 64])
def test_a_form_without_its_login_s_key_is_refused(board: Board, key: str) -> None:
    before = head(board)

    assert board.post("/tasks", goal="x", csrf=key).status == 403
    assert head(board) == before


def test_a_form_s_key_of_another_login_is_refused(own: Board) -> None:
    first = own.csrf()
    own.log_in()

    assert own.csrf() != first
    assert own.post("/tasks", goal="x", csrf=first).status == 403


def test_a_request_that_is_too_large_is_refused(board: Board) -> None:
    headers = [*board.usual("POST"), ("Content-Length", "2000000")]

    assert board.ask("POST", "/tasks", headers).status == 413


# --- the login -----------------------------------------------------------------------------------


def test_a_link_logs_in_once_by_its_button_and_not_by_looking(own: Board) -> None:
    app = own.home.app
    link = web_logins_of(app).link("ann", app.caller)
    own.login = ""

    looked = own.get(f"/login?link={link}")
    own.get(f"/login?link={link}")
    first = own.ask("POST", "/login", body=f"link={link}&next=/stats")
    second = own.ask("POST", "/login", body=f"link={link}")

    assert (looked.status, looked.cookies) == (200, [])
    assert (first.status, first.headers["location"]) == (303, "/stats")
    [cookie] = first.cookies
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Max-Age=2592000" in cookie
    assert "Domain" not in cookie
    assert (second.status, second.cookies) == (403, [])


def expire(run: Run) -> None:
    run("UPDATE web_keys SET expires = 1 WHERE kind = 'link'", {})


def test_a_link_that_is_older_than_a_minute_does_not_log_in(own: Board) -> None:
    link = web_logins_of(own.home.app).link("ann", own.home.app.caller)
    own.home.app.store.database.write(expire)

    assert own.ask("POST", "/login", body=f"link={link}").status == 403


@pytest.mark.parametrize("then", ["//evil.example", "https://evil.example", "/\\evil.example", "x"])
def test_the_login_leads_to_a_page_of_ours_alone(own: Board, then: str) -> None:
    link = web_logins_of(own.home.app).link("ann", own.home.app.caller)

    answer = own.ask("POST", "/login", body=f"link={link}&next={then}")

    assert answer.headers["location"] == "/"


def test_after_ten_wrong_tries_nobody_may_try_for_a_while(own: Board) -> None:
    tried = [own.ask("POST", "/login", body=f"link=wrong{n}").status for n in range(12)]
    link = web_logins_of(own.home.app).link("ann", own.home.app.caller)

    assert tried == [403] * 10 + [429] * 2
    assert own.ask("POST", "/login", body=f"link={link}").status == 429


def test_who_logs_out_is_out_everywhere(own: Board) -> None:
    assert own.post("/logout").status == 303

    assert own.get("/").status == 401


PAGES = ("/", "/t/x", "/t/x/review", "/stats", "/events", "/new", "/api/board", "/metrics", "/feed")


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("login", ["", "wrong", "x" * 500])
def test_nothing_is_shown_to_who_is_not_logged_in(board: Board, path: str, login: str) -> None:
    headers = [("Host", board.served.host), ("Cookie", f"{COOKIE}={login}")]

    answer = board.ask("GET", path, headers)

    assert answer.status == 401
    assert "After the login" not in answer.text


# --- tokens --------------------------------------------------------------------------------------


def token(board: Board, name: str, *, read_only: bool = False) -> str:
    app = board.home.app
    return web_logins_of(app).token(app.caller.by, name, app.caller, read_only=read_only)


def test_a_token_reads_facts_and_figures_and_no_page(board: Board) -> None:
    headers = [("Host", board.served.host), ("Authorization", f"Bearer {token(board, 'ci')}")]

    assert board.ask("GET", "/api/inbox", headers).facts["needs"]
    assert 'lockgate_tasks{status="stuck"} 1' in board.ask("GET", "/metrics", headers).text
    assert board.ask("GET", "/", headers).status == 401


@pytest.mark.parametrize("said", ["Bearer wrong", "Basic eDp5", "Bearer ", "wrong", "bearer"])
def test_a_wrong_token_is_refused(own: Board, said: str) -> None:
    headers = [("Host", own.served.host), ("Authorization", said)]

    assert own.ask("GET", "/api/inbox", headers).status == 401


def test_a_token_that_is_revoked_is_not_taken_any_more(own: Board) -> None:
    made, app = token(own, "ci"), own.home.app
    headers = [("Host", own.served.host), ("Authorization", f"Bearer {made}")]
    assert own.ask("GET", "/api/inbox", headers).status == 200

    web_logins_of(app).revoke("ci", app.caller)

    assert own.ask("GET", "/api/inbox", headers).status == 401


def test_what_is_kept_of_links_logins_and_tokens_is_a_hash(own: Board) -> None:
    made = token(own, "ci")

    rows = own.home.app.store.database.read("SELECT * FROM web_keys", {})

    assert len(rows) == 2
    kept = " ".join(str(value) for row in rows for value in dict(row).values())
    assert made not in kept
    assert own.login not in kept


# --- what every answer says ----------------------------------------------------------------------


def test_every_answer_forbids_foreign_code_and_being_kept(board: Board) -> None:
    for path in ("/", "/login", "/api/board", "/nothing", "/t/nothing"):
        headers = board.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers


def every_page(board: Board) -> list[str]:
    rows = board.home.app.boards.board().rows
    tasks = [f"/t/{it.id}" for it in rows]
    reviews = [f"/t/{it.id}/review" for it in rows if it.task.patch]
    more = [f"{it}?c=0n1&file=0" for it in reviews]
    fixed = ["/", "/?q=x", "/?status=done", "/new", "/events", "/stats", "/train", "/metrics"]
    fixed += ["/login", "/static/board.css", "/stats/gates.csv", "/events?since=1"]
    outputs = [f"/t/{it.id}/output" for it in rows if board.home.app.agents.of(it.id)]
    outputs += [f"{it}/{it.split('/')[2]}.1" for it in outputs]
    trains = [f"/train/{it.id}" for it in board.home.projects.values()]
    facts = ["/api/board", "/api/inbox", "/api/stats", *(f"/api/task/{it.id}" for it in rows)]
    facts += [f"/api{it}" for it in trains]
    return [*fixed, *trains, *tasks, *reviews, *more, *outputs, *facts]


def test_every_route_that_shows_something_is_among_the_pages(board: Board) -> None:
    """But the feed and MCP, which last."""
    shown = [it for it in _routes(board.site) if "GET" in (it.methods or ())]
    pages = [it.partition("?")[0] for it in every_page(board)]

    missing = [it.path for it in shown if not any(it.path_regex.match(page) for page in pages)]

    assert missing == ["/feed", "/mcp"]


@pytest.mark.unmeasured
def test_looking_at_every_page_changes_nothing(board: Board) -> None:
    before = head(board)

    for path in every_page(board):
        for method in ("GET", "HEAD"):
            answer = board.ask(method, path, board.usual("GET"))
            assert answer.status in {200, 303, 405}, path

    assert head(board) == before


def test_no_page_has_code_of_its_own_or_loads_anything_from_elsewhere(board: Board) -> None:
    for path in every_page(board):
        text = board.get(path).text
        if not text.lstrip().startswith("<!doctype"):
            continue
        scripts = re.findall(r"<script[^>]*>", text)
        assert all(it.startswith('<script src="/static/') for it in scripts), path
        assert not re.search(r"\son[a-z]+\s*=", re.sub(r"<[^>]*aria[^>]*>", "", text)), path
        assert " style=" not in text, path
        assert not re.search(r'(src|href|action)="(https?:)?//', text), path


def test_a_database_that_is_down_is_told_in_three_parts() -> None:
    sent = list[Message]()

    def identify(_how: str, _what: str) -> Visitor | None:
        raise Unavailable("nothing was read", why="the database is down", fix="start it")

    async def unused(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise AssertionError

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    guard = Guard(unused, Served(origin="https://team"), identify, doors.turned_away, Tries())
    headers = [(b"host", b"team"), (b"authorization", b"Bearer x")]
    scope = {"type": "http", "method": "POST", "path": "/people/call", "headers": headers}
    asyncio.run(guard(scope, receive, send))

    told = {"what": "nothing was read", "why": "the database is down", "fix": "start it"}
    assert sent[0]["status"] == 503
    assert json.loads(sent[1]["body"]) == {"error": told}
