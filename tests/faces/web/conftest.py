"""One shop for all tests that only look; tests that change something have their own."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest

from lockgate.adapters.store.sqlite import SqliteDatabase
from tests.faces.web.home import a_shop
from tests.faces.web.serving import Board, serving


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
