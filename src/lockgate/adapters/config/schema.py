"""The shape of `.lockgate/config.toml`: every key, its type and its range, for pydantic."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from lockgate.adapters.config.formulas import formula_steps
from lockgate.core.config.settings import (
    Expect,
    MergeFence,
    MergeMode,
    MergeStrategy,
    MergeTarget,
    Respawn,
    SandboxLevel,
)
from lockgate.core.model import limits
from lockgate.core.model.commits import Author
from lockgate.core.model.gates import Dimension, Report, Where
from lockgate.core.model.limits import Strategy
from lockgate.core.model.task import AgentPhase, GateKind

NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$"
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]{0,99}$"
IDENTITY = r"^$|^[^<>\n]*[^<>\s] <[^<>\s]+>$"  # Name <address>
HOST_AND_PORT = r"^[A-Za-z0-9.\-]{1,253}:[1-9][0-9]{0,4}$"

MANY = 1_000_000
DAY_SECONDS = 86_400


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
Variables = Annotated[tuple[Annotated[str, Field(pattern=VARIABLE)], ...], Loose]


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Project(Table):
    base: Command = "main"
    agent: Name = "claude"
    slots: Annotated[int, Field(ge=1, le=1_000)] = 3
    respawn: Annotated[Respawn, Loose] = Respawn.AUTO


class Commands(Table):
    test: Text = ""
    typecheck: Text = ""


class Env(Table):
    setup: Text = ""
    inputs: Strings = ()
    copy_: Strings = Field(default=(), alias="copy")


class Tests(Table):
    paths: Strings = ()


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
    name: Name
    command: Command
    ready: Text = ""


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


class Commit(Table):
    author: Annotated[Author, Loose] = Author.USER
    identity: Annotated[str, Field(pattern=IDENTITY)] = ""


class Budget(Table):
    task_usd: Money = 5.0
    task_tokens: Amount = 0
    task_minutes: Amount = 120
    day_usd: Money = 0.0


class Notify(Table):
    urls: Strings = ()


class Agent(Table):
    command: Annotated[Strings, Field(min_length=1)]
    resume: Strings = ()
    env: Variables = ()


class Config(Table):
    project: Project = Project()
    commands: Commands = Commands()
    env: Env = Env()
    tests: Tests = Tests()
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
