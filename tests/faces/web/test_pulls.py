"""The pull request of a task on the web board and on its page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lockgate.adapters.store.pulls import SqlPulls
from lockgate.core.forge.model import Pull
from lockgate.core.model.task import TaskId
from tests.faces.web.home import a_home
from tests.faces.web.serving import Board, serving

LINK = '<a href="https://github.com/o/r/pull/12" rel="noopener noreferrer">pull request #12</a>'


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Board]:
    home = a_home(tmp_path)
    with serving(home) as board:
        yield board
    home.app.close()


def test_its_number_link_ci_reviews_and_what_it_waits_for_are_shown(shop: Board) -> None:
    task = shop.home.started("fix-login", "Fix it")
    pull = Pull(
        task=TaskId(task.id),
        project=task.project,
        number=12,
        url="https://github.com/o/r/pull/12",
        ci="failed: <b>build</b>",
        reviews="@ann approved",
        waits="it waits for an approval",
        whom="people",
    )
    SqlPulls(shop.home.app.store.database).put(pull)

    for page in ("/", f"/t/{task.id}"):
        text = shop.get(page).text
        assert LINK in text
        assert "CI failed: &lt;b&gt;build&lt;/b&gt;" in text
        assert "@ann approved" in text
        assert "waits for people (it waits for an approval)" in text
