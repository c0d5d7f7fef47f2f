"""Measures `lockgate init` on a real project, beside the project's own test command.

    python -m tests.e2e.real_project DIRECTORY --own COMMAND [--own COMMAND] [--no-gitignore]

A project counts where `gate run` passes after `init` alone, runs at least nine of ten tests that
the project's own command runs, and turns red on five of five faults. A fault is one `raise`
(`throw`, `panic`) at the start of one function of the source, drawn by chance. Where the gates
stay green, the project's own command is asked: if that stays green too, no test runs the function,
the fault is not a fair one, and another is drawn.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from lockgate.adapters.config.write import quoted
from lockgate.core.discovery.faults import edits, sources
from lockgate.core.discovery.found import Package, quote
from tests.faces.shell import Shell

LONG = 1200  # seconds
ENDLESS = 240  # seconds
FAULTS = 5
MOST_DRAWS = 25
ENOUGH = 0.9  # of the tests that the project's own command runs
COUNT = Path(__file__).with_name("count_passed.py")
OWN = "own"  # the branch with the project's own commands as its gates


class Fault(Struct, frozen=True):
    path: str
    edit: str  # a command of sed


class Measured(Struct, frozen=True, kw_only=True):
    """What came of it; `missed` are fair faults that the gates stayed green on."""

    name: str
    seconds: float
    last: str
    ready: bool
    passed: bool = False
    ours: int = 0
    theirs: int = 0
    red: int = 0
    unfair: int = 0
    missed: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        enough = self.theirs > 0 and self.ours >= ENOUGH * self.theirs
        return self.ready and self.passed and enough and self.red == FAULTS and not self.missed

    @property
    def row(self) -> str:
        word = "yes" if self.counts else "no"
        gate = "passed" if self.passed else "failed"
        faults = f"{self.red} of {self.red + len(self.missed)}"
        cells = (self.name, f"{self.seconds:.0f}", gate, f"{self.ours} / {self.theirs}", faults)
        return f"| {' | '.join((*cells, word, self.last))} |"


def placed(source: Path, place: Path, *, gitignore: bool = True) -> Shell:
    """A copy of a project as a repository of one commit."""
    shell = Shell(place)
    shutil.copytree(source, shell.repo, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    if not gitignore:
        for file in shell.repo.rglob(".gitignore"):
            file.unlink()
    shell.git("init", "--quiet", "--initial-branch=main")
    shell.git("config", "user.name", "Test")
    shell.git("config", "user.email", "test@localhost")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "--message", "A release")
    return shell


def measured(shell: Shell, name: str, own: Sequence[str]) -> Measured:
    start = time.monotonic()
    made = shell.program("init", "--json", seconds=LONG).facts
    last, ready = made.get("next") or str(made), made.get("ready", False)
    found = Measured(name=name, seconds=time.monotonic() - start, last=last, ready=ready)
    if not found.ready:
        return found
    gates = _run(shell, "main")
    tests = [it for it in gates if it["name"].startswith("tests")]
    theirs = _counted(shell, own)
    ours = _ours(shell, tests, sum(theirs))
    _write_own(shell, own, least=theirs)
    red, unfair, missed = _faults(shell, name, [it["name"] for it in tests])
    return Measured(
        name=name,
        seconds=found.seconds,
        last=found.last,
        ready=True,
        passed=all(it["result"] in {"passed", "not judged"} for it in gates),
        ours=ours,
        theirs=sum(theirs),
        red=red,
        unfair=unfair,
        missed=missed,
    )


def _ours(shell: Shell, tests: Sequence[dict[str, Any]], theirs: int) -> int:
    """How many the gates run.

    A report can name no test, or several alike. Where it names fewer than the project's own command
    runs, the output says how many; a command that prints nothing of the kind is left as it is.
    """
    passed = [it for it in tests if it["result"] == "passed"]
    named = [it["tests"] or 0 for it in passed]
    if sum(named) >= theirs and all(named):
        return sum(named)
    elsewhere = [it["command"].replace("$OUT", "$TMPDIR") for it in passed]
    return sum(map(max, named, _counted(shell, elsewhere)))


def _counted(shell: Shell, commands: Sequence[str]) -> list[int]:
    _write_own(shell, commands, least=[1] * len(commands))
    return [it["tests"] or 0 for it in _run(shell, OWN)]


def _run(shell: Shell, base: str, *gates: str, seconds: float = LONG) -> list[dict[str, Any]]:
    chosen = (word for it in gates for word in ("--gate", it))
    answer = shell.program("gate", "run", "--json", "--base", base, *chosen, seconds=seconds)
    if not answer.out.strip():
        raise SystemExit(f"gate run --base {base} did not run: {answer.err}")
    return list(json.loads(answer.out)["gates"])


def _write_own(shell: Shell, commands: Sequence[str], least: Sequence[int]) -> None:
    """A branch whose gates are the project's own commands, over the set-up that `init` wrote."""
    shell.git("checkout", "--quiet", "-B", OWN, "main")
    file = shell.repo / ".lockgate/config.toml"
    env = tomllib.loads(file.read_text(encoding="utf-8")).get("env", {})
    lines = ['[project]\nbase = "main"']
    if env:
        inputs = ", ".join(quoted(it) for it in env.get("inputs", ()))
        lines.append(f"[env]\nsetup = {quoted(env['setup'])}\ninputs = [{inputs}]")
    lines.append('[gates]\nformula = "none"')
    for number, (command, needed) in enumerate(zip(commands, least, strict=True)):
        text = quoted(_counting(command, needed))
        gate = f'[[gates.list]]\nname = "own-{number}"\ntype = "command"\ntimeout = {LONG}'
        lines.append(f"{gate}\ncommand = {text}")
    file.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    shell.git("commit", "--quiet", "--all", "--message", "The project's own commands")
    shell.git("checkout", "--quiet", "main")


