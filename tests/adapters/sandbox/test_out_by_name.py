"""Which programs of a command know where reports go, by the name of the variable."""

import os
import subprocess
from pathlib import Path

import pytest

from lockgate.adapters.sandbox.attempt import Try, argv_of
from lockgate.adapters.sandbox.services.orders import Where
from lockgate.core.config.settings import SandboxSettings


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ('echo "$OUT"\nprintenv OUT || echo none', "/o\nnone"),
        ('echo "${OUT}/a"; export OUT; printenv OUT', "/o/a\n/o"),
        ("printenv OUT", "/o"),
    ],
)
def test_what_a_command_that_names_out_starts_does_not_know_it(tmp_path, command, said) -> None:
    it = Try(
        command=command,
        checkout=Path(tmp_path),
        mounts=(),
        sandbox=SandboxSettings(),
        services=(),
        deadline=9,
    )
    argv = argv_of(it, Where(place="", told="", prepared=""), "")

    done = subprocess.run(
        argv,
        env={"PATH": os.environ["PATH"], "OUT": "/o"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.strip() == said
