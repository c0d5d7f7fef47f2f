from pathlib import Path

import pytest

from tests.scenarios.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.at(tmp_path)
