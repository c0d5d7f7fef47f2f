"""Text of agents, git and people stays text, whatever it says."""

import os
import re
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser

from lockgate.core.lifecycle.decision import Decision
from lockgate.core.lifecycle.needs import gist
from lockgate.core.lifecycle.records import created
from lockgate.core.model.findings import Finding, GateFeedback, Location, Priority
from lockgate.core.model.landings import LandingHeld
from lockgate.core.model.task import (
    Approval,
    IterationOutcome,
    IterationRecord,
    Status,
    Task,
    TaskId,
)
from lockgate.faces.web.guard import COOKIE
from lockgate.faces.web.review import Place, draft_of
from lockgate.faces.words import task as words
from tests.faces import naughty
from tests.faces.web.conftest import CHROMIUM, without_waiting
from tests.faces.web.home import Home, a_home
from tests.faces.web.serving import Board, serving

pytestmark = pytest.mark.unmeasured

LONG = 5_000  # characters; what is longer is refused in some places
RUN = "window.pwned=1"
EACH_HELD = 4  # an event's reason, what a yes says, to which gate, and whose it is
# What a comment has that is kept, which the plain shop has none of.
OF_A_DRAFT = {"div id", "form data-draft", "form class"}
SHAPES = (
    "<script>{0}</script>",
    "<img src=x onerror={0}>",
    '"><script>{0}</script>',
    "'><img src=x onerror={0}>",
    "<svg/onload={0}>",
    "<svg><script>{0}</script></svg>",
    '" onmouseover="{0}" x="',
    "' onfocus='{0}' autofocus='",
    "</textarea><script>{0}</script>",
    "</title><script>{0}</script>",
    "</style><script>{0}</script>",
    "--><script>{0}</script><!--",
    "<iframe srcdoc='<script>{0}</script>'>",
    "<a href=javascript:{0}>x</a>",
    "javascript:{0}",
    "data:text/html,<script>{0}</script>",
    "<body onload={0}>",
    "<details open ontoggle={0}>",
    "<math><mi//xlink:href='data:x,<script>{0}</script>'>",
    "{{{{ {0} }}}}",
    "{{% raw %}}{0}",
    "${{{0}}}",
    "<base href=//evil.example>",
    "<form action=//evil.example><input type=submit>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<link rel=stylesheet href=//evil.example>",
    "<style>@import '//evil.example'</style>",
    "<object data=//evil.example>",
    "<embed src=//evil.example>",
    "<noscript><p title='</noscript><img src=x onerror={0}>'>",
    "<xss id=x tabindex=1 onactivate={0}></xss>",
    "<input onfocus={0} autofocus>",
    "<video><source onerror={0}></video>",
    "<marquee onstart={0}>",
    "\u202e<script>{0}</script>",
    "<scr\u200bipt>{0}</scr\u200bipt>",
    "&lt;script&gt;{0}&lt;/script&gt;",
    "&#60;script&#62;{0}",
    "%3Cscript%3E{0}%3C/script%3E",
    "\\x3cscript\\x3e{0}",
)
ALL = list(
    dict.fromkeys(
        [it.format(RUN) for it in SHAPES]
        + [it for it in naughty.NAUGHTY if it.strip() and it.isprintable() and len(it) < LONG]
        + [f"{quote}{shape.format(RUN)}" for quote in ("'", '"', "`", "<", ">") for shape in SHAPES]
    )
)[:260]
STRINGS = ALL if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else ALL[::3]


LONGEST_NAME = 255  # bytes
UNFIT = frozenset({".", "..", ".git"})
NUMBERED = re.compile(r"[hx]\d+")  # the tasks that are one string each


