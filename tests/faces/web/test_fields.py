"""Every field of every page takes every hostile string, and the list of fields is whole.

The pages are made by the real app with something in every state; then each text that a template
puts into them is replaced by a hostile string, just before it is escaped. So a field that somebody
adds tomorrow is tried too. What lies between the database and the templates is in test_hostile.py.
"""

from collections.abc import Iterator, Mapping
from itertools import count

import pytest
from jinja2 import nodes
from markupsafe import Markup

from lockgate.core.lifecycle.needs import NeedKind
from lockgate.core.model.people import good_name
from lockgate.core.model.statistics import Spread
from lockgate.core.model.task import ProjectId, TaskId
from lockgate.faces.plot import Stack
from lockgate.faces.web import look, site, stats
from lockgate.faces.web.draw import drawn
from lockgate.faces.words import task as words
from lockgate.services.train.board import Car, CarGate, TrainBoard
from tests.faces.web.serving import Board
from tests.faces.web.test_hostile import STRINGS, Names, pages

# What others write, by the names that templates show it by.
WRITTEN = {
    "a task's goal, its summary, a name of a chart, the sections of TASK.md": "summary title",
    "TASK.md, lines of a change, comments on them": "text",
    "what a task's agent asks": "question",
    "what needs a human: a gate's question, the reason of a hold, why it is stuck": "ask why",
    "what a gate, a reviewer or a human found": "issue",
    "what a yes says": "comment",
    "names of files: of a change, of a finding, of a conflict": "file files path",
    "names of gates": "gate gate_name",
    "names of projects": "name project_name project_title",
    "names of branches: a task's, the target": "branch target",
    "names of agents, and of the seats of reviewers": "agent agent_text seat",
    "names of people": "by me",
    "what happened: an event's own words, a status, a reason": "told type",
    "lines of an agent's output": "piece",
    "what git says above a hunk, the line that a comment was on": "where quote",
    "what was searched for, and forms that come back as they were": "q find goal context",
    "refusals and troubles": "what fix trouble wrong notice",
    "figures and labels of statistics": "cell figure label says svg drawing",
    "ids of tasks in addresses and texts": "id task task_id w waits_for key need_link url",
    "addresses that came with a request, or from a forge": "path next back href link after",
    "who and what a pull request waits for": "whom waits reviews",
    "names of a fleet's hosts, and what each does": "host hosts",
}
# What is ours: numbers, times, words of a closed list, macros that have fields of their own.
OURS = """
    added ago b blocks calls ci clock code_of command commit count csrf days drafts earlier empty
    ended entered eta f folded gates get h how index iso it iteration kind l landed later left_out
    line live many mark mark_of max_iterations may may_work median_seconds mode money n need
    need_word new number page patch place position priority project project_id pull r removed
    replace result rev role row seconds seq sessions short since size span standing started state
    state_mark state_word strip t theme time tip token updated usd version window word_of
"""
TEMPLATES = "board task review output train stats events new message row need"
FEW = 8  # turns in `make check`: each gives each place another string


def leaves(node: nodes.Node) -> Iterator[str]:
    """The names that an expression of a template shows the values of."""
    if isinstance(node, nodes.Getattr):
        yield node.attr
    elif isinstance(node, nodes.Name):
        yield node.name
    else:
        for it in node.iter_child_nodes(exclude=("test",)):
            yield from leaves(it)


def test_a_page_shows_no_field_that_is_not_in_the_list() -> None:
    environment = look.environment()
    loader = environment.loader
    assert loader is not None
    shown = set[str]()
    for name in environment.list_templates(filter_func=lambda it: it.endswith(".html")):
        tree = environment.parse(loader.get_source(environment, name)[0])
        for output in tree.find_all(nodes.Output):
            shown |= {it for part in output.nodes for it in leaves(part)}
    listed = {it for names in WRITTEN.values() for it in names.split()}

    assert sorted(shown - listed - set(OURS.split())) == [], "put it into WRITTEN or OURS"
    assert sorted(listed - shown) == [], "no page shows it any more"


