"""The whole configuration with every default filled in, and what of it a task pins.

Also which branch is the base, whose rules judge a change: never what is checked out.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.core.config.ci import ONLY_WITH, PLAIN, SERVERS, TARGETS
from lockgate.core.model.agents import digest_in
from lockgate.core.model.commits import Author
from lockgate.core.model.dag import TaskDAG
from lockgate.core.model.gates import (
    CommandGate,
    DifferentialGate,
    Gate,
    HumanGate,
    MultipassReviewGate,
    ParallelReviewGate,
    Where,
    kind_of,
)
from lockgate.core.model.limits import STRENGTH_SECONDS, Limits, RetryConfig
from lockgate.core.model.task import AgentPhase, Budget, GateRef, Pinned

HARNESSES = ("claude", "claude-live", "codex", "gemini", "opencode", "aider", "scripted")

# A change here adds a human gate, whatever `[protect]` says; see `steering` for CI files.
ALWAYS_PROTECTED = (".lockgate/**",)
USUAL = ("main", "master")
OWN_LABELS = ("any", "hands", "lead", "api")  # of hosts; what they mean is not a person's to say
HEADS = "refs/heads/"


class Respawn(StrEnum):
    """Whether Lockgate starts an agent again by itself: one that crashed, or that was limited."""

    AUTO = "auto"
    MANUAL = "manual"


class SandboxLevel(StrEnum):
    """`auto` is bubblewrap or a refusal; `none` must be asked for."""

    AUTO = "auto"
    NONE = "none"


class MergeMode(StrEnum):
    MANUAL = "manual"
    AUTO = "auto"


class MergeTarget(StrEnum):
    LOCAL = "local"
    REMOTE = "remote"
    PULL_REQUEST = "pull_request"


class MergeFence(StrEnum):
    """What keeps the push of an orchestrator that was frozen from a remote branch."""

    WAIT = "wait"  # pushes end within a time limit; the next orchestrator waits longer than that
    REF = "ref"  # a second ref of the remote moves with each landing, atomically


class MergeStrategy(StrEnum):
    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


class Expect(StrEnum):
    PASS = "pass"
    FAIL = "fail"


class ProjectSettings(Struct, frozen=True, kw_only=True):
    base: str = "main"
    agent: str = "claude"
    slots: int = 3
    respawn: Respawn = Respawn.AUTO
    resume: Respawn = Respawn.AUTO  # once a usage limit is over


class Commands(Struct, frozen=True):
    test: str = ""
    typecheck: str = ""


class EnvSettings(Struct, frozen=True):
    setup: str = ""
    inputs: tuple[str, ...] = ()
    copy: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()  # variables that base's set-up is given as they are


class Step(Struct, frozen=True, kw_only=True):
    """One node of a task's DAG."""

    name: str
    phase: AgentPhase
    command: str
    expect: Expect = Expect.PASS
    after: tuple[str, ...] = ()


class ServiceKind(StrEnum):
    """What Lockgate knows how to start by itself."""

    POSTGRES = "postgres"
    REDIS = "redis"


# What Debian calls the package that has its programs.
INSTALLED_BY = {ServiceKind.POSTGRES: "postgresql", ServiceKind.REDIS: "redis-server"}


class Service(Struct, frozen=True):
    """Beside a command: of a kind that is known, or started by a command of the project's."""

    name: str
    command: str = ""
    ready: str = ""
    kind: ServiceKind | None = None
    port: int = 0  # any that is free
    env: tuple[tuple[str, str], ...] = ()  # more variables, made of the usual ones
    prepare: str = ""  # run once for the content of the inputs; what it leaves is kept
    inputs: tuple[str, ...] = ()


class SandboxSettings(Struct, frozen=True, kw_only=True):
    level: SandboxLevel = SandboxLevel.AUTO
    network: bool = False
    allow: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    memory_mb: int = 4096
    scratch_mb: int = 8192
    session_disk_mb: int = 20480  # of an agent's workspace and HOME together
    pids: int = 4096


class MergeSettings(Struct, frozen=True, kw_only=True):
    mode: MergeMode = MergeMode.MANUAL
    target: MergeTarget = MergeTarget.LOCAL
    strategy: MergeStrategy = MergeStrategy.MERGE
    fence: MergeFence = MergeFence.WAIT
    window: int = 4
    batch: int = 1


def lands_by(
    merge: MergeSettings, remote: str, hub_fence: MergeFence | None
) -> tuple[str, MergeFence]:
    """The remote that a train lands at, empty for the repository's own branch, and its fence.

    A project with a hub lands there, whatever else is set: what a host has is only a mirror.
    """
    if hub_fence is not None:
        return remote, hub_fence
    return "" if merge.target is MergeTarget.LOCAL else remote, merge.fence


class ForgeKind(StrEnum):
    GITHUB = "github"


class AutoMerge(StrEnum):
    """Who merges in mode auto: Lockgate asks for one head, or the forge once it may."""

    LOCKGATE = "lockgate"
    FORGE = "github"


