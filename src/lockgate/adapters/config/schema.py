"""The shape of `.lockgate/config.toml`: every key, its type and its range, for pydantic.

From that shape settings are made: the formula's gates under the user's, with all defaults.
"""

import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from msgspec.structs import replace
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from lockgate.core.config.checks import COMMAND_KEYS, Problem, repeated_gates, unknown_skips
from lockgate.core.config.settings import (
    TOLD,
    AgentSettings,
    AutoMerge,
    BudgetSettings,
    CommentMode,
    CommitSettings,
    DifferentialSettings,
    DraftMode,
    EnvSettings,
    Expect,
    ForgeKind,
    ForgeSettings,
    IntakeSettings,
    MergeFence,
    MergeMode,
    MergeSettings,
    MergeStrategy,
    MergeTarget,
    NotifySettings,
    ProjectSettings,
    Respawn,
    SandboxLevel,
    SandboxSettings,
    Service,
    ServiceKind,
    Settings,
    Step,
)
from lockgate.core.config.settings import (
    Commands as CommandLines,
)
from lockgate.core.lifecycle.needs import NeedKind
from lockgate.core.model import limits
from lockgate.core.model.commits import Author
from lockgate.core.model.gates import (
    Dimension,
    Gate,
    Report,
    Where,
    WrittenGate,
    configured,
    merge_gates,
    misfits,
    skipping,
)
from lockgate.core.model.limits import Limits, RetryConfig, Strategy
from lockgate.core.model.task import AgentPhase, GateKind
from lockgate.core.notices.hours import CLOCK, LENGTH, SPAN

NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$"
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]{0,99}$"
IDENTITY = r"^$|^[^<>\n]*[^<>\s] <[^<>\s]+>$"  # Name <address>
FROM_VARIABLE = r"^env:[A-Za-z_][A-Za-z0-9_]{0,99}$"  # an address itself would be in git
OWNER_AND_NAME = r"^$|^[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}$"
LOGIN = r"^[A-Za-z0-9][A-Za-z0-9-]{0,38}(\[bot\])?$"
HOST_AND_PORT = r"^[A-Za-z0-9.\-]{1,253}:[1-9][0-9]{0,4}$"

MANY = 1_000_000
DAY_SECONDS = 86_400
GATE_FORMULAS = ("plain", "solo", "code-review", "security-audit", "quick-review", "none")
STEP_FORMULAS = ("tdd",)


def _dashed(value: object) -> object:
    return value.replace("_", "-") if isinstance(value, str) else value


def _underscored(value: object) -> object:
    return value.replace("-", "_") if isinstance(value, str) else value


def _spelled_out(value: object) -> object:
    """`steps = "tdd"` stands for the formula's list."""
    return formula_steps(value) if value == "tdd" and isinstance(value, str) else value


Name = Annotated[str, Field(pattern=NAME)]
Text = Annotated[str, Field(max_length=10_000)]
Command = Annotated[str, Field(min_length=1, max_length=10_000)]
Strings = Annotated[tuple[Command, ...], Field(strict=False, max_length=1_000)]
Pattern = Annotated[str, Field(min_length=1, max_length=1_000)]
Patterns = Annotated[tuple[Pattern, ...], Field(strict=False, min_length=1, max_length=200)]
Count = Annotated[int, Field(ge=1, le=MANY)]
Amount = Annotated[int, Field(ge=0, le=1_000 * MANY)]
Money = Annotated[float, Field(ge=0, le=MANY, allow_inf_nan=False)]
Loose = Field(strict=False)  # the word for a member of an enum; everything else is strict
Formula = Annotated[
    Literal["plain", "solo", "code-review", "security-audit", "quick-review", "none"],
    BeforeValidator(_dashed),
]
Kind = Annotated[GateKind, Loose, BeforeValidator(_underscored)]
Dimensions = Annotated[tuple[Annotated[Dimension, Loose], ...], Loose]
Ports = Annotated[tuple[Annotated[str, Field(pattern=HOST_AND_PORT)], ...], Loose]
Variable = Annotated[str, Field(pattern=VARIABLE)]
Variables = Annotated[tuple[Variable, ...], Loose]
Kinds = Annotated[tuple[Annotated[NeedKind, Loose], ...], Loose]
Approver = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$")]
Share = Annotated[float, Field(gt=0, le=1)]


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class Project(Table):
    base: Command = "main"
    agent: Name = "claude"
    slots: Annotated[int, Field(ge=1, le=1_000)] = 3
    respawn: Annotated[Respawn, Loose] = Respawn.AUTO
    resume: Annotated[Respawn, Loose] = Respawn.AUTO


class Commands(Table):
    test: Text = ""
    typecheck: Text = ""


class Env(Table):
    setup: Text = ""
    inputs: Strings = ()
    copy_: Strings = Field(default=(), alias="copy")
    pass_: Strings = Field(default=(), alias="pass")


class Tests(Table):
    paths: Strings = ()


class Differential(Table):
    strength_seconds: Annotated[int, Field(ge=0, le=DAY_SECONDS)] = limits.STRENGTH_SECONDS


