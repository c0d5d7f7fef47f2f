"""The board as text: what needs you first, then what goes on, for any width of terminal.

`columns` is how wide the terminal is; 0 is a pipe, where each thing has one line of any length.
Ids, questions and commands are never cut: a command that does not fit goes on in the next line.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from lockgate.core.lifecycle.advice import (
    Need,
    NeedKind,
    Trouble,
    large_change,
    last_failure,
    need_of,
)
from lockgate.core.model.task import Status, Task
from lockgate.faces.words.task import (
    MARKS,
    NOT_RUNNING,
    WORDS,
    agent_text,
    counted,
    mark_of,
    one_line,
    untrusted_lines,
    word_of,
)
from lockgate.services.task.views import BoardRow, Glance, Limited, Overview

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


def glance_text(seen: Glance, now: float, columns: int) -> str:
    tasks = [row.task for row in (*seen.needs, *seen.rows)]
    folded = ended_line(seen.ended)
    if not tasks:
        return f"{QUIET}\n{folded}" if folded else EMPTY
    titled = [
        (title, [_entry(row, now, needed=title == NEEDS) for row in rows])
        for title, rows in _sections(seen)
    ]
    lines = laid_out(titled, columns)
    lines += [f"more: lockgate task list --after {seen.after}"] if seen.after else []
    lines += [folded] if folded else []
    return "\n".join((*lines, *_legend(tasks, columns)))


def ended_line(ended: Mapping[Status, int]) -> str:
    """The tasks that are folded away; empty where there are none."""
    told = [f"{count} {WORDS[status]}" for status, count in ended.items() if count]
    return f"{', '.join(told)}: lockgate task list --ended" if told else ""


def status_text(
    pid: int | None, seen: Overview, troubles: Mapping[str, Trouble], now: float, columns: int
) -> str:
    """Of the whole home: the orchestrator, who is at work, and what needs you."""
    lines = [f"orchestrator: {f'process {pid}' if pid is not None else 'not running'}"]
    counts = [f"{count} {WORDS[status]}" for status, count in seen.counts.items() if count]
    lines.append(f"tasks: {', '.join(counts) or 'none'}")
    lines.append(f"agents at work: {len(seen.alive)}")
    lines += [
        f"  {it.id} ({it.role}, {agent_text(it.agent)}, for {age(now - it.started)})"
        for it in seen.alive
    ]
    lines += map(_limited_text, seen.limited)
    lines += [f"cannot go on: {lane}: {one_line(it.why)}" for lane, it in troubles.items()]
    waiting = len(seen.humans) + len(seen.lanes) + len(seen.untrusted)
    lines.append(f"needs you: {waiting or 'nothing'}")
    lines += untrusted_lines(seen.untrusted)
    lines += [f"  ! {lane}: {one_line(why)}" for lane, why in seen.lanes]
    needs = [_entry(row, now, needed=True) for row in _by_urgency(seen.needs)]
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


def _sections(seen: Glance) -> Iterator[tuple[str, tuple[BoardRow, ...]]]:
    """Each with its rows, in the order in which they are shown."""
    if seen.needs:
        yield NEEDS, _by_urgency(seen.needs)
    for title, statuses in SECTIONS.items():
        rows = tuple(row for row in seen.rows if row.task.status in statuses)
        if rows:
            yield title, rows


def _by_urgency(rows: Sequence[BoardRow]) -> tuple[BoardRow, ...]:
    """By priority, then by kind, then the one that waits longest."""
    order = list(NeedKind)

    def urgency(row: BoardRow) -> tuple[int, int, float]:
        need = need_of(row.task)
        return row.task.priority, order.index(need.kind) if need else len(order), row.task.updated

    return tuple(sorted(rows, key=urgency))


def _entry(row: BoardRow, now: float, *, needed: bool) -> Entry:
    task = row.task
    need = need_of(task) if needed else None
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
        ask = f"{need.ask}: {row.asked}" if row.asked else need.ask
        sized = need.kind in {NeedKind.LAND, NeedKind.APPROVE} and task.size.files
        yield one_line(f"{counted(task.size.files, 'file')}; {ask}" if sized else ask)
    if large_change(task):
        yield large_change(task)
    if task.status in {Status.WORKING, Status.STUCK} and last_failure(task):
        yield one_line(f"last failure, gate {last_failure(task)}")
    if row.trouble:
        yield one_line(f"broken: {row.trouble}")
    if task.status is Status.PENDING and task.depends_on:
        yield f"waits for {', '.join(task.depends_on)}"


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
