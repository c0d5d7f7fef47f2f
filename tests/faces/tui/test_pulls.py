"""The pull request of a task in the board's list, preview and inbox."""

from collections.abc import Sequence

from msgspec.structs import replace

from lockgate.core.lifecycle.needs import need_of
from lockgate.core.model.landings import PullShown
from lockgate.core.model.task import Status
from lockgate.faces.tui.look import Line
from lockgate.faces.tui.preview import row_lines
from lockgate.faces.tui.rows import status_word
from lockgate.faces.tui.screens.views import need_lines
from lockgate.faces.tui.window import row_of
from tests.given import a_board, a_task

PULL = PullShown(number=12, link="https://github.com/o/r/pull/12", ci="running: build", whom="CI")


def told(lines: Sequence[Line]) -> str:
    return " ".join("".join(text for text, _ in line).strip() for line in lines)


def test_a_row_and_its_preview_name_the_pull_request() -> None:
    [row] = a_board([a_task(Status.REVIEWING, to_land=True)]).rows
    shown = row_of(replace(row, pull=PULL, place=(1, "waiting"), need=None).facts())

    assert status_word(shown) == "pull #12"
    assert "#12: CI running: build; waits for CI https://" in told(row_lines(shown, 200, 0.0))


def test_the_inbox_names_it_below_what_is_asked() -> None:
    need = need_of(a_task(Status.REVIEWING, held="pull request #12: it waits for an approval"))
    assert need

    lines = need_lines(replace(need, pull=PULL), "fix-login", 100, 0.0)

    assert "pull request #12: CI running: build" in told(lines)
