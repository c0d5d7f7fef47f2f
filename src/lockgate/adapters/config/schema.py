"""The shape of `.lockgate/config.toml`: every key, its type and its range.

From that shape settings are made: the formula's gates under the user's, with all defaults.
msgspec reads a file of that shape; what is wrong with any other file, `complaints` says.
"""

import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, cast

from msgspec import Meta, Struct, convert, field, json
from msgspec.structs import asdict, replace

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

# A pattern ends with \Z: Python's $ also matches before a last line feed.
NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}\Z"
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]{0,99}\Z"
IDENTITY = r"^\Z|^[^<>\n]*[^<>\s] <[^<>\s]+>\Z"  # Name <address>
FROM_VARIABLE = r"^env:[A-Za-z_][A-Za-z0-9_]{0,99}\Z"  # an address itself would be in git
OWNER_AND_NAME = r"^\Z|^[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}\Z"
LOGIN = r"^[A-Za-z0-9][A-Za-z0-9-]{0,38}(\[bot\])?\Z"
HOST_AND_PORT = r"^[A-Za-z0-9.\-]{1,253}:[1-9][0-9]{0,4}\Z"
APPROVER = r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}\Z"
LABEL = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z"

MANY = 1_000_000
DAY_SECONDS = 86_400
GATE_FORMULAS = ("plain", "solo", "code-review", "security-audit", "quick-review", "none")
STEP_FORMULAS = ("tdd",)


def _or_nothing(pattern: str) -> Meta:
    """Of a text that may be empty; `pattern` is one that other modules match with."""
    return Meta(pattern=r"^\Z|" + pattern.replace("$", r"\Z"))


Name = Annotated[str, Meta(pattern=NAME)]
Text = Annotated[str, Meta(max_length=10_000)]
Command = Annotated[str, Meta(min_length=1, max_length=10_000)]
Strings = Annotated[tuple[Command, ...], Meta(max_length=1_000)]
Pattern = Annotated[str, Meta(min_length=1, max_length=1_000)]
Patterns = Annotated[tuple[Pattern, ...], Meta(min_length=1, max_length=200)]
Count = Annotated[int, Meta(ge=1, le=MANY)]
Amount = Annotated[int, Meta(ge=0, le=1_000 * MANY)]
Money = Annotated[float, Meta(ge=0, le=MANY, extra={"allow_inf_nan": False})]
Formula = Literal["plain", "solo", "code-review", "security-audit", "quick-review", "none"]
Dimensions = tuple[Dimension, ...]
Ports = tuple[Annotated[str, Meta(pattern=HOST_AND_PORT)], ...]
Variable = Annotated[str, Meta(pattern=VARIABLE)]
Kinds = tuple[NeedKind, ...]
Approver = Annotated[str, Meta(pattern=APPROVER)]
Labels = Annotated[tuple[Annotated[str, Meta(pattern=LABEL)], ...], Meta(max_length=20)]
Share = Annotated[float, Meta(gt=0, le=1)]


class Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file: it has these keys and no others."""


class Project(Table, frozen=True):
    base: Command = "main"
    agent: Name = "claude"
    slots: Annotated[int, Meta(ge=1, le=1_000)] = 3
    respawn: Respawn = Respawn.AUTO
    resume: Respawn = Respawn.AUTO


class Commands(Table, frozen=True):
    test: Text = ""
    typecheck: Text = ""


class Env(Table, frozen=True):
    setup: Text = ""
    inputs: Strings = ()
    copy_: Strings = field(default=(), name="copy")
    pass_: Strings = field(default=(), name="pass")


class Tests(Table, frozen=True):
    paths: Strings = ()


class Differential(Table, frozen=True):
    strength_seconds: Annotated[int, Meta(ge=0, le=DAY_SECONDS)] = limits.STRENGTH_SECONDS


class GateEntry(Table, frozen=True):
    name: Name
    type: GateKind | None = None
    command: Text | None = None
    serial: bool | None = None
    fail_fast: bool | None = None
    attempts: Annotated[int, Meta(ge=1, le=100)] | None = None
    timeout: Annotated[int, Meta(ge=1, le=7 * DAY_SECONDS)] | None = None
    report: Report | None = None
    needs: Labels | None = None
    exclusive: Text | None = None
    on: tuple[Where, ...] | None = None
    when: Text | None = None
    paths: Patterns | None = None
    dimensions: Dimensions | None = None
    advisory: Dimensions | None = None
    reviewer: Name | None = None
    prompt: Command | None = None
    approvers: Annotated[tuple[Approver, ...], Meta(max_length=100)] | None = None


class Gates(Table, frozen=True):
    formula: Formula = "code-review"
    skip: Annotated[tuple[Name, ...], Meta(max_length=200)] = ()
    list_: Annotated[list[GateEntry], Meta(max_length=200)] = field(default=[], name="list")


class StepEntry(Table, frozen=True):
    name: Name
    phase: AgentPhase
    command: Text | None = None
    expect: Expect = Expect.PASS
    after: Strings = ()


class ServiceEntry(Table, frozen=True):
    name: Name | None = None
    service: ServiceKind | None = None
    command: Command | None = None
    ready: Text = ""
    port: Annotated[int, Meta(ge=0, le=65535)] = 0
    env: Annotated[dict[Variable, Text], Meta(max_length=100)] = {}
    prepare: Text = ""
    inputs: Strings = ()


class Retry(Table, frozen=True):
    strategy: Strategy = Strategy.AUTO
    fresh_after_failures: Count = limits.FRESH_AFTER_FAILURES
    max_iterations: Count = limits.MAX_ITERATIONS


class LimitsTable(Table, frozen=True):
    step_failures: Count = limits.MAX_CONSECUTIVE_FAILURES
    call_attempts: Annotated[int, Meta(ge=1, le=100)] = limits.MAX_ATTEMPTS
    call_base_delay_ms: Annotated[int, Meta(ge=0, le=DAY_SECONDS * 1_000)] = limits.BASE_DELAY_MS
    call_backoff: Annotated[float, Meta(ge=1, le=100)] = limits.BACKOFF_MULTIPLIER
    crashes: Count = limits.MAX_CRASHES
    review_rounds: Count = limits.MAX_REVIEW_ROUNDS
    escalation_threshold: Count = limits.ESCALATION_THRESHOLD


class Sandbox(Table, frozen=True):
    level: SandboxLevel = SandboxLevel.AUTO
    network: bool = False
    allow: Ports = ()
    read: Strings = ()
    memory_mb: Annotated[int, Meta(ge=16, le=100 * MANY)] = 4096
    scratch_mb: Annotated[int, Meta(ge=1, le=100 * MANY)] = 8192
    session_disk_mb: Annotated[int, Meta(ge=1, le=100 * MANY)] = 20480
    pids: Annotated[int, Meta(ge=16, le=4 * MANY)] = 4096


class Protect(Table, frozen=True):
    paths: Strings = ()


class Merge(Table, frozen=True):
    mode: MergeMode = MergeMode.MANUAL
    target: MergeTarget = MergeTarget.LOCAL
    strategy: MergeStrategy = MergeStrategy.MERGE
    fence: MergeFence = MergeFence.WAIT
    window: Annotated[int, Meta(ge=1, le=100)] = 4
    batch: Annotated[int, Meta(ge=1, le=100)] = 1


class Intake(Table, frozen=True):
    label: Annotated[str, Meta(max_length=50)] = ""
    max_open: Annotated[int, Meta(ge=1, le=1_000)] = 5


class Forge(Table, frozen=True):
    kind: ForgeKind = ForgeKind.GITHUB
    repo: Annotated[str, Meta(pattern=OWNER_AND_NAME)] = ""
    draft: DraftMode = DraftMode.NEVER
    auto_merge: AutoMerge = AutoMerge.LOCKGATE
    comments: CommentMode = CommentMode.ACT
    bots: tuple[Annotated[str, Meta(pattern=LOGIN)], ...] = ()
    settle: Annotated[int, Meta(ge=0, le=DAY_SECONDS)] = 120
    ci_wait: Annotated[int, Meta(ge=60, le=30 * DAY_SECONDS)] = 3600
    rounds: Annotated[int, Meta(ge=1, le=1_000)] = 8
    sign: bool = False
    intake: Intake = Intake()


class Commit(Table, frozen=True):
    author: Author = Author.USER
    identity: Annotated[str, Meta(pattern=IDENTITY)] = ""


class Budget(Table, frozen=True):
    task_usd: Money = 5.0
    task_tokens: Amount = 0
    task_minutes: Amount = 120
    day_usd: Money = 0.0


class Notify(Table, frozen=True):
    urls: tuple[Annotated[str, Meta(pattern=FROM_VARIABLE)], ...] = ()
    kinds: Kinds = tuple(map(NeedKind, TOLD))
    urgent: Kinds = (NeedKind.RED_TIP,)
    quiet: Annotated[str, _or_nothing(SPAN.pattern)] = ""
    digest: Annotated[str, _or_nothing(CLOCK.pattern)] = ""
    remind: Annotated[str, _or_nothing(LENGTH.pattern)] = "4h"
    budget: Annotated[tuple[Share, ...], Meta(max_length=10)] = (0.5, 0.8, 1.0)


class Agent(Table, frozen=True):
    command: Annotated[Strings, Meta(min_length=1)] = ()
    resume: Strings = ()
    env: tuple[Variable, ...] = ()
    fallback: Annotated[str, _or_nothing(NAME)] = ""


class Fleet(Table, frozen=True):
    needs: Labels = ()


class Config(Table, frozen=True):
    project: Project = Project()
    commands: Commands = Commands()
    env: Env = Env()
    tests: Tests = Tests()
    differential: Differential = Differential()
    gates: Gates = Gates()
    steps: Annotated[list[StepEntry], Meta(max_length=200)] = []
    services: Annotated[list[ServiceEntry], Meta(max_length=200)] = []
    retry: Retry = Retry()
    limits: LimitsTable = LimitsTable()
    sandbox: Sandbox = Sandbox()
    protect: Protect = Protect()
    merge: Merge = Merge()
    forge: Forge = Forge()
    commit: Commit = Commit()
    budget: Budget = Budget()
    notify: Notify = Notify()
    fleet: Fleet = Fleet()
    agents: Annotated[dict[Name, Agent], Meta(max_length=200)] = {}


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


# From the file's text to its shape. Two threads that make msgspec look at a type for the first time
# can end the process: it looks at this one here, and at those of other modules beside them.
json.Decoder(Config)


def config_from(spelled: dict[str, Any]) -> Config:
    """Of what `spelled_out` gives; msgspec's error names only the first thing that is wrong."""
    return convert(spelled, Config)


