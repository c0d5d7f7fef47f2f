"""The scripts that the sources ask for, run as a user runs them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.req("R196")
def test_five_simulated_failures_leave_the_row_paused() -> None:
    done = subprocess.run(
        (sys.executable, ROOT / "scripts" / "simulate_escalation.py"),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "reads PAUSED_FOR_INTERVENTION after 5 attempts" in done.stdout