class Names(HTMLParser):
    """The names of all elements and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found = set[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(f"{tag} {name}" for name, _ in attrs)}


def path_of(number: int, text: str) -> str:
    """A file in a directory of its own: its name is that text, directories where that has some.

    What no file system takes (a long name) or git refuses (`.git`, `..`) is cut or marked.
    """
    parts = [
        os.fsdecode(os.fsencode(it)[:LONGEST_NAME]) if it not in UNFIT else f"{it}x"
        for it in text.split("/")
        if it
    ]
    return "/".join([f"d{number}", *parts]) if parts else f"d{number}"


def filled(place: Path) -> tuple[Home, Task]:
    """All of it in every field that agents, git and people write; and the change with the files."""
    home = a_home(place)
    one, every = home.started("plain", "Plain"), "\n".join(STRINGS)
    findings = tuple(Finding(Priority.P1_MAJOR, it, Location(it, 3)) for it in STRINGS)
    told = GateFeedback(
        gate_name=STRINGS[0], findings=findings, summary=STRINGS[1], suggested_action=""
    )
    outcome = IterationOutcome.FAILED_WITH_RETRY
    record = IterationRecord(iteration=1, agent_id="a", outcome=outcome, feedback=told)
    home.put(one, Status.CLARIFICATION, history=(record,), question=every)
    home.spoke(one, every)
    home.task("context", "Context", context=every.replace("\n", "\n\n"))
    held = home.changed(home.started("held", "Held"), {"held.txt": "x\n"})
    held = home.put(held, Status.REVIEWING, passed=("tests", "sign_off"), held=STRINGS[0])
    reasons = tuple(map(LandingHeld, STRINGS))
    said = tuple(Approval(it, held.patch, comment=it, by=it) for it in STRINGS)
    held = replace(held, rev=held.rev + 1, approvals=said)
    home.app.store.commit(Decision(held, reasons))
    pattern = replace(one, status=Status.PENDING, pinned=None, rev=0)
    for number, it in enumerate(STRINGS):
        named = replace(pattern, id=TaskId(f"h{number}"), summary=it, goal=it, branch=it, agent=it)
        home.app.store.create(created(named))
        holds = replace(held, id=TaskId(f"x{number}"), branch=f"x{number}", rev=0, held=it)
        home.app.store.create(created(replace(holds, approvals=())))
    files = dict.fromkeys(map(path_of, range(len(STRINGS)), STRINGS), "x\n")
    files["lines.py"] = f"{every}\n"
    return home, home.waiting(home.changed(home.started("change", "Change"), files))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Iterator[Board]:
    with without_waiting():
        home, change = filled(Path(tmp_path_factory.mktemp("hostile")))
    with serving(home) as board:
        files = board.site.files(home.app, change)
        index = next(n for n, it in enumerate(files) if it.name == "lines.py")
        for n, text in enumerate(STRINGS, start=1):
            place = Place(index, "new", n)
            draft = draft_of(files, change, place, {"text": text, "priority": "P1"})
            home.app.desk.save(draft, home.app.caller)
        yield board
    home.app.close()


def pages(board: Board) -> list[str]:
    app = board.home.app
    listed, after = ["/"], app.boards.board().after
    while after:
        listed.append(f"/?after={quote(after)}")
        after = app.boards.board(after=after).after
    rows = [it for it in app.boards.board(limit=500).rows if not NUMBERED.fullmatch(it.id)]
    tasks = [f"/t/{it.id}" for it in rows]
    reviews = [
        f"/t/{it.id}/review{more}" for it in rows if it.task.patch for more in ("", "?file=0")
    ]
    outputs = [f"/t/{it.id}/output" for it in rows if app.agents.of(it.id)]
    trains = [f"/train/{it.id}" for it in board.home.projects.values()]
    return [*listed, "/events", "/stats", *tasks, *reviews, *outputs, *trains]


def test_there_are_many_hostile_strings() -> None:
    assert len(ALL) >= 200


def test_a_page_with_hostile_text_has_no_other_elements_than_one_with_plain_text(
    board: Board, hostile: Board
) -> None:
    plain = set[str]()
    review = next(it for it in pages(board) if it.endswith("/review"))
    drafted = f"{review}?c=0n1"
    for path in (*pages(board), drafted, "/?after=live:9999999999.0:z"):
        plain |= Names(board.get(path).text).found

    for path in pages(hostile):
        assert Names(hostile.get(path).text).found <= plain | OF_A_DRAFT, path


def test_hostile_text_is_shown_as_it_is_wherever_it_stands(hostile: Board) -> None:
    """In summaries and branches, questions, files and their names, comments, output, TASK.md."""
    shown = {path: unescape(hostile.get(path).text) for path in pages(hostile)}
    every = [it for it in shown if it.startswith(("/?", "/t/")) or it == "/"]
    ids = {it.branch: it.id for it in hostile.home.app.boards.board(limit=500).rows}
    lines = next(
        n
        for n, it in enumerate(
            hostile.site.files(hostile.home.app, hostile.home.load(ids["change"]))
        )
        if it.name == "lines.py"
    )
    opened = unescape(hostile.get(f"/t/{ids['change']}/review?file={lines}").text)

    places = {
        "board": "".join(shown[it] for it in every if not it.startswith("/t/")),
        "question": shown[f"/t/{ids['plain']}"],
        "output": shown[f"/t/{ids['plain']}/output"],
        "context": shown[f"/t/{ids['context']}"],
        "lines": opened,
        "reasons of holds that were, and approvals": shown[f"/t/{ids['held']}"],
        "comments": opened.partition('class="said draft"')[2],
    }
    for name, text in places.items():
        missing = [it for it in STRINGS if words.safe(it).strip() not in text]
        # A line of output that begins so is a broken event, and passed over.
        assert [it for it in missing if name != "output" or not it.startswith("{")] == [], name
        assert "\u202e" not in text
        assert "\u200b" not in text
    held = shown[f"/t/{ids['held']}"]
    assert [it for it in STRINGS if held.count(words.safe(it).strip()) < EACH_HELD] == []
    asked = [words.safe(gist(f"Held: {it}")) for it in STRINGS]
    assert [it for it in asked if it not in shown["/"]] == []
    review = shown[f"/t/{ids['change']}/review"]
    paths = [words.safe(path_of(n, it)) for n, it in enumerate(STRINGS)]
    assert [it for it in paths if f'<span class="name">{it}</span>' not in review] == []


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_a_browser_runs_nothing_of_it_and_asks_no_other_host(
    browser: Browser, hostile: Board
) -> None:
    """Every page, in a real one, with JavaScript."""
    made = browser.new_context()
    cookie = {"name": COOKIE, "value": hostile.login, "url": hostile.origin}
    made.add_cookies([cookie])  # type: ignore[list-item]  # a plain dict will do
    page, asked = made.new_page(), set[str]()
    page.on("request", lambda it: asked.add(it.url.split("/")[2]))
    page.on("dialog", lambda it: asked.add("a dialog"))
    for path in (*pages(hostile), f"/?q={quote(ALL[2])}"):
        page.goto(f"{hostile.origin}{path}", wait_until="load")
        assert page.evaluate("window.pwned") is None, path
    made.close()
    assert asked == {hostile.served.host}


@pytest.mark.parametrize("q", ALL[:12])
def test_what_is_searched_for_comes_back_as_text(hostile: Board, q: str) -> None:
    text = hostile.get(f"/?q={quote(q)}").text

    assert RUN not in text or q not in text
    assert Names(text).found.isdisjoint({"iframe", "img", "object", "base"})
