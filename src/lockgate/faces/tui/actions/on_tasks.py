"""What keys do with tasks: open, look, answer, say yes and no, take over, steer, cancel."""

from msgspec import Struct

from lockgate.core.model.task import TaskId
from lockgate.faces.tui.actions.hand import Hand, about_row, gate_of, patch_of
from lockgate.faces.tui.look import cut
from lockgate.faces.tui.rows import fits, opens
from lockgate.faces.tui.screens.dialogs import Choice, Choose, Read, Write
from lockgate.faces.tui.screens.output import OutputFace
from lockgate.faces.tui.screens.review import ReviewFace
from lockgate.faces.tui.window import Row
from lockgate.faces.words.task import counted

HOUR = 3600.0


class OnTasks(Struct, frozen=True):
    """Each method is one action on the rows that are marked, or on the one under the cursor."""

    hand: Hand

    # --- Enter ----------------------------------------------------------------------------------

    async def open(self, rows: tuple[Row, ...]) -> None:
        if len(rows) > 1:
            await self.approve(tuple(row for row in rows if fits("approve", row)) or rows)
            return
        row = next(iter(rows))
        match opens(row):
            case "review":
                await self.diff(rows)
            case "answer":
                await self._answer(row)
            case "directive":
                await self._direct(row)
            case "restart":
                await self.hand.do(lambda: self.hand.desk.deeds.restart(row.id))
            case "attach":
                await self._attach(row)
            case "start":
                await self.hand.do(lambda: self.hand.desk.deeds.start(row.id))
            case _:
                await self.page_of(row.id)

    async def _answer(self, row: Row) -> None:
        question = await self.hand.read(lambda: self.hand.desk.source.question(row.id))
        text = await self.hand.text(f"Answer {row.id}", self.hand.wrapped(question))
        if text:
            await self.hand.do(lambda: self.hand.desk.deeds.answer(row.id, text))

    async def _direct(self, row: Row) -> None:
        ask = row.need.ask if row.need is not None else ""
        asks = f"Let {row.id} go on; a hint for its agent (may be empty)"
        box = Write(self.hand.desk.look, asks, self.hand.wrapped(ask))
        text = await self.hand.app.push_screen_wait(box)
        if text is not None:
            await self.hand.do(lambda: self.hand.desk.deeds.direct(row.id, text.strip()))

    async def _attach(self, row: Row) -> None:
        if self.hand.desk.deeds.read_only:
            await self.output((row,))
            return
        command = await self.hand.read(lambda: self.hand.desk.deeds.attach_command(row.id))
        if command:
            self.hand.outside(command)
        else:
            await self.output((row,))

    async def page_of(self, id: TaskId) -> None:
        text = await self.hand.read(lambda: self.hand.desk.source.told(id))
        await self.hand.app.push_screen_wait(Read(self.hand.desk.look, id, text))

    # --- looking --------------------------------------------------------------------------------

    async def why(self, rows: tuple[Row, ...]) -> None:
        text = await self.hand.read(lambda: self.hand.desk.source.why(rows[0].id))
        await self.hand.app.push_screen_wait(
            Read(self.hand.desk.look, f"Why {rows[0].id} is there", text)
        )

    async def view(self, rows: tuple[Row, ...]) -> None:
        text = await self.hand.read(lambda: self.hand.desk.source.task_md(rows[0].id))
        await self.hand.app.push_screen_wait(
            Read(self.hand.desk.look, f"TASK.md of {rows[0].id}", text)
        )

    async def diff(self, rows: tuple[Row, ...]) -> None:
        change = await self.hand.read(lambda: self.hand.desk.source.change(rows[0].id))
        await self.hand.app.push_screen_wait(ReviewFace(self.hand.desk, change))

    async def output(self, rows: tuple[Row, ...]) -> None:
        ids = [row.id for row in rows]
        sessions = await self.hand.read(lambda: self.hand.desk.source.runs(ids))
        if not sessions:
            self.hand.say(f"no agent has worked on {ids[0]} yet", "dim")
            return
        await self.hand.app.push_screen_wait(OutputFace(self.hand.desk, sessions))

    async def editor(self, rows: tuple[Row, ...]) -> None:
        self.hand.outside(await self.hand.read(lambda: self.hand.desk.deeds.editor(rows[0].id)))

    async def copy(self, rows: tuple[Row, ...]) -> None:
        self.hand.app.copy_to_clipboard(rows[0].id)
        self.hand.say(f"copied: {rows[0].id}")

    # --- yes and no -----------------------------------------------------------------------------

    async def approve(self, rows: tuple[Row, ...]) -> None:
        """One is read first; several are listed with what each comes to."""
        if len(rows) == 1:
            await self.diff(rows)
        elif await self.hand.sure(f"Say yes to these {len(rows)} changes?", rows):
            await self.hand.each(
                rows, lambda row: self.hand.desk.deeds.approve(row.id, patch_of(row), gate_of(row))
            )

    async def land(self, rows: tuple[Row, ...]) -> None:
        await self.approve(rows)

    async def reject(self, rows: tuple[Row, ...]) -> None:
        row = rows[0]
        text = await self.hand.text(f"Send {row.id} back: what is wrong?", [about_row(row)])
        if text:
            await self.hand.do(lambda: self.hand.desk.deeds.reject(row.id, patch_of(row), text))

    # --- what goes on ---------------------------------------------------------------------------

    async def takeover(self, rows: tuple[Row, ...]) -> None:
        row = rows[0]
        if row.session == "human":
            text = await self.hand.text(f"Hand {row.id} back: what did you do?")
            if text:
                await self.hand.do(lambda: self.hand.desk.deeds.hand_back(row.id, text))
            return
        if await self.hand.sure("Take it over? Its agent stops, and its session is yours.", (row,)):
            self.hand.say(f"{row.id}: its session opens …")
            self.hand.outside(await self.hand.read(lambda: self.hand.desk.deeds.take_over(row.id)))

    async def say(self, rows: tuple[Row, ...]) -> None:
        text = await self.hand.text(f"A message to the agent of {rows[0].id}")
        if text:
            await self.hand.do(lambda: self.hand.desk.deeds.say(rows[0].id, text))

    async def cancel(self, rows: tuple[Row, ...]) -> None:
        if await self.hand.sure(f"Cancel {counted(len(rows), 'task')}? Branches stay.", rows):
            await self.hand.each(rows, lambda row: self.hand.desk.deeds.cancel(row.id))

    async def delete(self, rows: tuple[Row, ...]) -> None:
        if await self.hand.sure(f"Delete {counted(len(rows), 'task')} from the board?", rows):
            await self.hand.each(rows, lambda row: self.hand.desk.deeds.delete(row.id))

    async def queue(self, rows: tuple[Row, ...]) -> None:
        choices = (
            Choice("hold", "hold", "keep it from landing until somebody approves it again"),
            Choice("drop", "drop", "take it out; its agent gets your reason and works on"),
            Choice("land", "land", "let it land, also where it was held"),
        )
        names = ", ".join(row.id for row in rows)
        what = await self.hand.app.push_screen_wait(
            Choose(self.hand.desk.look, cut(names, 80), choices)
        )
        if what == "land":
            await self.approve(rows)
        elif what is not None:
            why = await self.hand.text(
                f"Why {what} {counted(len(rows), 'change')}?", [about_row(it) for it in rows]
            )
            deed = self.hand.desk.deeds.hold if what == "hold" else self.hand.desk.deeds.drop
            if why and await self.hand.sure(f"{what} {counted(len(rows), 'change')}?", rows):
                await self.hand.each(rows, lambda row: deed(row.id, why))

    async def seen(self, rows: tuple[Row, ...]) -> None:
        """Until its cause is another one, or for an hour."""
        keys = [row.need.key for row in rows if row.need is not None]
        await self.hand.read(lambda: self.hand.desk.deeds.snooze(keys, HOUR))
        self.hand.say(f"{counted(len(keys), 'need')} dimmed for an hour")
        self.hand.reload()