class GateEntry(Table):
    name: Name
    type: Kind | None = None
    command: Text | None = None
    serial: bool | None = None
    fail_fast: bool | None = None
    attempts: Annotated[int, Field(ge=1, le=100)] | None = None
    timeout: Annotated[int, Field(ge=1, le=7 * DAY_SECONDS)] | None = None
    report: Annotated[Report, Loose] | None = None
    exclusive: Text | None = None
    on: Annotated[tuple[Annotated[Where, Loose], ...], Loose] | None = None
    when: Text | None = None
    paths: Patterns | None = None
    dimensions: Dimensions | None = None
    advisory: Dimensions | None = None
    reviewer: Name | None = None
    prompt: Command | None = None
    approvers: Annotated[tuple[Approver, ...], Field(strict=False, max_length=100)] | None = None


class Gates(Table):
    formula: Formula = "code-review"
    skip: Annotated[tuple[Name, ...], Field(strict=False, max_length=200)] = ()
    list_: list[GateEntry] = Field(default=[], alias="list", max_length=200)


class StepEntry(Table):
    name: Name
    phase: Annotated[AgentPhase, Loose]
    command: Text | None = None
    expect: Annotated[Expect, Loose] = Expect.PASS
    after: Strings = ()


class ServiceEntry(Table):
    name: Name | None = None
    service: Annotated[ServiceKind, Loose] | None = None
    command: Command | None = None
    ready: Text = ""
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    env: Annotated[dict[Variable, Text], Field(max_length=100)] = {}
    prepare: Text = ""
    inputs: Strings = ()


class Retry(Table):
    strategy: Annotated[Strategy, Loose] = Strategy.AUTO
    fresh_after_failures: Count = limits.FRESH_AFTER_FAILURES
    max_iterations: Count = limits.MAX_ITERATIONS


class LimitsTable(Table):
    step_failures: Count = limits.MAX_CONSECUTIVE_FAILURES
    call_attempts: Annotated[int, Field(ge=1, le=100)] = limits.MAX_ATTEMPTS
    call_base_delay_ms: Annotated[int, Field(ge=0, le=DAY_SECONDS * 1_000)] = limits.BASE_DELAY_MS
    call_backoff: Annotated[float, Field(ge=1, le=100)] = limits.BACKOFF_MULTIPLIER
    crashes: Count = limits.MAX_CRASHES
    review_rounds: Count = limits.MAX_REVIEW_ROUNDS
    escalation_threshold: Count = limits.ESCALATION_THRESHOLD


class Sandbox(Table):
    level: Annotated[SandboxLevel, Loose] = SandboxLevel.AUTO
    network: bool = False
    allow: Ports = ()
    read: Strings = ()
    memory_mb: Annotated[int, Field(ge=16, le=100 * MANY)] = 4096
    scratch_mb: Annotated[int, Field(ge=1, le=100 * MANY)] = 8192
    session_disk_mb: Annotated[int, Field(ge=1, le=100 * MANY)] = 20480
    pids: Annotated[int, Field(ge=16, le=4 * MANY)] = 4096


class Protect(Table):
    paths: Strings = ()


class Merge(Table):
    mode: Annotated[MergeMode, Loose] = MergeMode.MANUAL
    target: Annotated[MergeTarget, Loose] = MergeTarget.LOCAL
    strategy: Annotated[MergeStrategy, Loose] = MergeStrategy.MERGE
    fence: Annotated[MergeFence, Loose] = MergeFence.WAIT
    window: Annotated[int, Field(ge=1, le=100)] = 4
    batch: Annotated[int, Field(ge=1, le=100)] = 1


class Intake(Table):
    label: Annotated[str, Field(max_length=50)] = ""
    max_open: Annotated[int, Field(ge=1, le=1_000)] = 5


class Forge(Table):
    kind: Annotated[ForgeKind, Loose] = ForgeKind.GITHUB
    repo: Annotated[str, Field(pattern=OWNER_AND_NAME)] = ""
    draft: Annotated[DraftMode, Loose] = DraftMode.NEVER
    auto_merge: Annotated[AutoMerge, Loose] = AutoMerge.LOCKGATE
    comments: Annotated[CommentMode, Loose] = CommentMode.ACT
    bots: Annotated[tuple[Annotated[str, Field(pattern=LOGIN)], ...], Loose] = ()
    settle: Annotated[int, Field(ge=0, le=DAY_SECONDS)] = 120
    ci_wait: Annotated[int, Field(ge=60, le=30 * DAY_SECONDS)] = 3600
    rounds: Annotated[int, Field(ge=1, le=1_000)] = 8
    sign: bool = False
    intake: Intake = Intake()


class Commit(Table):
    author: Annotated[Author, Loose] = Author.USER
    identity: Annotated[str, Field(pattern=IDENTITY)] = ""


class Budget(Table):
    task_usd: Money = 5.0
    task_tokens: Amount = 0
    task_minutes: Amount = 120
    day_usd: Money = 0.0