class DraftMode(StrEnum):
    """When a change is shown: once the train has tested it, or before that, as a draft."""

    NEVER = "never"
    EARLY = "early"


class CommentMode(StrEnum):
    """Whether comments without a request for changes send the change back by themselves."""

    ACT = "act"
    WAIT = "wait"


class IntakeSettings(Struct, frozen=True, kw_only=True):
    """Issues with this label become tasks; no label, no intake."""

    label: str = ""
    max_open: int = 5


class ForgeSettings(Struct, frozen=True, kw_only=True):
    """Where changes are offered as pull requests, and how; times are seconds."""

    kind: ForgeKind = ForgeKind.GITHUB
    repo: str = ""  # owner/name; from origin where empty
    draft: DraftMode = DraftMode.NEVER
    auto_merge: AutoMerge = AutoMerge.LOCKGATE
    comments: CommentMode = CommentMode.ACT
    bots: tuple[str, ...] = ()  # exact logins
    settle: int = 120
    ci_wait: int = 3600
    rounds: int = 8
    sign: bool = False
    intake: IntakeSettings = field(default_factory=IntakeSettings)


class CommitSettings(Struct, frozen=True):
    """Whose name an agent's work carries, and who makes merge commits: the user where empty."""

    author: Author = Author.USER
    identity: str = ""  # Name <address>


class BudgetSettings(Struct, frozen=True, kw_only=True):
    """0 is no limit."""

    task_usd: float = 5.0
    task_tokens: int = 0
    task_minutes: int = 120
    day_usd: float = 0.0


# What a human is told of unless the project says otherwise; progress is never told.
TOLD = ("approve", "land", "answer", "stuck", "paused", "red-tip", "budget", "trust", "login")


class NotifySettings(Struct, frozen=True, kw_only=True):
    """When the people of this project are told of what needs them; times are local."""

    urls: tuple[str, ...] = ()  # `env:NAME` each: an address is a secret, and this file is read
    kinds: tuple[str, ...] = TOLD
    urgent: tuple[str, ...] = ("red-tip",)  # told in quiet hours too
    quiet: str = ""  # 22:00-07:00
    digest: str = ""  # 08:30
    remind: str = "4h"  # twice; empty is never
    budget: tuple[float, ...] = (0.5, 0.8, 1.0)  # shares of `day_usd`


class AgentSettings(Struct, frozen=True, kw_only=True):
    """`[agents.NAME]`: an agent of the user's own, or who stands in for one that is known."""

    name: str
    command: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    fallback: str = ""  # the agent that goes on while this one is limited


class DifferentialSettings(Struct, frozen=True):
    """`strength_seconds` is how long changed tests are tried on planted faults; 0: not at all."""

    strength_seconds: int = STRENGTH_SECONDS


class Settings(Struct, frozen=True, kw_only=True):
    """No test paths means: those the test runner takes by itself."""

    formula: str
    gates: tuple[Gate, ...]
    project: ProjectSettings = field(default_factory=ProjectSettings)
    commands: Commands = field(default_factory=Commands)
    env: EnvSettings = field(default_factory=EnvSettings)
    test_paths: tuple[str, ...] = ()
    differential: DifferentialSettings = field(default_factory=DifferentialSettings)
    steps: tuple[Step, ...] = ()
    services: tuple[Service, ...] = ()
    retry: RetryConfig = field(default_factory=RetryConfig)
    limits: Limits = field(default_factory=Limits)
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    protect: tuple[str, ...] = ()
    merge: MergeSettings = field(default_factory=MergeSettings)
    forge: ForgeSettings = field(default_factory=ForgeSettings)
    commit: CommitSettings = field(default_factory=CommitSettings)
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    notify: NotifySettings = field(default_factory=NotifySettings)
    needs: tuple[str, ...] = ()  # labels of the hosts that may work on it, where there are several
    agents: tuple[AgentSettings, ...] = ()
    installed: tuple[str, ...] = ()  # agents that other packages bring; no part of the file


def labels_in(settings: Settings) -> tuple[str, ...]:
    """All that the project and its gates need of hosts; each once."""
    gates = (it for it in settings.gates if isinstance(it, CommandGate | DifferentialGate))
    return tuple(dict.fromkeys((*settings.needs, *(need for it in gates for need in it.needs))))


def protected_paths(settings: Settings) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*ALWAYS_PROTECTED, *settings.protect)))


def known_agents(settings: Settings) -> tuple[str, ...]:
    own = (agent.name for agent in settings.agents if agent.command)
    return (*HARNESSES, *own, *settings.installed)


def in_turn(settings: Settings, agent: str) -> tuple[str, ...]:
    """The agent, and behind it those that go on while it is limited; each once."""
    fallbacks = {it.name: it.fallback for it in settings.agents if it.fallback}
    found = {agent: None}
    while (following := fallbacks.get(agent)) and following not in found:
        found[following] = None
        agent = following
    return tuple(found)


