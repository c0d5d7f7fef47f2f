"""One shop for all tests that only look; tests that change something have their own."""

from collections.abc import Iterator

import pytest

from lockgate.adapters.store.sqlite import SqliteDatabase
from tests.faces.web.home import a_shop
from tests.faces.web.serving import Board, serving


@pytest.fixture(scope="package")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    """While the shop is made, its database does not wait for the disk."""
    connect = SqliteDatabase._connect
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteDatabase, "_connect", lambda self, _synchronous: connect(self, "OFF"))
        home = a_shop(tmp_path_factory.mktemp("shop"))
    with serving(home) as served:
        yield served
    home.app.close()
