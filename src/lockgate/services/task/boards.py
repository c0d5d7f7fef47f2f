"""The board, the inbox and a task's page, as every face shows them."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.lifecycle.needs import Need, order
from lockgate.core.model.task import ProjectId, Task, TaskId
from lockgate.errors import Refused
from lockgate.ports import Cursor, TaskFilter
from lockgate.services.task.page import Pages, TaskPage
from lockgate.services.task.rows import Board, BoardRow, Source

PAGE = 50
BoardFilter = TaskFilter  # faces know no port
ALL = TaskFilter()
NEEDED = TaskFilter(needs=True)


class Inbox(Struct, frozen=True):
    """All that needs a human, in all projects."""

    needs: tuple[Need, ...]
    seq: int

    def facts(self) -> dict[str, object]:
        return {"needs": [it.facts() for it in self.needs], "seq": self.seq}


class Boards(Struct, frozen=True):
    source: Source
    pages: Pages

    def board(self, which: TaskFilter = ALL, after: str | None = None, limit: int = PAGE) -> Board:
        """Needs are never cut off, and stand on the first page: each task is shown once."""
        look = self.source.look()
        needed = look.needed(which.projects)
        needs = tuple(sorted((*needed.values(), *look.of_projects(which.projects)), key=order))
        first = () if after else look.rows_of(needs, which)
        recent = None if which.needs else self.source.store.recent(which, _parsed(after), limit)
        others = recent.tasks if recent else ()
        return Board(
            rows=(*first, *(look.row(it) for it in others if it.id not in needed)),
            after=_written(recent.after) if recent else None,
            counts=self.source.store.counts(which.projects),
            needs=needs,
            seq=look.seq,
        )

    def board_of(self, id: TaskId) -> Board:
        """One task, as its own session may see it."""
        look = self.source.look()
        row = replace(look.row(self.source.store.load(id)), need=None)
        return Board(rows=(row,), after=None, counts={}, needs=(), seq=look.seq)

    def inbox(self, projects: Iterable[ProjectId] = ()) -> Inbox:
        look, wanted = self.source.look(), frozenset(projects)
        needs = (*look.needed(wanted).values(), *look.of_projects(wanted))
        return Inbox(tuple(sorted(needs, key=order)), look.seq)

    def row(self, id: TaskId) -> BoardRow | None:
        """None where there is no such task."""
        task = self.source.store.find(id)
        return None if task is None else self.row_of(task)

    def rows(self, ids: Iterable[TaskId]) -> tuple[BoardRow, ...]:
        """Of these tasks, in one look; those that are gone have none."""
        look, found = self.source.look(), (self.source.store.find(id) for id in ids)
        return tuple(look.row(it) for it in found if it)

    def row_of(self, task: Task) -> BoardRow:
        return self.source.look().row(task)

    def page(self, id: TaskId) -> TaskPage:
        look = self.source.look()
        return self.pages.page(look.row(self.source.store.load(id)))


def _written(cursor: Cursor | None) -> str | None:
    if cursor is None:
        return None
    return f"{'ended' if cursor.ended else 'live'}:{cursor.updated!r}:{cursor.id}"


def _parsed(after: str | None) -> Cursor | None:
    if after is None:
        return None
    section, _, place = after.partition(":")
    updated, _, id = place.partition(":")
    try:
        return Cursor({"live": False, "ended": True}[section], float(updated), TaskId(id))
    except (KeyError, ValueError):
        raise Refused(
            "the list was not shown",
            why=f"{after!r} is no place in it",
            fix="take `after` of the page before, or leave it out",
        ) from None
