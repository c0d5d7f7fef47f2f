"""What keys do that are about no task: create, filter, search, projects, agents, keys, commands."""

import shlex
import sys
from pathlib import Path

from msgspec import Struct

from lockgate.faces.tui.actions.hand import Hand
from lockgate.faces.tui.keys import written
from lockgate.faces.tui.look import Line, one
from lockgate.faces.tui.screens.base import Asked, Face
from lockgate.faces.tui.screens.dialogs import Choice, Choose, Prompt, Read
from lockgate.faces.tui.screens.output import OutputFace
from lockgate.faces.tui.screens.review import ReviewFace
from lockgate.faces.tui.state import FILTERS
from lockgate.faces.tui.window import Row


class OnBoard(Struct, frozen=True):
    hand: Hand

    async def create(self) -> None:
        root = await self._root()
        if root is None:
            return
        text = await self.hand.text("A new task: its goal; below it what its agent must know")
        if text:
            id = await self.hand.read(lambda: self.hand.desk.deeds.create(root, text))
            self.hand.desk.state.selected = id
            self.hand.say(f"{id} is created", "ok")

    async def _root(self) -> Path | None:
        """Of the project that is shown; where all are, of the one that is chosen."""
        projects = await self.hand.read(self.hand.desk.source.projects)
        if self.hand.desk.state.project is not None or len(projects) == 1:
            wanted = self.hand.desk.state.project or projects[0].id
            return next((Path(it.root) for it in projects if it.id == wanted), None)
        choices = [Choice(it.root, it.name, it.root) for it in projects]
        box = Choose(self.hand.desk.look, "A new task in which project?", choices)
        found = await self.hand.app.push_screen_wait(box)
        return Path(found) if found else None

    async def filter(self) -> None:
        state, names = self.hand.desk.state, list(FILTERS)
        state.filter = names[(names.index(state.filter) + 1) % len(names)]
        self.hand.say("")
        self.hand.reload()

    async def search(self) -> None:
        asks = "Search in ids, branches and summaries (empty: all)"
        text = await self.hand.app.push_screen_wait(
            Prompt(self.hand.desk.look, asks, self.hand.desk.state.text)
        )
        if text is not None:
            self.hand.desk.state.text = text.strip()
            self.hand.reload()

    async def projects(self) -> None:
        projects = await self.hand.read(self.hand.desk.source.projects)
        choices = [
            Choice("", "all projects"),
            *(Choice(it.id, it.name, it.root) for it in projects),
        ]
        found = await self.hand.app.push_screen_wait(
            Choose(self.hand.desk.look, "Which project?", choices)
        )
        if found is None:
            return
        state = self.hand.desk.state
        state.project = next((it.id for it in projects if it.id == found), None)
        state.name = next((it.name for it in projects if it.id == found), "")
        self.hand.reload()

    async def back(self) -> None:
        state = self.hand.desk.state
        state.text, state.filter = "", "active"
        state.marked.clear()
        self.hand.say("")
        self.hand.reload()

    async def agents(self) -> None:
        sessions = await self.hand.read(self.hand.desk.source.at_work)
        if not sessions:
            self.hand.say("no agent is at work", "dim")
            return
        choices = [Choice(it.id, it.id, f"{it.role}, {one(it.agent)}") for it in sessions]
        found = await self.hand.app.push_screen_wait(
            Choose(self.hand.desk.look, "Agents at work", choices)
        )
        chosen = [it for it in sessions if it.id == found]
        if chosen:
            command = await self.hand.read(
                lambda: self.hand.desk.deeds.attach_command(chosen[0].task)
            )
            if command:
                self.hand.outside(command)
            else:
                await self.hand.app.push_screen_wait(OutputFace(self.hand.desk, chosen))

    async def keys(self) -> None:

        review = isinstance(self.hand.app.screen, ReviewFace)
        offered = self.hand.desk.keys.offered(review=review)
        lines: list[Line] = [
            ((f"  {' '.join(map(written, it.keys)):<18}", "key"), (it.says, "plain"))
            for it in offered
        ]
        lines.append((("  Tab               ", "key"), ("the other side", "plain")))
        await self.hand.app.push_screen_wait(Read(self.hand.desk.look, "Keys", lines=lines))

    async def palette(self) -> None:
        """Every action of the board, and every command of Lockgate."""
        screen = self.hand.app.screen
        rows = screen.rows() if isinstance(screen, Face) else ()
        choices = [
            Choice(f"!{it.name}", f"{it.label} ({self.hand.desk.keys.key(it.name)})", it.says)
            for it in self.hand.desk.keys.offered(review=isinstance(screen, ReviewFace))
            if it.label
        ]
        choices += [Choice(name, f"lockgate {name}", says) for name, says in self.hand.commands]
        found = await self.hand.app.push_screen_wait(
            Choose(self.hand.desk.look, "Commands", choices)
        )
        if found is None:
            return
        if found.startswith("!"):
            self.hand.app.post_message(Asked(found[1:], rows))
            return
        await self._command(found, rows)

    async def _command(self, name: str, rows: tuple[Row, ...]) -> None:
        """Its line can be changed before it is run."""
        text = f"{name} {rows[0].id}" if rows else name
        line = await self.hand.app.push_screen_wait(
            Prompt(self.hand.desk.look, "lockgate", f"{text} ")
        )
        if line and line.strip():
            try:
                words = shlex.split(line)
            except ValueError as error:
                self.hand.say(f"nothing was run: {error}", "bad")
                return
            self.hand.outside((sys.executable, "-m", "lockgate", *words), pause=True)
