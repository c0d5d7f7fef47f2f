"""`lockgate gate list`, `check` and `explain`: the gates as they are configured."""

from collections.abc import Sequence

import click

from lockgate.bootstrap.gates import rulebook
from lockgate.core.config.checks import coverage
from lockgate.core.config.settings import Settings
from lockgate.core.model.facts import as_facts
from lockgate.core.model.gates import Gate, with_protected
from lockgate.core.text.steering import asked_of
from lockgate.errors import Refused
from lockgate.faces.cli.choices import asked
from lockgate.faces.cli.output import (
    app,
    here,
    json_option,
    known_configuration,
    named,
    show,
)
from lockgate.faces.words import task as words
from lockgate.faces.words.gate import applies, check_lines, explained, gate_facts, runs, waves_of
from lockgate.services.task.views import GateView
from lockgate.services.task.views import gate_facts as result_facts

BASE = click.option("--base", metavar="REV", help="Where the rules are read; default: base branch.")
UNSAFE = 1


@click.command("list")
@click.argument("name", metavar="[ID]", required=False)
@BASE
@json_option
def list_gates(*, name: str | None, base: str | None, as_json: bool) -> None:
    """List the gates in their order; of a task, with their last results."""
    if name is None:
        settings, said = _settings(base)
        facts = {"rules": said, "gates": [_facts(it, settings.gates) for it in settings.gates]}
        text = words.table(_rows(settings.gates, {}))
    else:
        gates, last, said = _of_task(name)
        listed = [
            {**_facts(it, gates), "last": result_facts(last[it.name]) if it.name in last else None}
            for it in gates
        ]
        facts = {"rules": said, "gates": listed}
        text = words.table(_rows(gates, last))
    show(facts, text or "there are no gates", as_json=as_json)


@click.command()
@BASE
@json_option
def check(*, base: str | None, as_json: bool) -> None:
    """Check the configuration: which gates check every change, which only some.

    Exits 1 if a change could land without passing a gate that runs a command.
    """
    settings, said = _settings(base)
    found = coverage(settings)
    facts = {
        "rules": said,
        "always": [it.name for it in found.always],
        "sometimes": [
            {"name": it.name, "when": it.place.when, "paths": list(it.place.paths)}
            for it in found.sometimes
        ],
        "never": [it.name for it in found.never],
        "masked": [as_facts(it) for it in found.masked],
        "hole": found.hole,
    }
    show(facts, "\n".join((f"rules: {words.one_line(said)}", *check_lines(found))), as_json=as_json)
    if found.hole:
        raise click.exceptions.Exit(UNSAFE)


@click.command()
@click.argument("name", metavar="NAME")
@BASE
@json_option
def explain(*, name: str, base: str | None, as_json: bool) -> None:
    """Explain a gate: what it runs, when, and what makes it pass or fail."""
    settings, said = _settings(base)
    gate = next((it for it in settings.gates if it.name == name), None)
    if gate is None:
        known = ", ".join(it.name for it in settings.gates) or "none"
        raise Refused(
            "nothing was explained", why=f"no gate is called {name!r}", fix=f"there are: {known}"
        )
    told = explained(gate, settings)
    facts = {"rules": said, **_facts(gate, settings.gates), "explained": told}
    show(facts, words.table([(f"{key}:", value) for key, value in told.items()]), as_json=as_json)


def _settings(base: str | None) -> tuple[Settings, str]:
    return rulebook(known_configuration()).settings(here(), asked(base))


def _of_task(name: str) -> tuple[tuple[Gate, ...], dict[str, GateView], str]:
    """Its gates by the rules that it has, with one that its change has added."""
    it = app()
    view = it.views.task(named(it, name))
    task, project = view.task, it.views.project_of(view.task)
    if task.pinned is None:
        settings, said = it.configuration.settings_of(project), "its base branch, as it is now"
    else:
        commit = task.pinned.base_commit
        settings = it.configuration.settings_at(project, commit)
        said = f"{task.pinned.base} ({commit[:12]})"
    gates = with_protected(settings.gates, asked_of(task.protected, task.pinned))
    return gates, {it.gate: it for it in view.gates}, said


def _facts(gate: Gate, gates: Sequence[Gate]) -> dict[str, object]:
    return {**gate_facts(gate), "wave": waves_of(gates)[gate.name]}


def _rows(gates: Sequence[Gate], last: dict[str, GateView]) -> list[tuple[str, ...]]:
    if not gates:
        return []
    wave = waves_of(gates)
    head = ("WAVE", "NAME", "KIND", "ON", "WHEN", "LAST", "RUNS")
    rows = [head, *(_row(it, wave[it.name], last.get(it.name)) for it in gates)]
    kept = [n for n, title in enumerate(head) if title != "LAST" or last]
    return [tuple(row[n] for n in kept) for row in rows]


def _row(gate: Gate, wave: int, last: GateView | None) -> tuple[str, ...]:
    facts = gate_facts(gate)
    said = words.one_line(last.result) if last else "not yet"
    on = ", ".join(gate.place.on)
    return str(wave), gate.name, str(facts["kind"]), on, applies(gate), said, runs(gate)
