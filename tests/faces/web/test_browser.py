"""The web board in a real browser: on the desk and on the phone, with and without JavaScript."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # theirs has none
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from lockgate.core.model.task import Status
from lockgate.faces.web.guard import COOKIE
from tests.faces.web.conftest import CHROMIUM
from tests.faces.web.home import FIXED, Home
from tests.faces.web.serving import Board, happened

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
PATIENCE = 20_000  # milliseconds
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


def context(browser: Browser, board: Board, size: dict[str, int], **more: object) -> BrowserContext:
    made = browser.new_context(viewport=size, **more)  # type: ignore[arg-type]  # as the test has it
    made.set_default_timeout(PATIENCE)
    cookie = {"name": COOKIE, "value": board.login, "url": board.origin}
    made.add_cookies([cookie])  # type: ignore[list-item]  # a plain dict will do
    return made


def waiting(home: Home, branch: str = "fix-login") -> str:
    task = home.started(branch, "After the login, go on to the page that was asked for")
    return home.waiting(home.changed(task, {"login.py": FIXED, "b.txt": "two\n"})).id


# On the phone in the dark the pages that most differ there; all of them in `make soak`.
SEEN = [
    ("desk", "light", 99),
    ("phone", "dark", 4),
    pytest.param("phone", "dark", 99, marks=pytest.mark.slow),
    pytest.param("phone", "light", 99, marks=pytest.mark.slow),
    pytest.param("desk", "dark", 99, marks=pytest.mark.slow),
]
# The other two are in test_moments.py; here they run in `make soak`.
WITH = [
    ("desk", True),
    ("phone", False),
    pytest.param("desk", False, marks=pytest.mark.slow),
    pytest.param("phone", True, marks=pytest.mark.slow),
]
SIZES = {"desk": DESK, "phone": PHONE}


@pytest.mark.parametrize(("size", "scheme", "pages"), SEEN)
@pytest.mark.unmeasured
def test_every_page_can_be_used_by_everybody(browser, board, size, scheme, pages) -> None:
    rows = {it.branch: it.id for it in board.home.app.boards.board().rows}
    review = f"/t/{rows['fix-login']}/review"
    project = board.home.projects["shop"].id
    paths = ["/", f"{review}?c=0n11", f"/t/{rows['fix-login']}", f"/train/{project}"]
    paths += ["/?q=nothing", review, f"/t/{rows['csv-export']}", "/stats", "/events", "/new"]
    paths += ["/login?link=x", "/t/nothing"]
    paths.append(next(f"/t/{it}/output" for it in rows.values() if board.home.app.agents.of(it)))
    whole = {**SIZES[size], "height": 4000}  # so that no bar lies over what is measured
    made = context(browser, board, whole, color_scheme=scheme)
    page = made.new_page()
    for path in paths[:pages]:
        page.goto(f"{board.origin}{path}")

        found = Axe().run(page, options=RULES)

        told = [
            (it["id"], [at["html"] for at in it["nodes"]]) for it in found.response["violations"]
        ]
        assert told == [], path
        wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert not wide, f"{path} is wider than the screen"
    made.close()


@pytest.mark.parametrize(("size", "javascript"), WITH)
def test_a_change_is_approved_with_two_taps(browser, shop, size, javascript) -> None:
    id = waiting(shop.home)
    made = context(browser, shop, SIZES[size], java_script_enabled=javascript)
    page = made.new_page()

    page.goto(f"{shop.origin}/t/{id}/review")  # the first tap: the link of the notification
    page.get_by_role("button", name="Approve").click()  # the second
    page.wait_for_url(f"**/t/{id}")

    assert [it.gate for it in shop.home.load(id).approvals] == ["sign_off"]
    made.close()


@pytest.mark.parametrize(("size", "javascript"), WITH)
def test_comments_on_lines_are_sent_back(browser, shop, size, javascript) -> None:
    id = waiting(shop.home)
    made = context(browser, shop, SIZES[size], java_script_enabled=javascript)
    page = made.new_page()
    page.goto(f"{shop.origin}/t/{id}/review")

    page.locator("#f-0 .a a", has_text="11").first.click()
    page.get_by_label("Comment on line 11").fill("'//evil' starts with a slash too")
    page.get_by_role("button", name="Save comment").click()
    expect(page.locator(".said.draft")).to_contain_text("starts with a slash")
    page.get_by_text("Send back (1)").click()
    page.get_by_label("What is wrong with it?").fill("Not yet.")
    page.get_by_role("button", name="Send it back to its agent").click()
    page.wait_for_url(f"**/t/{id}")

    task = shop.home.load(id)
    assert task.status is Status.WORKING
    told = task.history[-1].feedback
    assert told is not None
    assert "'//evil' starts with a slash too" in [it.issue for it in told.findings]
    made.close()


def test_a_question_is_answered_from_the_board(browser, shop) -> None:
    task = shop.home.started("csv", "Export as CSV")
    shop.home.put(task, Status.CLARIFICATION, question="Comma or semicolon?")
    made = context(browser, shop, PHONE)
    page = made.new_page()
    page.goto(shop.origin)

    page.get_by_role("link", name="Answer", exact=True).click()
    page.get_by_label("Your answer").fill("Comma.")
    page.get_by_role("button", name="Send the answer").click()
    expect(page.get_by_label("Your answer")).to_have_count(0)

    assert shop.home.load(task.id).status is Status.WORKING
    made.close()


def test_an_open_board_shows_what_happens(browser, shop) -> None:
    task = shop.home.started("fix-login", "Fix the login")
    made = context(browser, shop, DESK)
    page = made.new_page()
    page.goto(shop.origin)
    expect(page.locator(f"#row-{task.id}")).to_contain_text("working")
    before = shop.home.app.store.head()

    shop.home.put(shop.home.load(task.id), Status.STUCK)
    for item in happened(shop.home, before):
        shop.feed.put(item)

    expect(page.locator(".need")).to_contain_text("Fix the login")
    expect(page.locator("#calls")).to_have_text("1 needs you")
    shop.feed.put({"lost": "the orchestrator has ended"})
    expect(page.locator("#lost")).to_contain_text("the orchestrator has ended")
    made.close()


def test_keys_lead_from_the_board_to_a_yes(browser, shop) -> None:
    id = waiting(shop.home)
    made = context(browser, shop, DESK)
    page = made.new_page()
    page.goto(shop.origin)

    page.keyboard.press("n")
    page.keyboard.press("Enter")
    page.wait_for_url("**/review")
    page.keyboard.press("a")
    assert shop.home.load(id).approvals == ()
    page.keyboard.press("a")
    page.wait_for_url(f"**/t/{id}")

    assert len(shop.home.load(id).approvals) == 1
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    made.close()


def test_a_file_that_is_opened_before_the_program_is_there_shows_its_lines(browser, shop) -> None:
    """And one whose lines could not be fetched shows a link, and them at its next opening."""
    task = shop.home.started("long", "Change a long file")
    long = {"long.py": "A = 1\n" * 1_600, "other.py": "B = 2\n" * 1_600}
    id = shop.home.waiting(shop.home.changed(task, long)).id
    made = context(browser, shop, DESK)
    page = made.new_page()
    held: list[Route] = []
    page.route("**/board.js*", lambda it: held.append(it))  # noqa: PLW0108 - as it wants one
    page.goto(f"{shop.origin}/t/{id}/review", wait_until="commit")
    early, other = page.locator("#f-0"), page.locator("#f-1")

    early.locator("summary").click()
    expect(early.get_by_role("link", name="Show this file")).to_be_visible()
    held[0].continue_()
    expect(early.locator(".l.a").first).to_contain_text("A = 1")
    page.route("**/review?part=*", lambda it: it.abort(), times=1)
    with page.expect_event("requestfailed"):
        other.locator("summary").click()
    expect(other.get_by_role("link", name="Show this file")).to_be_visible()
    other.locator("summary").click()
    other.locator("summary").click()

    expect(other.locator(".l.a").first).to_contain_text("B = 2")
    made.close()


def test_a_server_that_an_agent_starts_here_never_gets_the_cookie(browser, board) -> None:
    came: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            came.append(self.headers.get("cookie", ""))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    made = context(browser, board, DESK)
    page: Page = made.new_page()
    page.goto(board.origin)
    page.goto(f"http://127.0.0.1:{board.port}/")  # leads to the board, where one is logged in
    assert page.url.startswith(board.origin)
    for name in ("127.0.0.1", "localhost", "agent.localhost"):
        page.goto(f"http://{name}:{server.server_port}/")

    assert len(came) >= 3
    assert set(came) == {""}
    made.close()
    server.shutdown()
    server.server_close()
