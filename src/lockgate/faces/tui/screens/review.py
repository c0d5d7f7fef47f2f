"""The review: a change line by line, with the findings of gates and your own comments."""

from collections.abc import Callable, Iterator, Sequence

from textual.app import ComposeResult

from lockgate.core.model.task import TaskId
from lockgate.faces.tui.diff import DiffFile, DiffLine, Note, Row, in_order, placed, rows
from lockgate.faces.tui.look import Line, Lines, cell, cut, one, shown, spread, wide
from lockgate.faces.tui.panes import Made, Pane
from lockgate.faces.tui.screens.base import Face, Kit
from lockgate.faces.tui.source import Shown
from lockgate.faces.tui.window import Row as TaskRow
from lockgate.faces.words.task import SHORT, counted

SPLIT_FROM = 120  # columns from which the two files stand side by side
NUMBER = 6
STYLES = {"+": "add", "-": "del", "@": "busy", " ": "plain"}


class ReviewFace(Face):
    REVIEWS = True
    AUTO_FOCUS = "#diff"

    def __init__(self, desk: Kit, change: Shown) -> None:
        super().__init__(desk)
        self._split: bool | None = None  # as the user wants it; None goes by the width
        self._opened: set[int] = set()
        self._rows: list[Row] = []
        self._intro: list[Line] = []
        self.take(change)

    def take(self, change: Shown) -> None:
        """Show this change; comments stay at their lines, wherever those are now."""
        self.change = change
        self.files = in_order(change.files, change.protected)
        self._opened.clear()
        self._place()

    def _place(self) -> None:
        self.notes, self.lost = placed(self.files, self.change.notes)

    def body(self) -> ComposeResult:
        yield Pane(self.look, cursor=True, id="diff")

    def on_mount(self) -> None:
        self.query_one(Pane).draw(self._lines)

    def show_change(self, change: Shown) -> None:
        """The newer change in place of the one that is shown; nothing where that was left."""
        if not self.is_there:
            return
        moved = change.patch != self.change.patch
        self.take(change)
        pane = self.query_one(Pane)
        pane.redraw()
        if moved:
            pane.go(0)
            told = f"the change has moved while you read: this is {change.patch[:SHORT]} now"
            self.say(told, "need")
        self.refresh_bars()

    # --- what is shown --------------------------------------------------------------------------

    @property
    def task_id(self) -> TaskId:
        return self.change.row.id

    def row(self) -> TaskRow | None:
        return self.change.row

    @property
    def drafts(self) -> tuple[Note, ...]:
        return tuple(it for it in (*self.notes, *self.lost) if it.draft)

    def is_split(self, width: int) -> bool:
        return width >= SPLIT_FROM if self._split is None else self._split

    def _lines(self, width: int) -> Lines:
        split = self.is_split(width)
        self._intro = list(intro_lines(self.change, self.files, self.lost, width))
        self._rows = rows(self.files, self.notes, self._opened, split=split)
        before = len(self._intro)

        def make(at: int) -> Line:
            if at < before:
                return self._intro[at]
            row = self._rows[at - before]
            file = self.files[row.file]
            return row_line(row, file, width, split=split, change=self.change)

        return Made(before + len(self._rows), make)

    def at(self) -> Row | None:
        """The row under the cursor; None in the introduction."""
        n = self.query_one(Pane).cursor - len(self._intro)
        return self._rows[n] if 0 <= n < len(self._rows) else None

    def head(self, width: int) -> Line:
        row = self.at() if self.is_there else None
        name, drafts = "", len(self.drafts)
        if row is not None:
            file = self.files[row.file]
            mark = " (protected)" if file.name in self.change.protected else ""
            name = f"  file {row.file + 1}/{len(self.files)} {shown(file.name)}{mark}"
        left: Line = (
            (f" {self.change.row.id}", "head"),
            (f"  change {self.change.patch[:SHORT] or 'in the workspace'}", "plain"),
            (cut(name, max(0, width - 50)), "dim"),
        )
        told = counted(drafts, "comment") if drafts else "no comments"
        return spread(left, ((f"{told} ", "need" if drafts else "dim"),), width)

    def offers(self) -> Iterator[tuple[str, str]]:
        keys, kind = self.desk.keys, self.change.row.need
        if kind is not None and self.change.patch:
            yield keys.key("approve"), f"approve {self.change.patch[:6]}"
            told = f"send back ({len(self.drafts)})" if self.drafts else "send back"
            yield keys.key("reject"), told
        for name in ("comment", "uncomment", "hunk", "hunk_before", "file", "split", "why", "view"):
            if name != "uncomment" or self._draft_here():
                yield keys.key(name), keys.named(name).label
        yield keys.key("back"), "back"

    # --- keys -----------------------------------------------------------------------------------

    def on_pane_moved(self, event: Pane.Moved) -> None:
        self.refresh_bars()
        if event.opened:
            self._unfold()

    def does(self, action: str) -> bool:
        match action:
            case "hunk" | "hunk_before":
                self._jump(
                    lambda row: row.line is not None and row.line.kind == "@", action == "hunk"
                )
            case "file" | "file_before":
                self._jump(lambda row: row.head, action == "file")
            case "split":
                self._split = not self.is_split(self.query_one(Pane).size.width)
                self.query_one(Pane).redraw()
            case "unfold":
                self._unfold()
            case "back" | "quit":
                self.dismiss()
            case _:
                return False
        return True

    def _jump(self, wanted: Callable[[Row], bool], on: bool) -> None:  # noqa: FBT001 - a direction
        pane, before = self.query_one(Pane), len(self._intro)
        found = [n + before for n, row in enumerate(self._rows) if wanted(row)]
        beyond = [n for n in found if (n > pane.cursor if on else n < pane.cursor)]
        if beyond:
            to = beyond[0] if on else beyond[-1]
            pane.go(to)
            pane.scroll_to(y=max(0, to - 1), animate=False, immediate=True)
        else:
            self.say("there is no further one in this direction", "dim")

    def _unfold(self) -> None:
        row = self.at()
        if row is None or not (row.head and self.files[row.file].folded):
            self.say("Enter opens a large file; nothing is folded here", "dim")
            return
        self._opened.symmetric_difference_update({row.file})
        self.query_one(Pane).redraw()

    # --- comments -------------------------------------------------------------------------------

    def place_here(self) -> tuple[DiffFile, DiffLine] | None:
        """The file and the line that a comment would be at."""
        row = self.at()
        if row is None:
            return None
        if row.note is not None:
            return self._line_of(row.file, row.note)
        line = (
            row.beside if row.line is None or (row.beside and row.beside.kind == "+") else row.line
        )
        return (self.files[row.file], line) if line is not None and line.kind != "@" else None

    def _line_of(self, file: int, note: Note) -> tuple[DiffFile, DiffLine] | None:
        lines = self.files[file].lines
        found = (it for it in lines if it.side is note.side and it.number == note.line)
        line = next(found, None)
        return (self.files[file], line) if line is not None else None

    def draft_here(self) -> Note | None:
        """Your own comment at this line."""
        row = self.at()
        if row is not None and row.note is not None:
            return row.note if row.note.draft else None
        place = self.place_here()
        if place is None:
            return None
        file, line = place
        found = (
            it for it in self.notes if it.draft and (it.file, it.line) == (file.name, line.number)
        )
        return next(found, None)

    def _draft_here(self) -> bool:
        return self.is_there and self.draft_here() is not None


