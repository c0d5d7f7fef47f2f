"""A command starts at once because it loads only what it needs, as the program itself shows."""

import json
import subprocess
import sys

import pytest

from lockgate.core.model.task import Status
from tests.faces.shell import HANDOFF

# What a hot command must do without. The last four come with extras that may not be installed.
HEAVY = (
    "pydantic",
    "yaml",
    "cel",
    "celpy",
    "lark",
    "asyncio",
    "hypothesis",
    "textual",
    "starlette",
    "mcp",
    "psycopg",
)
WATCH = """
import json, sys
from lockgate.faces.cli.app import run
code = run(sys.argv[1:])
print(json.dumps({"code": code, "modules": sorted(sys.modules)}), file=sys.stderr)
"""


def loaded(shell, *argv):
    """The modules that are there after the command, which must succeed."""
    done = subprocess.run(
        [sys.executable, "-c", WATCH, *argv],
        cwd=shell.repo,
        env=shell.environment(),
        capture_output=True,
        check=True,
    )
    seen = json.loads(done.stderr.splitlines()[-1])
    assert seen["code"] == 0, done.stderr
    return set(seen["modules"])


HOT = (
    ("--help",),
    ("task", "update", "--help"),
    ("task", "peek", "--help"),
    ("answer", "--help"),
    ("auth", "--help"),
    ("doctor", "--help"),
    ("run", "--help"),
    ("task", "list"),
    ("task", "show", "ID"),
    ("task", "why", "ID"),
    ("task", "log", "ID"),
    ("task", "update", "ID", "--summary", "Fix it well"),
    ("task", "update", "ID", "--status", "stuck"),
    ("task", "complete", "ID"),
    ("task", "cancel", "ID"),
    ("events", "--json"),
)


@pytest.mark.parametrize("argv", HOT, ids=" ".join)
@pytest.mark.unmeasured
def test_a_hot_command_loads_nothing_heavy(shell, argv):
    id = shell.create()
    shell.bring(id, Status.WORKING)
    shell.write(id, HANDOFF)

    modules = loaded(shell, *(id if it == "ID" else it for it in argv))

    assert modules.isdisjoint(HEAVY), sorted(modules & set(HEAVY))


@pytest.mark.parametrize("argv", [("--version",), ("task", "--help")], ids=" ".join)
def test_help_of_a_group_opens_no_database(shell, argv):
    modules = loaded(shell, *argv)

    assert "sqlite3" not in modules
    assert not shell.home.exists()


def test_a_task_that_starts_reads_the_configuration_and_loads_nothing_heavy(shell):
    id = shell.create()

    modules = loaded(shell, "task", "update", id, "--status", "working")

    assert "lockgate.adapters.config.load" in modules
    assert modules.isdisjoint(HEAVY), sorted(modules & set(HEAVY))
