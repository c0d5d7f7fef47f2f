"""What keys do in the review: yes to the change that is shown, no with all comments, a comment."""

from collections.abc import Callable

from msgspec import Struct

from lockgate.core.model.task import TaskId
from lockgate.errors import LockgateError
from lockgate.faces.tui.actions.hand import Hand
from lockgate.faces.tui.deeds import Place, as_written
from lockgate.faces.tui.look import Lines, cut, one
from lockgate.faces.tui.rows import fits
from lockgate.faces.tui.screens.dialogs import Write
from lockgate.faces.tui.screens.review import ReviewFace
from lockgate.faces.words.task import counted


class OnReviews(Struct, frozen=True):
    hand: Hand

    async def approve(self) -> None:
        gate = self._review().change.gate
        await self._say_yes(lambda id, patch: self.hand.desk.deeds.approve(id, patch, gate))

    async def land(self) -> None:
        await self._say_yes(self.hand.desk.deeds.land)

    async def _say_yes(self, deed: Callable[[TaskId, str], str]) -> None:
        """Bound to the change that is shown; where that has moved, the new one is shown."""
        screen = self._review()
        id, patch = screen.task_id, screen.change.patch
        if not fits("approve", screen.change.row):
            await self.hand.why_not("approve", screen.change.row)
            return
        if await self.hand.do(lambda: deed(id, patch)):
            said = screen.said
            screen.dismiss()
            self._say_below(said)
        else:
            await self.refresh(id)

    async def reject(self) -> None:
        """All drafts and a summary go back to the agent as findings."""
        screen = self._review()
        id, patch, drafts = screen.task_id, screen.change.patch, screen.drafts
        about = [
            ((cut(f"{it.priority} {it.file}:{it.line} {one(it.text)}", 100), "plain"),)
            for it in drafts
        ]
        told = counted(len(drafts), "comment")
        box = Write(self.hand.desk.look, f"Send {id} back with {told}; in one sentence:", about)
        text = await self.hand.app.push_screen_wait(box)
        if text is None:
            return
        summary = text.strip() or (f"see the {told}" if drafts else "")
        if not summary:
            self.hand.say("nothing was sent back: say what is wrong, or comment on a line", "bad")
            return
        if await self.hand.do(lambda: self.hand.desk.deeds.reject(id, patch, summary, drafts)):
            said = screen.said
            await self.hand.read(lambda: self.hand.desk.deeds.forget_drafts(id, drafts))
            screen.dismiss()
            self._say_below(said)
        else:
            await self.refresh(id)

    def _say_below(self, text: str) -> None:
        self.hand.app.call_after_refresh(self.hand.say, text, "ok")

    def _review(self) -> ReviewFace:
        found = [it for it in self.hand.app.screen_stack if isinstance(it, ReviewFace)]
        return found[-1]

    async def refresh(self, id: TaskId) -> None:
        """The change as it is now, in the review that is open."""
        found = [
            it
            for it in self.hand.app.screen_stack
            if isinstance(it, ReviewFace) and it.task_id == id
        ]
        if not found:
            return
        said = found[-1].said
        try:
            change = await self.hand.read(lambda: self.hand.desk.source.change(id))
        except LockgateError as error:
            found[-1].say(f"{error.what}: {error.why}", "bad")
            return
        moved = change.patch != found[-1].change.patch
        found[-1].show_change(change)
        if said and not moved:
            found[-1].say(said, "bad")
        elif said:
            found[-1].say(f"{found[-1].said}; {said}", "need")

    async def comment(self) -> None:
        screen = self._review()
        place, draft = screen.place_here(), screen.draft_here()
        if place is None:
            self.hand.say("a comment stands at a line of the change; move to one", "dim")
            return
        file, line = place
        about: Lines = [((cut(f"{file.name}:{line.number}  {one(line.text)}", 100), "dim"),)]
        asks = "Comment (! in front: must be fixed; ~: only a note, kept by your yes)"
        text = await self.hand.text(asks, about, as_written(draft) if draft else "")
        if text:
            at = Place(screen.task_id, screen.change.patch, file.name, line)
            await self.hand.read(lambda: self.hand.desk.deeds.keep_draft(at, text, draft))
            await self.refresh(screen.task_id)

    async def uncomment(self) -> None:
        screen = self._review()
        draft = screen.draft_here()
        if draft is None:
            self.hand.say("there is no comment of yours at this line", "dim")
            return
        await self.hand.read(lambda: self.hand.desk.deeds.forget_drafts(screen.task_id, (draft,)))
        await self.refresh(screen.task_id)