def _counting(command: str, least: int) -> str:
    count = f"python3 -c {quote(COUNT.read_text(encoding='utf-8'))} $OUT {least}"
    return f"PATH=$PWD/.venv/bin:$PATH; ({command}) >$OUT/said 2>&1; {count}"


def _faults(shell: Shell, name: str, gates: Sequence[str]) -> tuple[int, int, tuple[str, ...]]:
    """How many turned the gates red, how many were not fair, and which were missed."""
    red, unfair, missed = 0, 0, list[str]()
    drawn = [*_candidates(shell)]
    random.Random(name).shuffle(drawn)  # noqa: S311 - the same draw each time
    for fault in drawn[:MOST_DRAWS]:
        if red + len(missed) == FAULTS:
            break
        _plant(shell, fault)
        if _turns_red(shell, "main", gates):
            red += 1
        elif _turns_red(shell, OWN):
            missed.append(f"{fault.path}: {fault.edit}")
        else:
            unfair += 1
    shell.git("checkout", "--quiet", "main")
    return red, unfair, tuple(missed)


def _turns_red(shell: Shell, base: str, gates: Sequence[str] = ()) -> bool:
    """A run that does not end is red too: its gate's `timeout` would say so, much later."""
    try:
        return any(it["result"] == "failed" for it in _run(shell, base, *gates, seconds=ENDLESS))
    except subprocess.TimeoutExpired:
        sys.stderr.write(f"gate run on {base} did not end within {ENDLESS} s and counts as red\n")
        return True


def _candidates(shell: Shell) -> Iterator[Fault]:
    paths = frozenset(shell.git("ls-files").splitlines())
    for path in sources(Package(), paths):
        text = (shell.repo / path).read_text(encoding="utf-8", errors="replace")
        yield from (Fault(path, it) for it in edits(path, text))


def _plant(shell: Shell, fault: Fault) -> None:
    shell.git("checkout", "--quiet", "-B", "fault", "main")
    subprocess.run(["sed", "-i", "-e", fault.edit, fault.path], cwd=shell.repo, check=True)
    shell.git("commit", "--quiet", "--all", "--message", "A fault")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--own", action="append", required=True, metavar="COMMAND")
    parser.add_argument("--no-gitignore", action="store_true")
    parser.add_argument("--keep", type=Path, help="where it is done; a directory that is not there")
    asked = parser.parse_args(argv)
    os.environ.setdefault("RUSTUP_HOME", str(Path.home() / ".rustup"))  # HOME will be another
    with tempfile.TemporaryDirectory(prefix="measured-") as temporary:
        place = asked.keep or Path(temporary) / "project"
        shell = placed(asked.directory, place, gitignore=not asked.no_gitignore)
        found = measured(shell, asked.directory.name, asked.own)
    sys.stdout.write(f"{found.row}\n")
    sys.stdout.writelines(f"  missed: {it}\n" for it in found.missed)
    return 0 if found.counts else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
