"""The board as text: what needs you first, then what goes on, for any width of terminal.

`columns` is how wide the terminal is; 0 is a pipe, where each thing has one line of any length.
Ids, questions and commands are never cut: a command that does not fit goes on in the next line.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from lockgate.core.lifecycle.needs import Need, NeedKind, Trouble, large_change, last_failure
from lockgate.core.model.landings import PullShown
from lockgate.core.model.task import Session, Status, Task
from lockgate.faces.words.task import (
    MARKS,
    NOT_RUNNING,
    WORDS,
    agent_text,
    counted,
    mark_of,
    one_line,
    word_of,
)
from lockgate.services.task.rows import Board, BoardRow
from lockgate.services.task.views import Limited

INDENT = "    "
ONE_COLUMN = frozenset((*MARKS.values(), NOT_RUNNING, "…"))
LEAST = 24  # columns that a summary needs to stand in its task's own line
NEEDED = 3  # the first columns of a row, which are never left out: mark, id, state
ELLIPSIS = "…"
EMPTY = 'no tasks yet; start one: lockgate run "what to do"'
QUIET = "nothing needs you, and no agent is at work"
NEEDS = "NEEDS YOU"
SECTIONS = {
    "WORKING": frozenset({Status.WORKING}),
    "CHECKING": frozenset({Status.AGENT_REVIEW}),
    "LANDING": frozenset({Status.REVIEWING}),
    "TO DO": frozenset({Status.PENDING}),
    "WAITING": frozenset({Status.CLARIFICATION, Status.STUCK, Status.PAUSED_FOR_INTERVENTION}),
    "ENDED": frozenset({Status.DONE, Status.CANCELLED}),
}
HEAD = ("", "TASK", "STATE", "AGE", "AGENT", "COST", "SUMMARY")
UNITS = ((7 * 86400, "w"), (86400, "d"), (3600, "h"), (60, "m"))


class Entry(Struct, frozen=True):
    """One task on the board: the cells of its line, and the lines below it.

    `said` is prose, which is wrapped; `todo` are commands with a verb each.
    """

    cells: tuple[str, ...]
    said: tuple[str, ...] = ()
    todo: tuple[tuple[str, str], ...] = ()


def board_text(seen: Board, now: float, columns: int, *, live: bool = True) -> str:
    """`live`: what has ended is not among the rows, and is counted in one line."""
    tasks = [row.task for row in seen.rows]
    ended = {it: seen.counts[it] for it in SECTIONS["ENDED"] if live and it in seen.counts}
    folded = ended_line({it: ended[it] for it in Status if it in ended})
    whole = need_lines(it for it in seen.needs if it.task is None)
    if not tasks:
        return "\n".join((*([QUIET, folded] if folded else [EMPTY]), *whole))
    titled = [
        (title, [_entry(row, now, needed=title == NEEDS) for row in rows])
        for title, rows in _sections(seen)
    ]
    lines = laid_out(titled, columns)
    lines += [f"more: lockgate task list --after {seen.after}"] if seen.after else []
    lines += [folded] if folded else []
    return "\n".join((*lines, *_legend(tasks, columns), *whole))


def need_lines(needs: Iterable[Need]) -> Iterator[str]:
    """What projects and the loop need, each with the commands that answer."""
    for need in needs:
        yield f"  {NOT_RUNNING if need.kind is NeedKind.TRUST else '!'} {one_line(need.ask)}"
        yield from (f"{INDENT}{it.verb}: {it.command}" for it in need.actions)


def inbox_text(needs: Sequence[Need], now: float, columns: int) -> str:
    """Every need in all projects: how long it waits, what it asks, the commands that answer."""
    if not needs:
        return "nothing needs you"
    lines = [f"{NEEDS} ({len(needs)})"]
    for need in needs:
        blocks = f", {counted(need.blocks, 'task')} behind it" if need.blocks else ""
        seen = ", seen" if need.dimmed else ""
        lines.append(f"{need.kind}  {need.task or ''}  {age(now - need.since)}{blocks}{seen}")
        lines += [f"{INDENT}{it}" for it in wrapped(one_line(need.ask), columns - len(INDENT))]
        if need.pull:
            lines += [
                f"{INDENT}{it}" for it in wrapped(pull_text(need.pull), columns - len(INDENT))
            ]
        lines += [f"{INDENT}{it.verb}: {it.command}" for it in need.actions]
    return "\n".join(lines)


def pull_text(it: PullShown) -> str:
    """What CI and reviewers say of a pull request, what it waits for and for whom; its link."""
    waits = f" ({it.waits})" if it.waits else ""
    parts = (
        f"CI {it.ci}" if it.ci else "",
        it.reviews,
        f"waits for {it.whom}{waits}" if it.whom else "",
    )
    told = "; ".join(filter(None, parts))
    return one_line(f"pull request #{it.number}{': ' + told if told else ''} {it.link}".strip())


def ended_line(ended: Mapping[Status, int]) -> str:
    """The tasks that are folded away; empty where there are none."""
    told = [f"{count} {WORDS[status]}" for status, count in ended.items() if count]
    return f"{', '.join(told)}: lockgate task list --ended" if told else ""


class Home(Struct, frozen=True, kw_only=True):
    """The whole home at a glance, as `status` shows it; the board has only what needs a human."""

    pid: int | None
    board: Board
    alive: tuple[Session, ...] = ()
    limited: tuple[Limited, ...] = ()
    troubles: Mapping[str, Trouble] = {}
    hosts: tuple[str, ...] = ()  # of a fleet, in words


def status_text(seen: Home, now: float, columns: int) -> str:
    """Of the whole home: the orchestrator, who is at work, and what needs you."""
    up = f"process {seen.pid}" if seen.pid is not None else "not running"
    lines = [f"orchestrator: {up}"]
    counts = [f"{count} {WORDS[status]}" for status, count in seen.board.counts.items() if count]
    lines.append(f"tasks: {', '.join(counts) or 'none'}")
    lines.append(f"agents at work: {len(seen.alive)}")
    lines += [
        f"  {it.id} ({it.role}, {agent_text(it.agent)}, for {age(now - it.started)})"
        for it in seen.alive
    ]
    lines += seen.hosts
    lines += map(_limited_text, seen.limited)
    lines += [f"cannot go on: {lane}: {one_line(it.why)}" for lane, it in seen.troubles.items()]
    asked = [it for it in seen.board.needs if it.kind is not NeedKind.YOURS]
    lines.append(f"needs you: {len(asked) or 'nothing'}")
    lines += need_lines(it for it in asked if it.task is None)
    needs = [_entry(row, now, needed=True) for row in seen.board.rows]
    return "\n".join((*lines, *(laid_out([(NEEDS, needs)], columns) if needs else ())))


def _limited_text(it: Limited) -> str:
    clock = datetime.fromtimestamp(it.until).astimezone().strftime("%H:%M")
    who = ", ".join(map(agent_text, it.agents))
    tasks = [
        f"{'1 task goes' if count == 1 else f'{count} tasks go'} on with {agent_text(agent)}"
        for agent, count in it.gone_on
    ]
    if it.waiting or not tasks:
        tasks.append("1 task waits" if it.waiting == 1 else f"{it.waiting} tasks wait")
    return f"{who}: limited until {clock}, {', '.join(tasks)}"


def age(seconds: float) -> str:
    for size, unit in UNITS:
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def cost(usd: float) -> str:
    return f"${usd:.2f}" if usd else ""


def width(text: str) -> int:
    """How many columns a terminal takes for a text of one line."""
    return len(text) if text.isascii() else sum(_columns(it) for it in text)


def padded(text: str, to: int) -> str:
    return text + " " * (to - width(text))


def cut(text: str, to: int) -> str:
    """The text, or as much of it as fits with an ellipsis."""
    if width(text) <= to:
        return text
    taken, used = list[str](), 0
    for it in text:
        used += _columns(it)
        if used > to - 1:
            break
        taken.append(it)
    return "".join(taken).rstrip() + ELLIPSIS if to > 0 else ""


def wrapped(text: str, to: int) -> list[str]:
    """The text in lines of at most that width; a longer word has a line of its own. 0: one line."""
    if to <= 0 or width(text) <= to:
        return [text]
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if width(joined) <= to or not lines[-1]:
            lines[-1] = joined
        else:
            lines.append(word)
    return lines


def laid_out(titled: Sequence[tuple[str, Sequence[Entry]]], columns: int) -> list[str]:
    """The sections below one head, their columns aligned with each other."""
    cells = [HEAD, *(it.cells for _, entries in titled for it in entries)]
    widths = [max(width(row[n]) for row in cells) for n in range(len(HEAD))]
    kept = _kept(widths, columns)
    lines = [_row(HEAD, widths, kept)]
    for title, entries in titled:
        lines.append(f"{title} ({len(entries)})")
        for entry in entries:
            lines += _entry_lines(entry, widths, kept, columns)
    return lines


def _kept(widths: Sequence[int], columns: int) -> list[int]:
    """The columns that fit; the summary counts as one only where there is room for it."""
    every = list(range(len(widths)))
    if columns <= 0:
        return every
    used, kept = -2, list[int]()
    for n in every[:-1]:
        more = widths[n] + 2 if widths[n] else 2
        if n < NEEDED or used + more <= columns:
            kept.append(n)
            used += more
    return (
        [*kept, every[-1]] if columns - used - 2 >= LEAST and len(kept) == len(every) - 1 else kept
    )


def _row(cells: Sequence[str], widths: Sequence[int], kept: Sequence[int]) -> str:
    return "  ".join(padded(cells[n], widths[n]) for n in kept).rstrip()


def _entry_lines(
    entry: Entry, widths: Sequence[int], kept: Sequence[int], columns: int
) -> Iterator[str]:
    last, room = len(HEAD) - 1, columns - len(INDENT)
    line = _row(entry.cells, widths, [n for n in kept if n != last])
    if last in kept:
        before = sum(widths[n] + 2 for n in kept[:-1])
        summary = cut(entry.cells[last], columns - before) if columns > 0 else entry.cells[last]
        yield f"{padded(line, before)}{summary}".rstrip()
    else:
        yield line
        yield f"{INDENT}{cut(entry.cells[last], max(room, LEAST))}"
    for text in entry.said:
        yield from (f"{INDENT}{it}" for it in wrapped(text, max(room, LEAST) if columns > 0 else 0))
    most = max((len(verb) for verb, _ in entry.todo), default=0)
    yield from (f"{INDENT}{verb + ':':<{most + 1}} {command}" for verb, command in entry.todo)


def _sections(seen: Board) -> Iterator[tuple[str, tuple[BoardRow, ...]]]:
    """Each with its rows, in the order in which they are shown."""
    needed = tuple(row for row in seen.rows if row.need)
    if needed:
        yield NEEDS, needed
    for title, statuses in SECTIONS.items():
        rows = tuple(row for row in seen.rows if not row.need and row.status in statuses)
        if rows:
            yield title, rows


def _entry(row: BoardRow, now: float, *, needed: bool) -> Entry:
    task = row.task
    need = row.need if needed else None
    cells = (
        mark_of(task),
        task.id,
        word_of(task),
        age(now - _since(task)),
        agent_text(task.agent),
        cost(task.usd),
        one_line(task.summary),
    )
    todo = tuple((it.verb, it.command) for it in need.actions) if need else ()
    return Entry(cells, tuple(_said(row, need)), todo)


def _since(task: Task) -> float:
    return task.taken_at if task.taken_over else task.updated


def _said(row: BoardRow, need: Need | None) -> Iterator[str]:
    task = row.task
    if need:
        sized = need.kind in {NeedKind.LAND, NeedKind.APPROVE} and task.size.files
        large = sized and not task.size.large
        yield one_line(f"{counted(task.size.files, 'file')}; {need.ask}" if large else need.ask)
    elif large_change(task):
        yield large_change(task)
    if row.pull:
        yield pull_text(row.pull)
    if task.status in {Status.WORKING, Status.STUCK} and last_failure(task):
        yield one_line(f"last failure, gate {last_failure(task)}")
    if task.status is Status.PENDING and row.waits_for:
        yield f"waits for {', '.join(row.waits_for)}"


def _legend(tasks: Sequence[Task], columns: int) -> list[str]:
    """What the marks that are on the board mean, and what an age is counted from."""
    there = {mark_of(it) for it in tasks}
    marks = [f"{mark} {WORDS[it]}" for it, mark in MARKS.items() if mark in there]
    marks += [f"{NOT_RUNNING} its agent is not running"] if NOT_RUNNING in there else []
    told = f"{', '.join(marks)}; AGE: since the last change of the task"
    return wrapped(told, columns)


def _columns(character: str) -> int:
    if character.isascii() or character in ONE_COLUMN:
        return 1
    from unicodedata import combining, east_asian_width

    if combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


GB, WORTH_TELLING = 10**9, 10**9  # bytes
_KEPT = {"layers": "set-up layers", "caches": "caches", "services": "service data"}


def kept_lines(sizes: Mapping[str, int]) -> tuple[str, ...]:
    """What is kept for later tasks, where it takes much of the disk."""
    if sum(sizes.values()) < WORTH_TELLING:
        return ()
    told = (f"{_KEPT[it]} {size / GB:.1f} GB" for it, size in sizes.items() if size >= GB / 20)
    return (f"kept on disk: {', '.join(told)}",)
