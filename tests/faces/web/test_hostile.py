"""Text of agents, git and people stays text, whatever it says."""

from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle.records import created
from lockgate.core.model.findings import Finding, GateFeedback, Location, Priority
from lockgate.core.model.task import IterationOutcome, IterationRecord, Status, TaskId
from tests.faces import naughty
from tests.faces.web.home import a_home
from tests.faces.web.serving import Board, serving

RUN = "window.pwned=1"
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
STRINGS = list(
    dict.fromkeys(
        [it.format(RUN) for it in SHAPES]
        + [it for it in naughty.NAUGHTY if it.strip() and "\0" not in it and it.isprintable()]
        + [f"{quote}{shape.format(RUN)}" for quote in ("'", '"', "`", "<", ">") for shape in SHAPES]
    )
)[:260]


class Names(HTMLParser):
    """The names of all elements and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found = set[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(f"{tag} {name}" for name, _ in attrs)}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Iterator[Board]:
    home = a_home(Path(tmp_path_factory.mktemp("hostile")))
    one = home.started("plain", "Plain")
    findings = tuple(Finding(Priority.P1_MAJOR, it, Location(it, 3)) for it in STRINGS)
    told = GateFeedback(
        gate_name=STRINGS[0], findings=findings, summary=STRINGS[1], suggested_action=""
    )
    outcome = IterationOutcome.FAILED_WITH_RETRY
    record = IterationRecord(iteration=1, agent_id="a", outcome=outcome, feedback=told)
    home.put(one, Status.CLARIFICATION, history=(record,), question="\n".join(STRINGS))
    for number, text in enumerate(STRINGS):
        task = replace(
            one, id=TaskId(f"h{number}"), summary=text, goal=text, branch=text, agent=text, rev=0
        )
        home.app.store.create(created(replace(task, status=Status.PENDING, pinned=None)))
    changed = home.changed(
        home.started("change", "Change"), {"<b onclick=x>.py": f"{STRINGS[0]}\n"}
    )
    home.waiting(changed)
    with serving(home) as board:
        yield board
    home.app.close()


def pages(board: Board) -> list[str]:
    app = board.home.app
    listed, after = ["/"], app.boards.board().after
    while after:
        listed.append(f"/?after={quote(after)}")
        after = app.boards.board(after=after).after
    tasks = [it.id for it in app.boards.board().rows if not it.id.startswith("h")]
    return [*listed, "/events", *(f"/t/{it}" for it in tasks), f"/t/{tasks[0]}/review"]


def test_there_are_many_hostile_strings() -> None:
    assert len(STRINGS) >= 200


def test_a_page_with_hostile_text_has_no_other_elements_than_one_with_plain_text(
    board: Board, hostile: Board
) -> None:
    plain = set[str]()
    for path in (*[it for it in pages(board) if "after" not in it], "/?after=live:9999999999.0:z"):
        plain |= Names(board.get(path).text).found
    rows = board.home.app.boards.board().rows
    for path in [f"/t/{it.id}" for it in rows] + [
        f"/t/{it.id}/review" for it in rows if it.task.patch
    ]:
        plain |= Names(board.get(path).text).found

    for path in pages(hostile):
        assert Names(hostile.get(path).text).found <= plain, path


def test_hostile_text_is_shown_as_it_is(hostile: Board) -> None:
    shown = "".join(unescape(hostile.get(path).text) for path in pages(hostile))

    assert [it for it in STRINGS[:34] if it not in shown] == []
    assert "\u202e" not in shown
    assert "\u200b" not in shown


@pytest.mark.parametrize("q", STRINGS[:12])
def test_what_is_searched_for_comes_back_as_text(hostile: Board, q: str) -> None:
    text = hostile.get(f"/?q={quote(q)}").text

    assert RUN not in text or q not in text
    assert Names(text).found.isdisjoint({"iframe", "img", "object", "base"})
