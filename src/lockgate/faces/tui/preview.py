"""The task under the cursor, beside the list: what it is, why it is there, what happened to it."""

from collections.abc import Iterator

from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.task import Session
from lockgate.faces.tui.look import BLANK, Line, Lines, cut, one, shown, spread, wrapped
from lockgate.faces.tui.rows import GATE_STYLES, GATES, status_word
from lockgate.faces.tui.source import Page
from lockgate.faces.tui.window import Row
from lockgate.faces.words.board import age, pull_text
from lockgate.faces.words.task import agent_text, counted, event_story

SOME = 5  # earlier findings, and files of a conflict, that are shown
MANY = 12  # files that are shown


def row_lines(row: Row, width: int, now: float) -> Lines:
    """What the list knows of it already."""
    return list(_top(row, width, now))


def _top(row: Row, width: int, now: float) -> Iterator[Line]:
    state = f"{status_word(row)}, {age(now - row.entered)}" if row.entered else status_word(row)
    name: Line = ((cut(row.id, width), "head"),)
    yield spread(name, ((state, "need" if row.need is not None else "dim"),), width)
    yield from wrapped(one(row.summary), width)
    if row.need is not None:
        yield BLANK
        yield from wrapped(f"{row.need.kind}: {one(row.need.ask)}", width, "need")
        yield from (
            ((cut(f"  {it.verb}: {one(it.command)}", width), "dim"),) for it in row.need.actions
        )
    yield BLANK
    if row.gates:
        yield from _gates(row, width)
    size = row.size
    if size.files:
        told = f"{counted(size.commits, 'commit')}, {counted(size.files, 'file')}"
        yield (
            (_label("Change") + told, "plain"),
            (f"  +{size.added}", "add"),
            (f" -{size.removed}", "del"),
        )
    cost = f"${row.usd:.2f}" if row.usd else "cost not reported"
    yield ((_label("Agent") + agent_text(row.agent), "plain"), (f"  {cost}", "dim"))
    yield ((_label("Branch") + cut(one(row.branch), width - 9), "dim"),)
    if row.host:
        yield ((_label("Host") + cut(one(row.host), width - 9), "dim"),)
    if row.pull is not None:
        yield from _told("Pull", pull_text(row.pull).removeprefix("pull request "), width)
    if row.waits_for:
        yield ((_label("After") + cut(", ".join(row.waits_for), width - 9), "dim"),)


def _label(name: str) -> str:
    return f"{name:<8} "


def _gates(row: Row, width: int) -> Iterator[Line]:
    """The gates with their marks, in as many lines as they need."""
    spans: list[tuple[str, str]] = [(_label("Gates"), "plain")]
    used = len(spans[0][0])
    for it in row.gates:
        text = f"{GATES.get(it.state, '·')} {one(it.gate)}  "
        if used + len(text) > width and used > len(_label("")):
            yield tuple(spans)
            spans, used = [(_label(""), "plain")], len(_label(""))
        spans.append((text, GATE_STYLES.get(it.state, "dim")))
        used += len(text)
    yield tuple(spans)


def page_lines(page: Page, width: int, now: float) -> Lines:
    """All about the task: the top, why it is there, what was wrong, who worked, what happened."""
    lines = [*_top(page.row, width, now), BLANK, *_why(page, width)]
    lines += _earlier(page, width)
    if page.files:
        lines += [BLANK, (("Files", "dim"),), *_files(page, width)]
    if page.runs:
        lines += [
            BLANK,
            (("Sessions", "dim"),),
            *(_session(it, width, now) for it in page.runs),
        ]
    lines += [BLANK, (("Timeline", "dim"),)]
    told = [(it, event_story(it)) for it in reversed(page.timeline)]
    lines += [_happened(it, story, width, now) for it, story in told if story]
    return lines


def _why(page: Page, width: int) -> Iterator[Line]:
    """What moves it on, where no need says so; what its gates and people said."""
    advice = page.why.advice
    if page.row.need is None:
        command = f": {one(advice.command)}" if advice.command else ""
        yield from _told("Next", f"{one(advice.why)}{command}", width)
    for gate in page.gates:
        if gate.why and gate.result != "passed":
            yield from _told("Gate", f"{one(gate.gate)} {one(gate.result)}: {one(gate.why)}", width)
    for yes in page.approvals:
        who = f" by {one(yes.by)}" if yes.by else ""
        said = f": {one(yes.comment)}" if yes.comment else ""
        yield from _told("Yes", f"{one(yes.gate)}{who}{said}", width)


def _told(label: str, text: str, width: int, style: str = "plain") -> Iterator[Line]:
    """A label, and a text that goes on below itself."""
    lines = wrapped(text, max(8, width - len(_label(""))), style)
    for n, line in enumerate(lines):
        yield ((_label("" if n else label), style), *line)


def _files(page: Page, width: int) -> Iterator[Line]:
    """What a human must see first is marked."""
    for it in page.files[:MANY]:
        lines = f"+{it.added} -{it.removed}" if it.added is not None else "binary"
        mark = "  protected" if it.protected else ""
        name = cut(shown(it.path), width - len(lines) - len(mark) - 4)
        yield (
            (f"  {name}  ", "need" if it.protected else "plain"),
            (lines, "dim"),
            (mark, "need"),
        )
    if len(page.files) > MANY:
        yield ((f"  and {len(page.files) - MANY:,} more", "dim"),)
    for other in page.conflicts:
        where = ", ".join(map(shown, other.files[:SOME]))
        yield from _told("Clash", f"with {other.task} in {where}", width, "need")


def _earlier(page: Page, width: int) -> Iterator[Line]:
    for text in page.earlier[-SOME:]:
        yield from _told("Earlier", one(text), width, "dim")


def _session(it: Session, width: int, now: float) -> Line:
    lasted = f"{age((it.ended or now) - it.started)}{'' if it.ended else ' so far'}"
    cost = f"  ${it.usd:.2f}" if it.usd else ""
    who = f"{it.role} {agent_text(it.agent)}" if it.agent else str(it.role)
    return ((cut(f"  {who}  {lasted}{cost}", width), "busy" if it.ended is None else "plain"),)


def _happened(event: StoredEvent, story: str, width: int, now: float) -> Line:
    when = f"{age(now - event.time):>4}  "
    return ((when, "dim"), (cut(one(story), width - len(when)), "plain"))
