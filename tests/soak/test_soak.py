"""A whole home in which programs die, disks are full and users work; `make home-soak` is larger."""

import pytest

from tests.soak.__main__ import soaked


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_home_full_of_faults_ends_every_task_and_leaves_nothing_behind(tmp_path, seed) -> None:
    wrong, told = soaked(tmp_path, tasks=24, projects=4, seed=seed, seconds=300.0)

    assert wrong == [], told
