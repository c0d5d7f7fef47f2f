"""An orchestrator may watch more agents than the usual limit of open files lets it."""

import resource
import subprocess
import sys

import pytest

from lockgate.adapters.system import FILES

ASKS = """
import resource
from lockgate.adapters.system import allow_many_files
allow_many_files()
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize("soft", [256, 1024])
def test_the_limit_of_open_files_is_raised_as_far_as_it_goes(soft) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)

    done = subprocess.run(
        (sys.executable, "-c", ASKS),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),
        capture_output=True,
        text=True,
        check=True,
    )

    assert int(done.stdout) == most


def test_a_limit_that_is_higher_already_stays() -> None:
    done = subprocess.run(
        (
            sys.executable,
            "-c",
            "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (99, 99))" + ASKS,
        ),
        capture_output=True,
        text=True,
        check=True,
    )

    assert int(done.stdout) == 99
