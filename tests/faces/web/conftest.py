"""One shop for all tests that only look; tests that change something have their own."""

import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from lockgate.adapters.store.sqlite import SqliteDatabase
from tests.faces.web.home import a_home, a_shop
from tests.faces.web.serving import Board, serving

CHROMIUM = shutil.which("chromium")


@contextmanager
def without_waiting() -> Generator[None]:
    """A database that is opened here does not wait for the disk."""
    connect = SqliteDatabase._connect
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteDatabase, "_connect", lambda self, _synchronous: connect(self, "OFF"))
        yield


@pytest.fixture(scope="package")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    with without_waiting():
        home = a_shop(tmp_path_factory.mktemp("shop"))
    with serving(home) as served:
        yield served
    home.app.close()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Board]:
    """A home of the test's own, with nothing in it."""
    with without_waiting():
        home = a_home(tmp_path)
    with serving(home) as board:
        yield board
    home.app.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()
