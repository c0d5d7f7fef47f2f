"""Every test of this directory runs agents in the sandbox; where there is none it says so."""

import pytest

from lockgate.adapters.sandbox import trouble


@pytest.fixture(autouse=True)
def _in_the_sandbox() -> None:
    why_not = trouble()
    if why_not:
        pytest.skip(f"needs a sandbox: {why_not}")
