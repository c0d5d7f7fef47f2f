"""The five moments in a real browser, with the taps that each takes; and nothing but a keyboard."""

import pytest
from playwright.sync_api import Locator, Page, expect

from lockgate.core.model.task import Cause, Status
from tests.faces.web.conftest import CHROMIUM
from tests.faces.web.home import FIXED
from tests.faces.web.serving import Board, happened
from tests.faces.web.test_browser import SIZES, context, waiting

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
TARGET = 44  # pixels that a finger needs
# On the phone with JavaScript, on the desk without; the other two in `make soak`.
WITH = [
    ("phone", True),
    ("desk", False),
    pytest.param("phone", False, marks=pytest.mark.slow),
    pytest.param("desk", True, marks=pytest.mark.slow),
]


class Hand:
    """Taps, and counts them; what it taps must be large enough for a finger on a phone."""

    def __init__(self, page: Page, size: str) -> None:
        self.page, self.size, self.taps = page, size, 0

    def open(self, url: str, taps: int = 0) -> None:
        self.page.goto(url)
        self.taps = taps

    def tap(self, what: Locator, *, line: bool = False) -> None:
        box = what.bounding_box()
        assert box
        if self.size == "phone" and not line:  # a line of code is as high as its text
            assert box["height"] >= TARGET - 0.5, what
        what.click()
        self.taps += 1


def glance(board: Board, hand: Hand) -> None:
    hand.open(board.origin)
    expect(hand.page.locator(".need")).to_have_count(3)
    expect(hand.page.locator("#today")).to_contain_text("1 landed today")


def why_is_it_stuck(board: Board, hand: Hand) -> None:
    hand.open(board.origin)
    need = hand.page.locator(".need", has_text="Export")
    hand.tap(need.get_by_role("link", name="Send it on"))
    expect(hand.page.locator("#why")).to_contain_text("Stuck")
    expect(hand.page.get_by_role("button", name="Send it on")).to_be_visible()


def watch_the_queue(board: Board, hand: Hand) -> None:
    hand.open(board.origin)
    hand.tap(hand.page.get_by_role("link", name="Merge queue"))
    expect(hand.page.locator("svg.train")).to_contain_text("Keep the cart")


def comment_and_send_back(board: Board, hand: Hand) -> None:
    """Two taps for the comment, two to send all of it back."""
    id = waiting(board.home, "comment")
    hand.open(f"{board.origin}/t/{id}/review")
    hand.tap(hand.page.locator("#f-0 .a a", has_text="11").first, line=True)
    hand.page.get_by_label("Comment on line 11").fill("'//evil' starts with a slash too")
    hand.tap(hand.page.get_by_role("button", name="Save comment"))
    hand.tap(hand.page.get_by_text("Send back (1)"))
    hand.tap(hand.page.get_by_role("button", name="Send it back to its agent"))
    hand.page.wait_for_url(f"**/t/{id}")
    assert board.home.load(id).status is Status.WORKING


def approve(board: Board, hand: Hand) -> None:
    """The first tap is the link of the notification."""
    id = waiting(board.home, "approve")
    hand.open(f"{board.origin}/t/{id}/review", taps=1)
    hand.tap(hand.page.get_by_role("button", name="Approve"))
    hand.page.wait_for_url(f"**/t/{id}")
    assert [it.gate for it in board.home.load(id).approvals] == ["sign_off"]


MOMENTS = {
    glance: 0,
    why_is_it_stuck: 1,
    watch_the_queue: 1,
    comment_and_send_back: 4,
    approve: 2,
}


@pytest.mark.parametrize(("size", "javascript"), WITH)
@pytest.mark.unmeasured
def test_the_five_moments(browser, shop, size, javascript) -> None:
    home = shop.home
    waiting(home)
    home.put(home.started("csv", "Export"), Status.STUCK, cause=Cause.MAX_ITERATIONS)
    ready = home.changed(home.started("cart", "Keep the cart"), {"cart.py": "ITEMS = []\n"})
    home.put(ready, Status.REVIEWING, passed=("tests", "sign_off"))
    home.put(home.started("old", "Say hello"), Status.DONE, usd=0.2)
    made = context(browser, shop, SIZES[size], java_script_enabled=javascript)
    hand = Hand(made.new_page(), size)

    for moment, taps in MOMENTS.items():
        moment(shop, hand)
        assert hand.taps == taps, moment.__name__
    made.close()


