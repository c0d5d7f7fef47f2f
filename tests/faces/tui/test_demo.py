"""The whole demo on the board, by keys alone: what is asked is answered there, until all landed."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockgate.bootstrap import App, make_demo_repository, open_app
from lockgate.core.lifecycle.needs import Need, NeedKind
from lockgate.core.model.task import Status, TaskId
from lockgate.faces.demo.command import at_work
from lockgate.faces.demo.story import LANDED, NO, TASKS, check_evidence, check_log
from lockgate.faces.tui.screens.base import Face
from lockgate.faces.tui.screens.dialogs import Write
from lockgate.faces.tui.screens.review import ReviewFace
from tests.faces.tui.driving import Driven, drive


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    monkeypatch.setenv("LOCKGATE_NO_ORCHESTRATOR", "1")  # the demo has one in this process
    why_bare = make_demo_repository(tmp_path / "repository", 0.0)
    it = open_app({"HOME": str(tmp_path), "LOCKGATE_HOME": str(tmp_path / "home")})
    if why_bare:
        it.configuration.agree(it.projects.here(tmp_path / "repository"))
    yield it
    it.agents.end_all(1.0)
    it.close()


class Visitor:
    """Who sits at the board; `ids` are those of the tasks by their branches."""

    def __init__(self, app: App, board: Driven) -> None:
        self.app, self.board = app, board
        self.ids = {it: app.tasks.find(f"{it}-") for it in TASKS}

    def need(self, branch: str) -> Need | None:
        """What the board shows that it needs; not what the store has."""
        row = self.board.app.desk.state.window.row(self.ids[branch])
        return row.need if row is not None else None

    def kinds(self) -> dict[str, NeedKind]:
        needs = {it: self.need(it) for it in TASKS}
        return {branch: need.kind for branch, need in needs.items() if need is not None}

    async def goes_to(self, id: TaskId) -> None:
        """By the key that leads from need to need."""
        for _ in range(len(TASKS) + 1):
            if self.board.app.desk.state.selected == id:
                return
            await self.board.press("n")
        raise AssertionError(self.board.text)

    async def reads(self, branch: str) -> None:
        await self.goes_to(self.ids[branch])
        await self.board.press("a")
        await self.board.until(
            lambda: isinstance(self.board.app.screen, ReviewFace), f"the change of {branch}"
        )

    async def approves(self, branch: str) -> None:
        need = self.need(branch)
        await self.reads(branch)
        await self.board.press("a")
        await self.board.until(lambda: isinstance(self.board.app.screen, Face), "the board")
        await self.board.until(lambda: self.need(branch) != need, f"{branch} is answered")

    async def sends_back(self, branch: str, why: str) -> None:
        await self.reads(branch)
        await self.board.press("r")
        await self.board.until(lambda: isinstance(self.board.app.screen, Write), "the box")
        await self.board.write(why)
        await self.board.press("ctrl+s")
        await self.board.until(lambda: self.need(branch) is None, f"{branch} works again")

    def status(self, branch: str) -> Status:
        return self.app.views.load(self.ids[branch]).status


async def play(me: Visitor) -> None:
    """As `lockgate demo` does by itself."""
    board = me.board
    await board.until(lambda: me.kinds().get("tidy-names") is NeedKind.APPROVE, "tidy-names asks")
    await me.reads("tidy-names")
    await board.sees("differential asks", "test_capitals_become_small")
    await board.press("escape")
    await me.sends_back("tidy-names", NO)
    await board.until(lambda: me.kinds().get("fix-login") is NeedKind.APPROVE, "fix-login asks")
    await me.approves("fix-login")
    await board.until(lambda: me.kinds() == dict.fromkeys(TASKS, NeedKind.LAND), "all have passed")
    for branch in TASKS:
        await me.approves(branch)
    await board.until(lambda: me.kinds() == {"add-export": NeedKind.LAND}, "it passed once more")
    await me.approves("add-export")
    await board.until(lambda: all(me.status(it) is Status.DONE for it in TASKS), "all landed")


def test_the_demo_is_played_to_its_end_by_keys_alone(app: App, tmp_path: Path):
    async def story(board: Driven) -> None:
        await board.until(lambda: board.app.desk.state.link.pid, "the feed")
        me = Visitor(app, board)
        await play(me)
        await board.sees("nothing needs you", "ENDED 3")
        await board.press("f", "f")
        await board.sees(*me.ids.values())
        await board.press("3")
        await board.sees("main", "landed today 3")
        await board.press("4")
        await board.sees("landed 3")
        await board.press("5")
        await board.sees("has landed as")
        sys.stdout.write(f"\nthe demo on the board: {board.keys} keys besides the words\n")
        check_log(app, me.ids, LANDED)
        check_evidence(app, root, map(app.views.load, me.ids.values()))

    root = tmp_path / "repository"
    with at_work(app, root):
        drive(app, story, where=root, size=(140, 40))
