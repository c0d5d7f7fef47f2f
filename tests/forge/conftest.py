"""A GitHub of its own for each test; an exchange against GitHub's description fails the test."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.forge.hub import Hub


@pytest.fixture
def hub(tmp_path: Path) -> Generator[Hub]:
    with Hub(tmp_path / "github") as hub:
        yield hub
    assert hub.violations == []