def spelled_out(raw: dict[str, Any]) -> dict[str, Any]:
    """What may be written in two ways, in one: a formula, a gate's type, the steps of a formula."""
    spelled = dict(raw)
    if raw.get("steps") == "tdd":
        spelled["steps"] = formula_steps("tdd")
    if isinstance(gates := raw.get("gates"), dict):
        spelled["gates"] = _spelled_gates(cast("dict[str, Any]", gates))
    return spelled


def _spelled_gates(written: dict[str, Any]) -> dict[str, Any]:
    spelled = _with("formula", written, "_", "-")
    if isinstance(listed := written.get("list"), list):
        spelled["list"] = [
            _with("type", cast("dict[str, Any]", it), "-", "_") if isinstance(it, dict) else it
            for it in cast("list[object]", listed)
        ]
    return spelled


def _with(key: str, table: dict[str, Any], mark: str, by: str) -> dict[str, Any]:
    """One mark of a text replaced; what is no text is left to be complained of."""
    value = table.get(key)
    return {**table, key: value.replace(mark, by)} if isinstance(value, str) else dict(table)


# From the file's shape to settings: the formula's gates under the user's, with all defaults.


def settings_from(config: Config) -> Settings:
    """Gates that have no type are left out; `written_problems` names them."""
    return Settings(
        formula=config.gates.formula,
        gates=tuple(_gates(config)),
        project=ProjectSettings(**asdict(config.project)),
        commands=CommandLines(**asdict(config.commands)),
        env=EnvSettings(config.env.setup, config.env.inputs, config.env.copy_, config.env.pass_),
        test_paths=config.tests.paths,
        differential=DifferentialSettings(**asdict(config.differential)),
        steps=tuple(_step(it, config.commands.test) for it in config.steps),
        services=tuple(map(_service, config.services)),
        retry=RetryConfig(**asdict(config.retry)),
        limits=Limits(**asdict(config.limits)),
        sandbox=SandboxSettings(**asdict(config.sandbox)),
        protect=config.protect.paths,
        merge=MergeSettings(**asdict(config.merge)),
        forge=_forge(config.forge),
        commit=CommitSettings(**asdict(config.commit)),
        budget=BudgetSettings(**asdict(config.budget)),
        notify=_notify(config.notify),
        needs=config.fleet.needs,
        agents=tuple(AgentSettings(name=name, **asdict(it)) for name, it in config.agents.items()),
    )


def _forge(written: Forge) -> ForgeSettings:
    settings = ForgeSettings(**asdict(written))
    return replace(settings, intake=IntakeSettings(**asdict(written.intake)))


def _notify(written: Notify) -> NotifySettings:
    """Kinds as plain words: the settings know no enum of the lifecycle."""
    settings = NotifySettings(**asdict(written))
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
    formula = convert(formula_gates(config.gates.formula), list[GateEntry])
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
    return WrittenGate(**asdict(entry))


def _step(entry: StepEntry, test: str) -> Step:
    return Step(
        name=entry.name,
        phase=entry.phase,
        command=test if entry.command is None else entry.command,
        expect=entry.expect,
        after=entry.after,
    )
