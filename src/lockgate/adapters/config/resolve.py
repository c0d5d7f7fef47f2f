"""From the file's shape to settings: the formula's gates under the user's, with all defaults."""

from collections.abc import Iterator

from lockgate.adapters.config.formulas import formula_gates
from lockgate.adapters.config.schema import Config, GateEntry, StepEntry
from lockgate.core.config.checks import COMMAND_KEYS, Problem, repeated_gates, unknown_skips
from lockgate.core.config.settings import (
    AgentSettings,
    BudgetSettings,
    Commands,
    CommitSettings,
    EnvSettings,
    MergeSettings,
    ProjectSettings,
    SandboxSettings,
    Service,
    Settings,
    Step,
)
from lockgate.core.model.gates import Gate, WrittenGate, configured, merge_gates, misfits, skipping
from lockgate.core.model.limits import Limits, RetryConfig
from lockgate.core.model.task import GateKind


def settings_from(config: Config) -> Settings:
    """Gates that have no type are left out; `written_problems` names them."""
    return Settings(
        formula=config.gates.formula,
        gates=tuple(_gates(config)),
        project=ProjectSettings(**dict(config.project)),
        commands=Commands(**dict(config.commands)),
        env=EnvSettings(config.env.setup, config.env.inputs, config.env.copy_),
        test_paths=config.tests.paths,
        steps=tuple(_step(it, config.commands.test) for it in config.steps),
        services=tuple(Service(**dict(it)) for it in config.services),
        retry=RetryConfig(**dict(config.retry)),
        limits=Limits(**dict(config.limits)),
        sandbox=SandboxSettings(**dict(config.sandbox)),
        protect=config.protect.paths,
        merge=MergeSettings(**dict(config.merge)),
        commit=CommitSettings(**dict(config.commit)),
        budget=BudgetSettings(**dict(config.budget)),
        notify_urls=config.notify.urls,
        agents=tuple(AgentSettings(name=name, **dict(it)) for name, it in config.agents.items()),
    )


def written_problems(config: Config) -> tuple[Problem, ...]:
    """What only the entries as written show: repeated names, no type, keys of another type."""
    return (
        *repeated_gates(it.name for it in config.gates.list_),
        *unknown_skips(config.gates.skip, _names(config)),
        *(problem for gate in _written(config) for problem in _misplaced(gate)),
    )


def _written(config: Config) -> tuple[WrittenGate, ...]:
    formula = [GateEntry.model_validate(it) for it in formula_gates(config.gates.formula)]
    listed = config.gates.list_
    merged = merge_gates([_entry(it) for it in formula], [_entry(it) for it in listed])
    return skipping(merged, config.gates.skip)


def _names(config: Config) -> tuple[str, ...]:
    formula = (str(it["name"]) for it in formula_gates(config.gates.formula))
    return tuple(dict.fromkeys((*formula, *(it.name for it in config.gates.list_))))


def _gates(config: Config) -> Iterator[Gate]:
    for gate in _written(config):
        if gate.type is not None:
            yield configured(gate, gate.type, _default_command(gate, config))


def _default_command(gate: WrittenGate, config: Config) -> str:
    if gate.type is GateKind.DIFFERENTIAL:
        return config.commands.test
    key = COMMAND_KEYS.get(gate.name)
    return str(getattr(config.commands, key)) if key else ""


def _misplaced(gate: WrittenGate) -> Iterator[Problem]:
    where = ("gates", "list", gate.name)
    if gate.type is None:
        kinds = ", ".join(GateKind)
        yield Problem(
            where, f"gate {gate.name} has no type, and no formula gate has that name; {kinds}"
        )
        return
    for key in misfits(gate):
        yield Problem((*where, key), f"{key} means nothing for a gate of type {gate.type}")


def _entry(entry: GateEntry) -> WrittenGate:
    return WrittenGate(**dict(entry))


def _step(entry: StepEntry, test: str) -> Step:
    return Step(
        name=entry.name,
        phase=entry.phase,
        command=test if entry.command is None else entry.command,
        expect=entry.expect,
        after=entry.after,
    )
