"""`lockgate gate run`: the gates on HEAD, with no task and no database."""

import os
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from secrets import token_hex

import click
from msgspec import Struct, field

from lockgate.bootstrap.gates import Checking, rulebook, spot_checking
from lockgate.core.model.gates import Gate
from lockgate.core.model.results import SingleGateResult
from lockgate.errors import Refused
from lockgate.faces.cli.choices import asked
from lockgate.faces.cli.output import (
    Terminal,
    afterwards,
    echo,
    here,
    interruptible,
    json_option,
    known_configuration,
    lively,
    show,
    terminal,
)
from lockgate.faces.words import actions, gate, task
from lockgate.faces.words import gate as gate_words
from lockgate.services.gates.commit_check import Case, Judged, Noted, judged

# Tells how gates fare while they run.


class Teller(Struct):
    """One line a gate as it gets its result; on a terminal also which ones are at it now.

    Made by whoever runs the command: the threads that it is told from know no terminal.
    """

    case: Case
    noted: Noted
    quiet: bool
    _to: Terminal | None = field(default_factory=terminal)
    _lively: bool = field(default_factory=lively)
    _now: list[str] = field(default_factory=list[str])
    _told: dict[str, Judged] = field(default_factory=dict[str, Judged])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def tell(self, gate: Gate, result: SingleGateResult | None) -> None:
        with self._lock:
            if result is None:
                self._now.append(gate.name)
            else:
                self._now.remove(gate.name)
                self._finish(gate, result)
            self._progress()

    def in_order(self, results: tuple[SingleGateResult, ...]) -> tuple[Judged, ...]:
        return tuple(self._told[it.gate] for it in results)

    def _finish(self, gate: Gate, result: SingleGateResult) -> None:
        made = self.noted.made.get(gate.name, [])
        self._told[gate.name] = found = judged(gate, result, made)
        if not self.quiet:
            self._clear()
            width = max(len(it.name) for it in self.case.settings.gates)
            echo(task.safe("\n".join(gate_words.judged_lines(found, width))), to=self._to)

    def _progress(self) -> None:
        self._clear()
        if self._now and self._lively:
            self._draw(task.one_line(f"▸ {', '.join(self._now)} …"))

    def _clear(self) -> None:
        if self._lively:
            self._draw("\r\x1b[K")

    def _draw(self, text: str) -> None:
        echo(text, err=True, nl=False, to=self._to)


FAILED = 1


@click.command()
@click.option("--base", metavar="REV", help="Whose rules count, and what to compare with.")
@click.option("--gate", "gates", multiple=True, metavar="NAME", help="Only this one; repeatable.")
@click.option("--junit", type=click.Path(dir_okay=False), metavar="FILE", help="Write a report.")
@click.option(
    "--annotate",
    type=click.Choice(("github", "none")),
    help="Notes at lines and a summary for a build server; in GitHub Actions: github.",
)
@json_option
def run(
    *,
    base: str | None,
    gates: tuple[str, ...],
    junit: str | None,
    annotate: str | None,
    as_json: bool,
) -> None:
    """Run the gates on your HEAD commit, with no task and no agent.

    The gates are read from the base branch (or --base), so a commit cannot change its own rules; in
    CI the base is the branch that the change goes to. Changes that are not committed are not
    checked. Reviews and human gates are listed as not run. Exits 0 only if every gate passed.
    """
    server = _server(annotate)
    case = rulebook(known_configuration()).case(here(), asked(base, gates))
    with afterwards() as stack, server.hushed():
        bench = stack.enter_context(_judging()(case.candidate))
        teller = Teller(case, bench.noted, quiet=as_json)
        results, protected = interruptible(
            lambda cancelled: bench.check.judge(case, cancelled, teller.tell, stack)
        )
        found = teller.in_order(results)
        facts = gate.run_facts(case, found, protected) if as_json else {}
        if junit:
            _write(here() / junit, gate.run_junit(found))
        show(facts, "\n".join(gate.run_end(case, found, protected)), as_json=as_json)
    server.tell(case, found, protected)
    if not gate.passed(case, found):
        raise click.exceptions.Exit(FAILED)


class Nobody(Struct, frozen=True):
    """No build server is told anything."""

    def hushed(self) -> AbstractContextManager[None]:
        return nullcontext()

    def tell(self, case: Case, found: Sequence[Judged], protected: Sequence[str]) -> None:
        pass


class GithubActions(Struct, frozen=True):
    """Its runner takes lines that begin with `::` for commands, on stdout and stderr alike."""

    summary: Path | None

    @contextmanager
    def hushed(self) -> Generator[None]:
        """What gates print is no command: only who knows the word can end this."""
        word = token_hex(16)
        echo(f"::stop-commands::{word}", err=True)
        try:
            yield
        finally:
            echo(f"::{word}::", err=True)

    def tell(self, case: Case, found: Sequence[Judged], protected: Sequence[str]) -> None:
        for line in actions.annotations(found):
            echo(task.safe(line), err=True)
        if self.summary:
            text = task.safe(actions.summary(case, found, protected))
            _write(self.summary, text, mode="a")


def _server(annotate: str | None) -> Nobody | GithubActions:
    """An orchestrator that runs the command for another knows nothing of that one's variables."""
    told: Mapping[str, str] = {} if terminal() else os.environ
    usual = "github" if told.get("GITHUB_ACTIONS") == "true" else "none"
    file = told.get("GITHUB_STEP_SUMMARY")
    if (annotate or usual) == "none":
        return Nobody()
    return GithubActions(here() / file if file else None)


def _judging() -> Checking:
    it = terminal()
    return it.benches.spot_checking if it and it.benches else spot_checking


def _write(file: Path, text: str, mode: str = "w") -> None:
    try:
        with file.open(mode, encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        why, fix = error.strerror or str(error), "name a file that can be written"
        raise Refused(f"{file} was not written", why=why, fix=fix) from error