def test_a_train_that_moves_is_seen_on_an_open_page(browser, shop) -> None:
    home = shop.home
    ready = home.changed(home.started("cart", "Keep the cart"), {"cart.py": "ITEMS = []\n"})
    made = context(browser, shop, SIZES["desk"])
    page = made.new_page()
    page.goto(f"{shop.origin}/train/{home.project('shop').id}")
    expect(page.get_by_text("Nothing waits to land")).to_be_visible()
    before = home.app.store.head()

    home.put(ready, Status.REVIEWING, passed=("tests", "sign_off"))
    for item in happened(home, before):
        shop.feed.put(item)

    expect(page.locator("svg.train")).to_contain_text("Keep the cart")
    made.close()


@pytest.mark.parametrize(("size", "javascript"), WITH)
def test_a_yes_to_a_change_that_moved_shows_the_new_one(browser, shop, size, javascript) -> None:
    id = waiting(shop.home)
    made = context(browser, shop, SIZES[size], java_script_enabled=javascript)
    page = made.new_page()
    page.goto(f"{shop.origin}/t/{id}/review")
    moved = FIXED.replace('HOME = "/home"', 'HOME = "/elsewhere"')
    shop.home.waiting(shop.home.changed(shop.home.load(id), {"login.py": moved}))

    with page.expect_response(lambda it: it.url.endswith("/approve")) as answer:
        page.get_by_role("button", name="Approve").click()

    assert answer.value.status == 409
    expect(page.get_by_role("alert")).to_contain_text("has moved on")
    expect(page.locator("#f-0")).to_contain_text('HOME = "/elsewhere"')
    assert shop.home.load(id).approvals == ()
    page.get_by_role("button", name="Approve").click()
    page.wait_for_url(f"**/t/{id}")
    assert len(shop.home.load(id).approvals) == 1
    made.close()


@pytest.mark.parametrize("javascript", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_with_a_keyboard_alone_a_question_is_answered_and_a_change_sent_back(
    browser, shop, javascript
) -> None:
    """Every stop of the Tab key can be seen; what has the focus is on the screen."""
    home, id = shop.home, waiting(shop.home)
    asks = home.put(home.started("csv", "Export"), Status.CLARIFICATION, question="Comma?")
    made = context(browser, shop, SIZES["desk"], java_script_enabled=javascript)
    page = made.new_page()

    page.goto(shop.origin)
    _tab_to(page, "Answer")
    page.keyboard.press("Enter")
    _tab_to(page, "", "textarea#message")
    page.keyboard.type("Comma.")
    _tab_to(page, "Send the answer")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Your answer")).to_have_count(0)
    page.goto(f"{shop.origin}/t/{id}/review")
    _tab_to(page, "Send back", "summary")
    page.keyboard.press("Enter")
    _tab_to(page, "", "textarea#message")
    page.keyboard.type("Not yet.")
    _tab_to(page, "Send it back to its agent")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/t/{id}")

    assert home.load(asks.id).status is Status.WORKING
    assert home.load(id).status is Status.WORKING
    made.close()


def _tab_to(page: Page, name: str, what: str = "a, button") -> None:
    """Press Tab until it is there; it must show that it has the focus."""
    for _ in range(80):
        page.keyboard.press("Tab")
        at = page.locator(":focus")
        if at.count() and _is(at, name, what):
            assert at.evaluate("it => getComputedStyle(it).outlineStyle") != "none", name
            expect(at).to_be_in_viewport()
            return
    raise AssertionError(f"no Tab leads to {name or what}")


def _is(at: Locator, name: str, what: str) -> bool:
    fits: bool = at.evaluate("(it, what) => it.matches(what)", what)
    return fits and (at.text_content() or "").strip().startswith(name)


@pytest.mark.slow
def test_five_thousand_files_are_opened_one_by_one(browser, shop) -> None:
    task = shop.home.started("many", "Change many files")
    files = {f"part{n % 50}/file_{n:04}.py": f"VALUE = {n}\n" for n in range(5_000)}
    id = shop.home.waiting(shop.home.changed(task, files)).id
    made = context(browser, shop, SIZES["phone"])
    page = made.new_page()
    page.goto(f"{shop.origin}/t/{id}/review")

    last = page.locator("details.file").last
    last.locator("summary").click()

    line = last.locator(".l.a code")
    line.wait_for()  # `expect` describes the whole page after a first look in vain: half a minute
    expect(line).to_have_text("VALUE = 4959")  # of part9
    page.get_by_role("button", name="Approve").click()
    page.wait_for_url(f"**/t/{id}")
    made.close()