class Replaced:
    """Puts a hostile string where a text is shown: another one at each place, and in each turn."""

    def __init__(self) -> None:
        self.turn: int | None = None
        self.places = count()

    def __call__(self, value: object) -> object:
        if self.turn is None or not isinstance(value, str) or isinstance(value, Markup):
            return look._plain(value)
        return words.safe(STRINGS[(next(self.places) + self.turn) % len(STRINGS)])


@pytest.fixture
def kept(board: Board, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Mapping[str, object]]]:
    """Each template with the values that a real page has for it."""
    made = list[tuple[str, Mapping[str, object]]]()

    def noted(template: str, values: Mapping[str, object]) -> str:
        made.append((template, values))
        return look.rendered(template, values)

    monkeypatch.setattr(site, "rendered", noted)
    paths = [*pages(board), "/new", "/?q=cart", "/t/nothing", f"{outputs(board)}?q=helpers"]
    review = next(it for it in paths if it.endswith("/review"))
    for path in (*paths, f"{review}?c=0n1"):
        board.get(path)
    for row in board.home.app.boards.board().rows[:3]:
        site.row_html(row, many=True)
        if row.need:
            site.need_html(row.need, row, {})
    return made


def outputs(board: Board) -> str:
    return next(it for it in pages(board) if it.endswith("/output"))


def changed_by(kept: list[tuple[str, Mapping[str, object]]], turns: range) -> list[str]:
    """The templates that have other elements or attributes once hostile text stands in them."""
    environment, replaced, wrong = look.environment(), Replaced(), list[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(environment, "finalize", replaced)
        for template, values in kept:
            replaced.turn = None
            plain = Names(look.rendered(template, values)).found
            for replaced.turn in turns:
                text = look.rendered(template, values)
                if Names(text).found != plain or "\u202e" in text or "\u200b" in text:
                    wrong.append(f"{template}, turn {replaced.turn}")
    assert next(replaced.places) > len(STRINGS)
    return wrong


def test_hostile_text_in_any_field_of_any_page_adds_no_element(kept) -> None:
    assert {template for template, _ in kept} >= {f"{it}.html" for it in TEMPLATES.split()}
    assert changed_by(kept, range(0, len(STRINGS), len(STRINGS) // FEW)) == []


@pytest.mark.slow
def test_every_hostile_string_in_every_field_of_every_page_adds_no_element(kept) -> None:
    assert changed_by(kept, range(len(STRINGS))) == []


def in_drawings(text: str) -> str:
    """What is drawn, and so not escaped by the templates: the queue, bars and boxes."""
    car = Car(
        position=1,
        task=TaskId(text),
        summary=text,
        priority=3,
        patch=text,
        standing=text,
        why=text,
        gates=(CarGate(text, "passed"),),
    )
    board = TrainBoard(
        project=ProjectId("p"),
        target=text,
        tip=text,
        mode=text,
        holds=(text,),
        window=1,
        cars=(car,),
        landed=(),
        median_seconds=None,
    )
    bars = stats._bars("cost", "Cost", ("", "usd"), [Stack(text, (1.0,))]).svg
    boxes = stats._spreads("took", "Took", {text: Spread(n=1, p50=1.0, p90=2.0)}).svg
    return f"{drawn(board)}{bars}{boxes}"


def test_hostile_text_in_drawings_adds_no_element_and_hides_nothing() -> None:
    plain = Names(in_drawings("plain")).found

    for text in (*STRINGS, "\u202egpj.exe", "a\u200bb", "\x1b[31m", "\x9b2J"):
        made = in_drawings(text)
        assert Names(made).found == plain, text
        assert not set(made) & {"\u202e", "\u200b", "\x1b", "\x9b"}, text


def test_a_name_of_a_person_cannot_be_hostile() -> None:
    assert [it for it in STRINGS if good_name(it) and set(it) & set("<>&\"'` ")] == []


def test_every_kind_of_need_has_words_of_ours() -> None:
    assert set(look.NEEDS) == set(NeedKind)
