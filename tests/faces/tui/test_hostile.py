"""Text of agents, git and people that wants to be more than text."""

import sqlite3
from contextlib import closing

import pytest
from msgspec.structs import replace

from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.task import TaskId
from lockgate.faces.tui.diff import Note, parsed
from lockgate.faces.tui.diff import rows as diff_rows
from lockgate.faces.tui.look import Look, plain_text
from lockgate.faces.tui.preview import row_lines
from lockgate.faces.tui.rows import ask_lines, columns_for, row_line
from lockgate.faces.tui.screens.review import intro_lines, note_line
from lockgate.faces.tui.screens.review import row_line as diff_line
from lockgate.faces.tui.screens.views import event_line, need_lines
from lockgate.faces.tui.source import Shown
from lockgate.faces.tui.window import Row, row_of
from tests.faces.naughty import NAUGHTY
from tests.faces.tui.conftest import Home
from tests.faces.tui.driving import Driven

MARKUP = ("[red]x[/red]", "[/]", "[link=http://evil]x[/link]", "[@click=app.quit]x[/]", "{x}", "$x")
OSC = ("\x1b]52;c;ZXZpbA==\x07", "\x1b]0;title\x07", "\x9d52;c;x\x9c", "\x1b[2J", "\x1bP1$r\x1b\\")
TEXTS = tuple(dict.fromkeys((*NAUGHTY, *MARKUP, *OSC, *(f"a{it}b" for it in OSC))))
FORBIDDEN = {*map(chr, range(32)), *map(chr, range(0x7F, 0xA0))} | set("\u202e\u2066\u200b\ufeff")


@pytest.fixture(scope="module")
def row(seeded: Home) -> Row:

    app = seeded.app()
    found = app.boards.row(seeded.ids["approve"])
    app.close()
    assert found is not None
    return row_of(found.facts())


def test_there_are_many_of_them():
    assert len(TEXTS) >= 200


def test_no_text_moves_a_cursor_wherever_it_stands(row: Row):
    """In a row, a need, a preview, an event, a diff, a comment, a finding."""
    for text in TEXTS:
        assert row.need is not None
        need = replace(row.need, ask=text)
        evil = replace(row, summary=text, branch=text, agent=text, project_name=text, need=need)
        lines = [
            row_line(evil, columns_for(80, 4), 0.0, everywhere=True, marked=True),
            *ask_lines(evil, 80),
            *row_lines(evil, 60, 0.0),
            *need_lines(need, text, 80, 0.0),
            event_line(an_event(text), text, 80),
            *diff_lines(evil, text),
        ]
        made = plain_text(lines)
        assert not (set(made) - {"\n"}) & FORBIDDEN, text


def an_event(text: str) -> StoredEvent:
    return StoredEvent(seq=1, time=0.0, task=TaskId("t"), type="x", prev="", data={"x": text})


def diff_lines(row: Row, text: str):
    one = text.replace("\n", " ").replace("\r", " ")
    names = f"diff --git a/x b/{one}\n--- a/x\n+++ b/{one}\n"
    files = parsed(f"{names}@@ -1 +1 @@ {one}\n-{one}\n+{one}\n")
    note = Note(text=text, by=text, priority="P1", file="x", line=1)
    change = Shown(row=row, patch="p", files=files, asks=text, judged=text, earlier=(text,))
    yield from intro_lines(change, files, (note,), 80)
    yield note_line(note, 80)
    for split in (False, True):
        for it in diff_rows(files, (), (0,), split=split):
            yield diff_line(it, files[it.file], 120, split=split, change=change)


def test_a_hostile_task_on_the_screen_is_text(own: Home):
    """As a row of the database may have it: through the board, the page, why and TASK.md."""
    texts = ("[red]x[/red] \u202eevil", "[@click=app.quit]b[/] c", "\x1b]52;c;ZXZpbA==\x07pwn")
    shown = ("[red]x[/red] \ufffdevil", "[@click=app.quit]b[/] c", "\ufffd]52;c;ZXZpbA==\ufffdpwn")
    kinds = ("pending", "working", "stuck")
    with closing(sqlite3.connect(own.shell.home / "lockgate.db")) as db, db:
        for kind, text in zip(kinds, texts, strict=True):
            db.execute("UPDATE tasks SET summary = ? WHERE id = ?", (text, own.ids[kind]))

    async def story(board: Driven) -> None:
        await board.sees(*shown)
        await board.selects("pending")
        for key in ("w", "v", "enter"):
            await board.press(key)
            await board.pilot.pause()
            assert not set("\x1b\x07\u202e") & set(board.text)
            await board.press("escape")

    own.drive(story, size=(200, 50), read_only=True)


def test_a_line_of_ten_megabytes_is_drawn_at_once(row: Row):
    text = "x" * 10_000_000
    files = parsed(f"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-{text}\n+{text}\n")
    change = Shown(row=row, patch="", files=files)

    assert files[0].folded
    for it in diff_rows(files, (), (0,), split=True):
        line = diff_line(it, files[0], 200, split=True, change=change)
        assert sum(len(part) for part, _ in line) < 10_000


def test_ascii_terminals_get_ascii_from_any_text():
    look = Look("dark", utf8=False)

    assert all(look.text(it).isascii() for it in TEXTS)
