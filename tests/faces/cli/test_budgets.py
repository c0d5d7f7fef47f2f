"""How many modules a command may load when no orchestrator answers it; what was won stays won."""

import subprocess
import sys

import click
import pytest

from lockgate.core.model.task import Status
from lockgate.faces.cli import app, commands, groups
from tests.faces.shell import HANDOFF

# Modules beyond those of a Python that does nothing. A new one must be worth its milliseconds
# (`gc` is: loading takes a tenth less with it).
BUDGETS = {
    ("--version",): 30,
    ("--help",): 30,
    ("task", "--help"): 100,
    ("task", "list"): 210 + (sys.version_info >= (3, 13)),  # one more of its own library
    ("task", "show", "ID"): 211,
    ("task", "why", "ID"): 210,
    ("task", "log", "ID"): 210,
    ("status",): 211,
    ("events", "--json"): 210,
}
# What only writes or runs; a command that looks does without.
ACTING = (
    "lockgate.adapters.sandbox",
    "lockgate.adapters.sessions",
    "lockgate.adapters.train",
    "lockgate.adapters.workspaces",
    "lockgate.bootstrap.orchestrator",
    "lockgate.services.orchestrator",
    "lockgate.services.task.coordinator",
    "importlib.metadata",
    "concurrent.futures",
    "temporalio",
)
GROUPS = {
    "": app.root,
    "task": groups.task,
    "gate": groups.gate,
    "queue": groups.queue,
    "people": groups.people,
}


def imported(shell, *argv: str) -> set[str]:
    """What the program imports, by the interpreter's own account."""
    environment = shell.environment()
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *argv],
        cwd=shell.repo,
        env={name: value for name, value in environment.items() if "COV" not in name},
        capture_output=True,
        check=True,
        text=True,
    )
    told = (line.split("|") for line in done.stderr.splitlines())
    return {it[2].strip() for it in told if it[0].startswith("import time:") and len(it) > 2}


@pytest.mark.parametrize("argv", BUDGETS, ids=" ".join)
def test_a_command_loads_no_more_modules_than_its_budget(shell, argv) -> None:
    id = shell.create()
    shell.bring(id, Status.WORKING)
    shell.write(id, HANDOFF)
    words = [id if it == "ID" else it for it in argv]

    loaded = imported(shell, "-m", "lockgate", *words) - imported(shell, "-c", "pass")

    assert len(loaded) <= BUDGETS[argv], sorted(loaded)
    assert [it for it in loaded if it.startswith(ACTING)] == []


def test_the_short_way_of_a_command_loads_the_client_and_nothing_else(shell) -> None:
    """Where an orchestrator answers: that is why `status` costs little more than a bare Python."""
    loaded = imported(shell, "-c", "import lockgate.__main__") - imported(shell, "-c", "pass")

    ours = {"lockgate", "lockgate.__main__", "lockgate.faces", "lockgate.faces.client"}
    assert loaded == {*ours, "_socket"}


def test_the_board_is_on_the_screen_before_what_acts_is_loaded(shell) -> None:
    loaded = imported(shell, "-c", "import lockgate.faces.tui.app")

    later = [it for it in ACTING if it.startswith("lockgate") and "coordinator" not in it]
    assert [it for it in loaded if it.startswith(tuple(later))] == []


def test_no_command_loads_temporals_library() -> None:
    """What a worker is made of loads it, in the process that is the worker."""
    loads = "import pkgutil, importlib, sys, lockgate.faces as it, lockgate.bootstrap.fleet\n"
    loads += "for found in pkgutil.walk_packages(it.__path__, 'lockgate.faces.'):\n"
    loads += "    importlib.import_module(found.name)\n"
    loads += "print(*sys.modules)"

    loaded = subprocess.check_output([sys.executable, "-c", loads], text=True).split()

    assert {"lockgate.faces.cli.operate.fleet", "lockgate.faces.cli.operate.up"} <= set(loaded)
    assert [it for it in loaded if it.startswith("temporalio")] == []


@pytest.mark.parametrize("name", GROUPS)
def test_the_line_that_help_shows_of_a_command_is_the_commands_own(name) -> None:
    group = GROUPS[name]
    ctx = click.Context(group)

    own = {it: group.get_command(ctx, it) for it in group.list_commands(ctx)}

    said = {it: found.get_short_help_str(1000) if found else "" for it, found in own.items()}
    assert group.says == said


def test_help_is_the_same_text_with_and_without_click(shell) -> None:
    told = shell.program("--help").out

    assert told == shell.run("--help").out == f"{commands.help_text()}\n"
    assert max(map(len, told.splitlines())) <= 80


def test_every_command_stands_in_one_section_of_the_help() -> None:
    listed = [name for names in commands.SECTIONS.values() for name in names]

    assert sorted(listed) == sorted(commands.COMMANDS) == sorted(commands.SAYS)
    assert list(commands.SECTIONS) == ["Start here", "Look", "Answer", "Operate", "For agents"]


def test_the_help_names_the_options_of_the_root_command() -> None:
    ctx = click.Context(app.root)

    records = [it.get_help_record(ctx) for it in app.root.get_params(ctx)]

    assert dict(it for it in records if it) == commands.OPTIONS


def test_the_version_is_told_as_click_tells_it(shell) -> None:
    assert shell.program("--version").out == shell.run("--version").out
