"""A change that is larger than one expects: every place where a human decides says so."""

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle.advice import Advice
from lockgate.core.lifecycle.needs import large_change
from lockgate.core.model.task import Size, Status, Task
from lockgate.faces.cli.operate.run import ending_text
from lockgate.faces.words import board, queue
from lockgate.faces.words import task as words
from lockgate.services.task.page import TaskPage
from lockgate.services.task.views import TaskView, Why
from tests.given import a_board, a_row, a_task, needs_human

SAID = "large change: 1,802 files, 0.0 MB added"
LARGE = replace(a_task(Status.REVIEWING), patch="p" * 64, size=Size(1802, 9000))
WAITING = replace(LARGE, status=Status.AGENT_REVIEW, waiting="approval")


@pytest.mark.parametrize(
    ("size", "large"),
    [
        (Size(200, 1_000_000), ""),
        (Size(201, 5), "large change: 201 files, 0.0 MB added"),
        (Size(1, 3_450_000), "large change: 1 files, 3.5 MB added"),
    ],
)
def test_more_than_200_files_or_1_mb_is_large(size, large) -> None:
    assert large_change(replace(LARGE, size=size)) == large


def _page(task: Task) -> TaskPage:
    view = TaskView(task=task, trouble=None, body=None, sessions=(), pending=(), gates=())
    return TaskPage(
        row=a_row(task),
        view=view,
        file="TASK.md",
        sections=(),
        timeline=(),
        findings=(),
        files=(),
        why=Why(task, Advice("it waits"), ()),
        conflicts=(),
        evidence=None,
    )


@pytest.mark.parametrize(
    "told",
    [
        needs_human(LARGE),
        needs_human(WAITING),
        needs_human(replace(LARGE, held="no")),
        board.board_text(a_board([LARGE]), 0.0, 0),
        words.task_text(_page(LARGE)),
        words.change_text(WAITING, ("a.py",)),
        queue.steered_text(replace(LARGE, to_land=True)),
        ending_text(None, replace(LARGE, status=Status.DONE, landed="c" * 40)),  # type: ignore[arg-type]  # not asked
        ending_text(None, WAITING),  # type: ignore[arg-type]  # not asked
    ],
)
def test_its_size_is_said_where_a_human_looks(told) -> None:
    assert SAID in told


def test_nothing_is_said_of_a_change_of_usual_size() -> None:
    usual = replace(LARGE, size=Size(3, 900))

    assert "large" not in needs_human(usual)
    assert "large" not in words.task_text(_page(usual))
    assert "large" not in board.board_text(a_board([usual]), 0.0, 0)
