"""`lockgate doctor`: what is there of what Lockgate uses, and what to install."""

import os
import platform
import time

import click

from lockgate import __version__
from lockgate.bootstrap import App, orchestrator_pid, path_outside_of
from lockgate.bootstrap.upkeep import checkup, inspection_of, versions_of
from lockgate.core.config.settings import Settings
from lockgate.core.model.facts import as_facts
from lockgate.core.model.people import Right
from lockgate.core.model.versions import mismatches
from lockgate.errors import LockgateError
from lockgate.faces.cli.output import app, echo, here, json_option, show
from lockgate.faces.words import task as words
from lockgate.services.setup.doctor import (
    PLAIN,
    Outcome,
    Part,
    Trial,
    must_be_trusted,
    settings_here,
)
from lockgate.services.task.callers import must_be_human

PAUSE = 0.1
MIB = 1 << 20


@click.command()
@click.option("--try", "agent", metavar="AGENT", help="Send it one prompt, as a task would.")
@click.option("--deep", is_flag=True, help="Compare the database with all files and refs.")
@click.option("--repair", is_flag=True, help="Put right what is safe to put right.")
@json_option
def doctor(*, agent: str | None, deep: bool, repair: bool, as_json: bool) -> None:
    """Check this machine: what is missing, and how to install it.

    --deep looks for what does not fit together: rows without files or commits, directories and
    branches of nothing known, damaged repositories, mounts. --repair writes again what git has
    lost of the evidence; with --deep and no orchestrator it also writes a missing TASK.md again,
    moves unknown work to deleted/ and removes what can be made again.

    Exits 1 if no task could be worked on here, or if the agent that was tried did not answer.
    """
    os.environ["PATH"] = path_outside_of(here())  # this repository's programs are not started
    check = checkup()
    it, database = _database()
    settings, configured = _settings(it)
    parts = [Part(name="python", found=platform.python_version()), *check.machine(settings)]
    parts += [*configured, database]
    if it:
        parts += check.agents(it.logins, settings)
        parts += [_home(it), _orchestrator(it), _versions(it), *_evidence(it, repair=repair)]
        parts += _inspected(it, repair=repair) if deep else ()
    ready = not any(part.needed and part.costs for part in parts)
    outcome = _tried(it, agent, settings) if it and agent and ready else None
    facts = {
        "ready": ready,
        "parts": [as_facts(part) for part in parts],
        "tried": {"agent": agent, **as_facts(outcome)} if outcome else None,
    }
    told = [_text(parts), *([_answer(str(agent), outcome)] if outcome else [])]
    show(facts, "\n".join(told), as_json=as_json)
    if not ready or (agent and (outcome is None or outcome.why)):
        raise click.exceptions.Exit(1)


def _database() -> tuple[App | None, Part]:
    try:
        it = app()
        must_be_human(it.caller, "nothing was looked at", Right.LOOK)
        broken = it.views.first_broken_event()
    except LockgateError as error:
        costs, fix = str(error), error.fix
        return None, Part(name="database", found="not usable", costs=costs, fix=fix, needed=True)
    if broken is not None:
        costs = f"event {broken} was changed after it was written"
        fix = "restore the database from a backup, or continue knowing that"
        return it, Part(name="database", found="the event log was changed", costs=costs, fix=fix)
    return it, Part(name="database", found="reachable, and its event log is unchanged", needed=True)


def _settings(it: App | None) -> tuple[Settings, list[Part]]:
    if it is None:
        return PLAIN, []
    try:
        return settings_here(it.configuration, here()), []
    except LockgateError as error:
        found = "cannot be read"
        return PLAIN, [Part(name="configuration", found=found, costs=str(error), fix=error.fix)]


def _home(it: App) -> Part:
    sizes = it.sizes().items()
    told = ", ".join(f"{name} {size / MIB:.0f} MiB" for name, size in sizes)
    return Part(name="home", found=f"{it.home}: {told}")


def _orchestrator(it: App) -> Part:
    pid = orchestrator_pid(it.home)
    return Part(name="orchestrator", found=f"process {pid}" if pid else "not running")


def _versions(it: App) -> Part:
    """Of this program, the orchestrator, the runners and the database."""
    found = tuple(mismatches(versions_of(it)))
    if not found:
        return Part(name="versions", found=f"all are {__version__}")
    fixes = "; ".join(one.fix for one in found if one.fix)
    costs = "; ".join(one.what for one in found)
    if not fixes:
        return Part(name="versions", found=costs)
    return Part(name="versions", found="they differ", costs=costs, fix=fixes)


def _evidence(it: App, *, repair: bool) -> list[Part]:
    """Of each project whose notes git has lost in part, or in which they were written again."""
    if repair:
        must_be_human(it.caller, "nothing was repaired", Right.ADMIN)
    found = it.train.lost_notes(repair=repair).items()
    return [_notes_of(name, count if repair else None) for name, count in found]


def _inspected(it: App, *, repair: bool) -> list[Part]:
    """Nothing is moved under an orchestrator, which may be about to use it."""
    pid = orchestrator_pid(it.home)
    parts = list(inspection_of(it, repair=repair and pid is None).parts())
    if repair and pid is not None and any(part.costs for part in parts):
        costs = f"orchestrator {pid} runs, so that no directory was moved or removed"
        fix = "lockgate down, then lockgate doctor --deep --repair"
        parts.append(Part(name="repair", found="in part", costs=costs, fix=fix))
    return parts


def _notes_of(project: str, written: int | None) -> Part:
    name = f"evidence in {project}"
    if written is not None:
        return Part(name=name, found=f"damaged; {written} notes were written again")
    costs = "git has lost a part of refs/notes/lockgate: lockgate verify cannot read all of it"
    return Part(name=name, found="damaged", costs=costs, fix="lockgate doctor --repair")


def _tried(it: App, agent: str, settings: Settings) -> Outcome:
    echo(f"asking {words.one_line(agent)} from where it would work", err=True)
    try:
        must_be_trusted(it.configuration, here())
        return _outcome(it.trial, agent, settings)
    except LockgateError as error:
        return Outcome("", f"{error} ({error.fix})", 0.0)


def _outcome(trial: Trial, agent: str, settings: Settings) -> Outcome:
    id = trial.begin(agent, settings)
    try:
        while True:
            outcome = trial.outcome(id, agent, settings)
            if outcome:
                return outcome
            time.sleep(PAUSE)
    finally:
        trial.forget(id)


def _text(parts: list[Part]) -> str:
    rows = [(_mark(it), it.name, words.one_line(it.found)) for it in parts]
    lines = words.table(rows).splitlines()
    told: list[str] = []
    for line, part in zip(lines, parts, strict=True):
        told.append(line)
        if part.costs:
            told += [f"     {words.one_line(part.costs)}", f"     → {words.one_line(part.fix)}"]
    return "\n".join(told)


def _mark(part: Part) -> str:
    if not part.costs:
        return "✓"
    return "✗" if part.needed else "–"


def _answer(agent: str, outcome: Outcome) -> str:
    took = f"after {outcome.seconds:.1f} s"
    if outcome.why:
        return f"✗ {agent} did not answer, {took}: {words.one_line(outcome.why)}"
    return f"✓ {agent} answered {took}: {words.one_line(outcome.said)}"