class Notify(Table):
    urls: Annotated[tuple[Annotated[str, Field(pattern=FROM_VARIABLE)], ...], Loose] = ()
    kinds: Kinds = tuple(map(NeedKind, TOLD))
    urgent: Kinds = (NeedKind.RED_TIP,)
    quiet: Annotated[str, Field(pattern=f"^$|{SPAN.pattern}")] = ""
    digest: Annotated[str, Field(pattern=f"^$|{CLOCK.pattern}")] = ""
    remind: Annotated[str, Field(pattern=f"^$|{LENGTH.pattern}")] = "4h"
    budget: Annotated[tuple[Share, ...], Field(strict=False, max_length=10)] = (0.5, 0.8, 1.0)


class Agent(Table):
    command: Annotated[Strings, Field(min_length=1)] = ()
    resume: Strings = ()
    env: Variables = ()
    fallback: Annotated[str, Field(pattern=f"^$|{NAME}")] = ""


class Config(Table):
    project: Project = Project()
    commands: Commands = Commands()
    env: Env = Env()
    tests: Tests = Tests()
    differential: Differential = Differential()
    gates: Gates = Gates()
    steps: Annotated[
        list[StepEntry],
        Field(max_length=200),
        BeforeValidator(_spelled_out, json_schema_input_type=list[StepEntry] | Literal["tdd"]),
    ] = []
    services: Annotated[list[ServiceEntry], Field(max_length=200)] = []
    retry: Retry = Retry()
    limits: LimitsTable = LimitsTable()
    sandbox: Sandbox = Sandbox()
    protect: Protect = Protect()
    merge: Merge = Merge()
    forge: Forge = Forge()
    commit: Commit = Commit()
    budget: Budget = Budget()
    notify: Notify = Notify()
    agents: Annotated[dict[Name, Agent], Field(max_length=200)] = {}


def json_schema() -> dict[str, Any]:
    """What `lockgate init --schema` prints."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Config.model_json_schema(),
        "title": "Lockgate .lockgate/config.toml",
    }


# The formulas that ship with Lockgate, read from their data files.


@cache
def formula_text(name: str) -> str:
    return (files("lockgate.adapters") / "formulas" / f"{name}.toml").read_text(encoding="utf-8")


def formula_gates(name: str) -> list[dict[str, Any]]:
    """Its gates, as `[[gates.list]]` of a config would have them."""
    entries: list[dict[str, Any]] = (
        tomllib.loads(formula_text(name)).get("gates", {}).get("list", [])
    )
    return entries


def formula_steps(name: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = tomllib.loads(formula_text(name))["steps"]
    return entries


# From the file's shape to settings: the formula's gates under the user's, with all defaults.


def settings_from(config: Config) -> Settings:
    """Gates that have no type are left out; `written_problems` names them."""
    return Settings(
        formula=config.gates.formula,
        gates=tuple(_gates(config)),
        project=ProjectSettings(**dict(config.project)),
        commands=CommandLines(**dict(config.commands)),
        env=EnvSettings(config.env.setup, config.env.inputs, config.env.copy_, config.env.pass_),
        test_paths=config.tests.paths,
        differential=DifferentialSettings(**dict(config.differential)),
        steps=tuple(_step(it, config.commands.test) for it in config.steps),
        services=tuple(map(_service, config.services)),
        retry=RetryConfig(**dict(config.retry)),
        limits=Limits(**dict(config.limits)),
        sandbox=SandboxSettings(**dict(config.sandbox)),
        protect=config.protect.paths,
        merge=MergeSettings(**dict(config.merge)),
        forge=_forge(config.forge),
        commit=CommitSettings(**dict(config.commit)),
        budget=BudgetSettings(**dict(config.budget)),
        notify=_notify(config.notify),
        agents=tuple(AgentSettings(name=name, **dict(it)) for name, it in config.agents.items()),
    )


def _forge(written: Forge) -> ForgeSettings:
    settings = ForgeSettings(**dict(written))
    return replace(settings, intake=IntakeSettings(**dict(written.intake)))


def _notify(written: Notify) -> NotifySettings:
    """Kinds as plain words: the settings know no enum of the lifecycle."""
    settings = NotifySettings(**dict(written))
    kinds, urgent = map(str, written.kinds), map(str, written.urgent)
    return replace(settings, kinds=tuple(kinds), urgent=tuple(urgent))


def written_problems(config: Config) -> tuple[Problem, ...]:
    """What only the entries as written show: repeated names, no type, keys of another type."""
    return (
        *repeated_gates(it.name for it in config.gates.list_),
        *unknown_skips(config.gates.skip, _names(config)),
        *(problem for gate in _written(config) for problem in _misplaced(gate)),
    )


def _service(it: ServiceEntry) -> Service:
    """One that is known by its kind needs no name of its own."""
    return Service(
        name=it.name or str(it.service or ""),
        command=it.command or "",
        ready=it.ready,
        kind=it.service,
        port=it.port,
        env=tuple(it.env.items()),
        prepare=it.prepare,
        inputs=it.inputs,
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
