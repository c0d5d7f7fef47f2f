"""These run the test runners themselves, which need no sandbox."""

import pytest


@pytest.fixture(autouse=True)
def _in_the_sandbox() -> None:
    """Instead of the one beside, which asks for a sandbox."""
