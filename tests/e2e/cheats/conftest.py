"""One home for all cases, so that each base is measured once."""

import pytest

from tests.e2e.cheats.stage import Theatre


@pytest.fixture(scope="module")
def theatre(tmp_path_factory: pytest.TempPathFactory) -> Theatre:
    return Theatre(tmp_path_factory.mktemp("theatre"))
