"""A sandbox whose starter was killed while setting it up is ended by the next orchestrator."""

import os
import subprocess
import sys

import pytest

from lockgate.adapters.run import STARTER, me, namespace
from lockgate.adapters.system import sweep


def _sleeper(starter: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"],
        env={"PATH": os.environ["PATH"], STARTER: starter},
        stdout=subprocess.PIPE,
    )


def test_what_a_dead_process_started_is_ended_and_what_a_live_one_started_is_not() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    orphan, ours = _sleeper(f"{namespace()}.{gone.pid}.1"), _sleeper(me())
    other = _sleeper(f"{namespace()}.{os.getpid()}.1")  # a number used before
    try:
        for it in (orphan, ours, other):
            assert it.stdout is not None
            it.stdout.readline()

        ended = sweep()

        # An orchestrator of another test may have been first: all of them look for the same.
        assert orphan.wait(5) == other.wait(5) == -9
        assert ours.pid not in ended
        assert ours.poll() is None
    finally:
        for it in (orphan, ours, other):
            it.kill()
            it.wait()
            assert it.stdout is not None
            it.stdout.close()


@pytest.mark.parametrize("mark", ["what", "1.2.3", "", "..."])
def test_a_mark_that_is_not_of_ours_is_left_alone(mark) -> None:
    with _sleeper(mark) as odd:
        assert odd.stdout is not None
        odd.stdout.readline()
        assert odd.pid not in sweep()
        odd.kill()