def stand_ins(settings: Settings) -> tuple[str, ...]:
    """Every agent that may go on in another's place, and every one that it may be put in for."""
    pairs = ((it.name, it.fallback) for it in settings.agents if it.fallback)
    return tuple(dict.fromkeys(name for pair in pairs for name in pair))


def runs_bare(settings: Settings, agent: str) -> bool:
    """Whether this agent is a file, which runs in the sandbox only, and the project has none."""
    return digest_in(agent) is not None and settings.sandbox.level is SandboxLevel.NONE


def programs_in(settings: Settings, agent: str) -> tuple[str, ...]:
    """The words of an agent's command lines that may be paths in the repository."""
    lines = (line for it in settings.agents if it.name == agent for line in (it.command, it.resume))
    return tuple(word for line in lines for word in line if not word.startswith(("/", "-", "{")))


def pin(settings: Settings, base_commit: str, config_hash: str) -> Pinned:
    """The rules of a task that starts now. A gate of the train alone does not judge its change."""
    return Pinned(
        base_commit=base_commit,
        config_hash=config_hash,
        limits=settings.limits,
        retry=settings.retry,
        gates=tuple(reference(it) for it in settings.gates if Where.CHANGE in it.place.on),
        respawn=settings.project.respawn is Respawn.AUTO,
        resume=settings.project.resume is Respawn.AUTO,
        protect=protected_paths(settings),
        lands_alone=asks_first(settings.merge),
        author=settings.commit.author,
        sandboxed=settings.sandbox.level is SandboxLevel.AUTO,
        steps=tuple(steps_in_order(settings.steps)),
        budget=Budget(
            settings.budget.task_usd, settings.budget.task_tokens, settings.budget.task_minutes
        ),
    )


def asks_first(merge: MergeSettings) -> bool:
    """Whether a human must see what steers agents or CI before the change leaves this machine."""
    return merge.mode is MergeMode.AUTO or merge.target is MergeTarget.PULL_REQUEST


def steps_in_order(steps: Sequence[Step]) -> tuple[str, ...]:
    """Each behind those that it comes after; the configuration's check has found any cycle."""
    graph = TaskDAG[str].of({step.name: step.after for step in steps})
    return graph.order if isinstance(graph, TaskDAG) else ()


def reference(gate: Gate) -> GateRef:
    ref = GateRef(
        gate.name,
        kind_of(gate),
        gate.place.fail_fast,
        gate.place.serial,
        gate.place.conditional,
    )
    match gate:
        case ParallelReviewGate():
            return replace(
                ref, reviewers=gate.reviewers, advisory=gate.advisory, agent=gate.reviewer
            )
        case MultipassReviewGate():
            return replace(ref, agent=gate.reviewer)
        case HumanGate():
            return replace(ref, approvers=gate.approvers)
        case CommandGate() | DifferentialGate():
            return ref


# Which branch is the base.


class Target(Struct, frozen=True):
    """The branch that a build server says a change goes to, and the variable that says it."""

    variable: str
    branch: str


class Branches(Struct, frozen=True, kw_only=True):
    """What a repository says of its branches: each with its commit.

    `default` is the branch that the remote's HEAD names, `recorded` the one that `init` was told.
    """

    local: Mapping[str, str]
    fetched: Mapping[str, str]  # those of the remote, as they were when they were fetched
    default: str = ""
    recorded: str = ""
    remote: str = ""  # its name; empty where there is no remote


class Branch(Struct, frozen=True):
    """A branch and its commit; `ref` is how git knows it where it is the remote's."""

    name: str
    commit: str
    ref: str = ""


def target_of(environ: Mapping[str, str]) -> Target | None:
    """None where no build server speaks of a pull request."""
    for name in TARGETS:
        told = environ.get(name, "").removeprefix(HEADS)
        also = environ.get(ONLY_WITH.get(name, name), "")
        if told and also not in {"", "false"}:
            return Target(name, told)
    return None


def in_ci(environ: Mapping[str, str]) -> bool:
    """Where a build server runs us, local branches are what it made of the change.

    `CI=true` alone says nothing: people set it in their own shell. `CI=woodpecker` names a server.
    """
    named = environ.get("CI", "") not in PLAIN or any(environ.get(it) for it in SERVERS)
    return named or target_of(environ) is not None


def base_of(branches: Branches, *, fetched_first: bool = False) -> Branch | None:
    """The remote's default branch, the recorded one, a usual one, the only one; else None."""
    for name in _candidates(branches):
        found = tip_of(branches, name, fetched_first=fetched_first)
        if found:
            return found
    return None


def tip_of(branches: Branches, name: str, *, fetched_first: bool = False) -> Branch | None:
    here = Branch(name, branches.local.get(name, ""))
    there = Branch(name, branches.fetched.get(name, ""), f"{branches.remote}/{name}")
    both = (there, here) if fetched_first else (here, there)
    return next((it for it in both if it.commit), None)


def _candidates(branches: Branches) -> Iterator[str]:
    yield from filter(None, (branches.default, branches.recorded))
    yield from USUAL
    if len(branches.local) == 1 and not branches.remote:
        yield from branches.local
