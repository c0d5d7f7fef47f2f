"""How long a command takes from the shell's point of view, beside a Python that does nothing."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.harness import Measure, Work, clocked, interleave, main, say
from bench.home import add_task, make_home

ROUNDS = 30
TASKS = 20
IMPORTS = 10
IMPORT_RUNS = 5
LIST, VERSION, HELP = ("task", "list"), ("--version",), ("--help",)
BARE, GIT = "python -c pass", "git rev-parse"


def bench(where: Path) -> list[Measure]:
    say("\ncold start")
    app, project = make_home(where)
    for number in range(TASKS):
        add_task(app, project, f"Task number {number}")
    app.store.close()
    runner = Runner(where)
    contenders: dict[str, Work] = {
        BARE: runner.clocked([sys.executable, "-c", "pass"]),
        GIT: runner.clocked(["git", "rev-parse", "--git-common-dir"]),
    }
    for words in (LIST, VERSION, HELP):
        contenders[_name(words)] = runner.clocked([*_lockgate(), *words])
    found = interleave(contenders, ROUNDS)
    _say_imports(runner)
    names = (_name(LIST), _name(VERSION), _name(HELP), GIT)
    return [Measure(name=it, ours=found[it], peer=BARE, theirs=found[BARE]) for it in names]


class Runner:
    """Runs commands inside the repository, with the home that has the tasks.

    Bytecode is kept, as on a user's machine, but here: the first round writes it.
    """

    def __init__(self, where: Path) -> None:
        self.directory = where / "repository"
        ours = ("LOCKGATE_", "PYTHON")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self.environment = kept | {
            "LOCKGATE_HOME": str(where / "home"),
            "PYTHONPYCACHEPREFIX": str(where / "bytecode"),
        }

    def run(self, argv: Sequence[str]) -> str:
        """What it wrote to standard error."""
        done = subprocess.run(
            argv,
            cwd=self.directory,
            env=self.environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.stderr

    def clocked(self, argv: Sequence[str]) -> Work:
        return clocked(lambda: self.run(argv))


def _say_imports(runner: Runner) -> None:
    """The modules whose own code took longest to import, without what they import in turn."""
    taken: dict[str, list[float]] = {}
    for _ in range(IMPORT_RUNS):
        errors = runner.run([sys.executable, "-X", "importtime", "-m", "lockgate", *LIST])
        for line in errors.splitlines():
            own, _, name = line.removeprefix("import time:").split("|")
            if own.strip().isdigit():
                taken.setdefault(name.strip(), []).append(float(own))
    medians = {name: median(values) for name, values in taken.items()}
    slowest = sorted(medians, key=medians.__getitem__, reverse=True)[:IMPORTS]
    say(f"  the {IMPORTS} slowest of {len(medians)} imports of {_name(LIST)} (-X importtime, own)")
    for name in slowest:
        say(f"  {medians[name] / 1000:7.2f} ms  {name}")
    say(f"  {sum(medians.values()) / 1000:7.2f} ms  all")


def _lockgate() -> list[str]:
    """The installed script, as people call it; else the module."""
    script = Path(sys.executable).with_name("lockgate")
    return [str(script)] if script.exists() else [sys.executable, "-m", "lockgate"]


def _name(words: Sequence[str]) -> str:
    return " ".join(("lockgate", *words))


if __name__ == "__main__":
    main(bench)
