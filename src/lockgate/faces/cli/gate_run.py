"""`lockgate gate run`: the gates on HEAD, with no task and no database."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import click

from lockgate.bootstrap.rulebook import rulebook
from lockgate.bootstrap.spot_check import Bench, spot_checking
from lockgate.core.model.task import Task
from lockgate.errors import Refused
from lockgate.faces.cli import gate_words
from lockgate.faces.cli.gate_asking import asked
from lockgate.faces.cli.gate_telling import Teller
from lockgate.faces.cli.interrupting import interruptible
from lockgate.faces.cli.output import (
    afterwards,
    here,
    json_option,
    known_configuration,
    show,
    terminal,
)
from lockgate.ports import Project

FAILED = 1


@click.command()
@click.option("--base", metavar="REV", help="Whose rules count, and what to compare with.")
@click.option("--gate", "gates", multiple=True, metavar="NAME", help="Only this one; repeatable.")
@click.option("--junit", type=click.Path(dir_okay=False), metavar="FILE", help="Write a report.")
@json_option
def run(*, base: str | None, gates: tuple[str, ...], junit: str | None, as_json: bool) -> None:
    """Judge the commit you stand on, as a task's change would be: no task, no agent, no database.

    The rules are those of the base branch, or of --base, never those of what is only checked out;
    in CI the base is the branch that the change goes to. Reviews and human gates are listed as not
    judged. It ends with 0 only where every gate that was judged has passed.
    """
    case = rulebook(known_configuration()).case(here(), asked(base, gates))
    with afterwards() as stack:
        bench = stack.enter_context(_judging()(case.project, case.task))
        teller = Teller(case, bench.noted, quiet=as_json)
        results, protected = interruptible(
            lambda cancelled: bench.check.judge(case, cancelled, teller.tell, stack)
        )
        found = teller.in_order(results)
        facts = gate_words.run_facts(case, found, protected) if as_json else {}
        if junit:
            _write(here() / junit, gate_words.run_junit(found))
        show(facts, "\n".join(gate_words.run_end(case, found, protected)), as_json=as_json)
    if not gate_words.passed(case, found):
        raise click.exceptions.Exit(FAILED)


def _judging() -> Callable[[Project, Task], AbstractContextManager[Bench]]:
    it = terminal()
    return it.benches.spot_checking if it and it.benches else spot_checking


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        why, fix = error.strerror or str(error), "name a file that can be written"
        raise Refused(f"{file} was not written", why=why, fix=fix) from error