def intro_lines(
    change: Shown, files: Sequence[DiffFile], lost: Sequence[Note], width: int
) -> Iterator[Line]:
    """What it is, what is asked, what was wrong before, and the files."""
    added, removed = sum(it.added for it in files), sum(it.removed for it in files)
    yield ((cut(one(change.row.summary), width), "head"),)
    if change.asks:
        yield ((cut(one(change.asks), width), "need"),)
    yield (
        (f"{counted(len(files), 'file')} ", "plain"),
        (f"+{added}", "add"),
        (" ", "plain"),
        (f"-{removed}", "del"),
        (f"   {cut(one(change.judged), width - 30)}", "dim"),
    )
    for text in change.earlier:
        yield ((cut(f"earlier: {one(text)}", width), "dim"),)
    for note in change.general:
        yield note_line(note, width)
    for note in lost:
        where = f"{shown(note.file)}:{note.line}, no longer there: "
        yield ((cut(f"  {where}", width), "bad"), (cut(one(note.text), width), "plain"))
    if not files:
        yield (("there is no change yet", "dim"),)


def row_line(row: Row, file: DiffFile, width: int, *, split: bool, change: Shown) -> Line:
    if row.head:
        return head_line(file, width, protected=file.name in change.protected)
    if row.note is not None:
        return note_line(row.note, width)
    if not split:
        return _unified(row.line, width) if row.line is not None else ()
    if row.line is not None and row.line.kind == "@":
        return _unified(row.line, width)
    half = max(10, (width - 1) // 2)
    return (*_half(row.line, half, old=True), ("│", "rule"), *_half(row.beside, half, old=False))


def head_line(file: DiffFile, width: int, *, protected: bool) -> Line:
    renamed = f"{shown(file.before)} → " if file.before else ""
    size = "binary" if file.binary else f"+{file.added} -{file.removed}"
    mark = "  PROTECTED" if protected else ""
    folded = f"  ({file.size:,} bytes; Enter opens it)" if file.folded else ""
    text = f" {renamed}{shown(file.name)}  {size}{mark}{folded} "
    rule = "─" * max(0, width - wide(text) - 2)
    return (("──", "rule"), (cut(text, width - 2), "need" if protected else "head"), (rule, "rule"))


def note_line(note: Note, width: int) -> Line:
    who = f"    {'│' if note.draft else '!'} {note.priority} {one(note.by)}: "
    tail = " [draft]" if note.draft else ""
    text = cut(one(note.text), width - wide(who) - len(tail))
    return ((who, "mark" if note.draft else "bad"), (text, "head"), (tail, "dim"))


def _unified(line: DiffLine, width: int) -> Line:
    if line.kind == "@":
        return ((cell(f"  ··· line {line.new} {shown(line.text)}", width), "dim"),)
    old = str(line.old) if line.kind != "+" else ""
    new = str(line.new) if line.kind != "-" else ""
    numbers = f"{old:>{NUMBER}}{new:>{NUMBER}} "
    return ((numbers, "dim"), (f"{line.kind} {shown(line.text)}", STYLES[line.kind]))


def _half(line: DiffLine | None, to: int, *, old: bool) -> Line:
    if line is None:
        return ((" " * to, "dim"),)
    number = line.old if old else line.new
    room = to - NUMBER - 3
    text = cell(shown(line.text), room)
    return ((f"{number:>{NUMBER}} ", "dim"), (f"{line.kind} {text}", STYLES[line.kind]))
