"""Three hosts that break again and again do every task once; `tests.fleet.chaos` is larger."""

import pytest

from tests.fleet.chaos import weathered
from tests.fleet.site import must_have_servers


@pytest.mark.slow
@pytest.mark.postgres
def test_hosts_that_break_again_and_again_land_every_task_once(tmp_path) -> None:
    must_have_servers()

    result = weathered(tmp_path, tasks=8, seed=1, seconds=420.0)

    assert result.wrong == [], f"{result.table()}\n{result.story}"
