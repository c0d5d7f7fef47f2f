"""What a configuration asks for beyond the sandboxed default, as a question to a human.

A request has a key, which is what a human says yes to, and a sentence, which is what they read.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase

from msgspec import Struct, field

from lockgate.core.config.settings import (
    AgentSettings,
    MergeMode,
    MergeTarget,
    SandboxLevel,
    Settings,
)
from lockgate.core.model.task import Task

CONFIG = ".lockgate/config.toml"
DIGEST = 32  # characters of the SHA-256
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./~:@+=,{}[]*")


class Mark(StrEnum):
    ASKS = "asks"
    HARMLESS = "harmless"


A, H = Mark.ASKS, Mark.HARMLESS

# Every key of the file. What is harmless is so because it acts inside the sandbox only, or because
# `level = "none"`, which asks, has let it out; or because it only says when people are told.
KEYS: Mapping[str, Mark] = {
    **{f"project.{it}": H for it in ("base", "agent", "slots", "respawn", "resume")},
    **{f"commands.{it}": H for it in ("test", "typecheck")},
    **{f"env.{it}": H for it in ("setup", "inputs")},
    **{f"env.{it}": A for it in ("copy", "pass")},
    "tests.paths": H,
    "differential.strength_seconds": H,
    **{f"gates.{it}": H for it in ("formula", "skip")},
    **{f"gates.list.{it}": H for it in ("name", "type", "command", "serial", "fail_fast")},
    **{f"gates.list.{it}": H for it in ("attempts", "timeout", "report", "exclusive", "on")},
    **{f"gates.list.{it}": H for it in ("when", "paths", "dimensions", "advisory")},
    **{f"gates.list.{it}": H for it in ("reviewer", "prompt", "approvers", "needs")},
    **{f"steps.{it}": H for it in ("name", "phase", "command", "expect", "after")},
    **{f"services.{it}": H for it in ("name", "service", "command", "ready", "port")},
    **{f"services.{it}": H for it in ("prepare", "inputs")},
    "services.env": A,
    **{f"retry.{it}": H for it in ("strategy", "fresh_after_failures", "max_iterations")},
    **{f"limits.{it}": H for it in ("step_failures", "call_attempts", "call_base_delay_ms")},
    **{f"limits.{it}": H for it in ("call_backoff", "crashes", "review_rounds")},
    "limits.escalation_threshold": H,
    **{f"sandbox.{it}": A for it in ("level", "network", "allow", "read")},
    **{f"sandbox.{it}": H for it in ("memory_mb", "scratch_mb", "session_disk_mb", "pids")},
    "protect.paths": H,
    **{f"merge.{it}": A for it in ("mode", "target")},
    **{f"merge.{it}": H for it in ("strategy", "fence", "window", "batch")},
    **{f"forge.{it}": A for it in ("kind", "repo", "bots")},
    **{f"forge.{it}": H for it in ("draft", "auto_merge", "comments", "settle", "ci_wait")},
    **{f"forge.{it}": H for it in ("rounds", "sign")},
    "forge.intake.label": A,
    "forge.intake.max_open": H,
    "commit.author": H,
    "commit.identity": A,
    **{f"budget.{it}": H for it in ("task_usd", "task_tokens", "task_minutes", "day_usd")},
    "notify.urls": A,
    **{f"notify.{it}": H for it in ("kinds", "urgent", "quiet", "digest", "remind", "budget")},
    **{f"agents.{it}": A for it in ("command", "resume", "env")},
    "agents.fallback": H,
    "fleet.needs": H,
}


class Request(Struct, frozen=True):
    key: str
    says: str  # what comes after "it wants to"


class Surroundings(Struct, frozen=True, kw_only=True):
    """What the words of a configuration mean on this machine.

    `read` and `copy` have where each path really leads, `programs` the digest of each file of the
    repository that an agent's command names.
    """

    home: str = ""
    read: Mapping[str, str] = field(default_factory=dict[str, str])
    copy: Mapping[str, str] = field(default_factory=dict[str, str])
    programs: Mapping[str, str] = field(default_factory=dict[str, str])


class Question(Struct, frozen=True, kw_only=True):
    """All that is asked for, what of it has no yes yet, and the digest that stands for all."""

    asked: tuple[Request, ...] = ()
    new: tuple[Request, ...] = ()
    origin: str = ""

    @property
    def digest(self) -> str:
        said = json.dumps([self.origin, *sorted(it.key for it in self.asked)])
        return hashlib.sha256(said.encode()).hexdigest()[:DIGEST]


def requests(settings: Settings, around: Surroundings) -> tuple[Request, ...]:
    """What goes beyond the sandboxed default; each once."""
    found = (
        *_of_sandbox(settings, around),
        *_of_env(settings, around),
        *_of_agents(settings, around),
        *_of_merge(settings),
        *_of_forge(settings),
        *_of_notify(settings),
    )
    return tuple(dict.fromkeys(found))


def grown(asked: Iterable[Request], granted: Collection[str]) -> tuple[Request, ...]:
    return tuple(it for it in asked if it.key not in granted)


def outside_words(settings: Settings) -> tuple[str, ...]:
    """The words of agents' commands that may name a program of the repository."""
    if settings.sandbox.level is SandboxLevel.AUTO:
        return ()
    words = (it for agent in settings.agents for it in (*agent.command, *agent.resume))
    return tuple(dict.fromkeys(it for it in words if "{" not in it and not it.startswith("-")))


def agreed(tasks: Iterable[Task]) -> bool:
    """Whether a human said yes to each of these changes that edits the configuration."""
    editing = [it for it in tasks if CONFIG in it.protected]
    return bool(editing) and all(it.to_land or _approved(it) for it in editing)


def _approved(task: Task) -> bool:
    return any(it.patch == task.patch for it in task.approvals)


def _of_sandbox(settings: Settings, around: Surroundings) -> Iterator[Request]:
    sandbox = settings.sandbox
    if sandbox.level is SandboxLevel.NONE:
        says = "run its tests, its set-up and its agents without a sandbox"
        yield Request("sandbox.level none", says)
    if sandbox.network:
        yield Request("sandbox.network", "give its gates the network")
    for port in sandbox.allow:
        yield Request(f"sandbox.allow {port}", f"let its gates connect to {port}")
    for path in sandbox.read:
        real = around.read.get(path, path)
        yield Request(f"sandbox.read {real}", f"read {_path(real, around)}")
    for service in settings.services:
        for name, value in service.env:
            says = f"set the variable {name} of its agents and gates to {_plain(value)}"
            yield Request(f"services.env {name} {value}", says)


def _of_env(settings: Settings, around: Surroundings) -> Iterator[Request]:
    for path in settings.env.copy:
        real = around.copy.get(path, path)
        leads = "" if real == path else f", which is {_path(real, around)}"
        says = f"give its agents and gates a copy of your {_plain(path)}{leads}"
        yield Request(f"env.copy {path} {real}", says)
    for name in settings.env.passed:
        yield Request(f"env.pass {name}", f"pass {_plain(name)} to its set-up")


def _of_agents(settings: Settings, around: Surroundings) -> Iterator[Request]:
    bare = settings.sandbox.level is SandboxLevel.NONE
    for agent in settings.agents:
        for line in (agent.command, agent.resume):
            if line and bare:
                yield _on_the_host(agent, line, around)
            elif line and line[0].startswith(("/", "~")):
                says = f"show {_plain(line[0])} to its agent {agent.name}, which runs it"
                yield Request(f"agents.{agent.name} shows {line[0]}", says)
        for name in agent.env:
            yield Request(
                f"agents.{agent.name} gets {name}", f"pass {name} to its agent {agent.name}"
            )


def _on_the_host(agent: AgentSettings, line: Sequence[str], around: Surroundings) -> Request:
    """With the content of each file of the repository that the command names."""
    own = {word: around.programs[word] for word in line if word in around.programs}
    command = " ".join(map(_plain, line))
    whose = " of this repository" if own else ""
    says = f"run the program `{command}`{whose} outside the sandbox, as its agent {agent.name}"
    return Request(f"agents.{agent.name} runs {json.dumps([*line, own], sort_keys=True)}", says)


def _of_merge(settings: Settings) -> Iterator[Request]:
    if settings.merge.mode is MergeMode.AUTO:
        yield Request("merge.mode auto", "land changes by itself")
    if settings.merge.target is MergeTarget.REMOTE:
        yield Request("merge.target remote", "push what lands to origin")
    if settings.commit.identity:
        who = _plain(settings.commit.identity)
        yield Request(f"commit.identity {who}", f"make merge commits in the name of {who}")


def _of_forge(settings: Settings) -> Iterator[Request]:
    forge, label = settings.forge, settings.forge.intake.label
    if settings.merge.target is MergeTarget.PULL_REQUEST:
        where = f" of {_plain(forge.repo)}" if forge.repo else ""
        says = f"push branches to origin and open pull requests{where} with your {forge.kind} login"
        yield Request(f"merge.target pull_request {forge.kind} {forge.repo}", says)
    for login in forge.bots:
        yield Request(f"forge.bots {login}", f"take {_plain(login)} for a reviewer it can trust")
    if label:
        yield Request(
            f"forge.intake.label {label}", f"make tasks of issues labelled {_plain(label)}"
        )


def _of_notify(settings: Settings) -> Iterator[Request]:
    """The address itself is the user's own; which one it is, the repository says."""
    for url in settings.notify.urls:
        name = _plain(url.removeprefix("env:"))
        yield Request(f"notify.urls {name}", f"send notifications to the address in ${name}")


def _path(path: str, around: Surroundings) -> str:
    inside = around.home and path.startswith(f"{around.home}/")
    return _plain(f"~{path[len(around.home) :]}" if inside else path)


def _plain(word: str) -> str:
    """Quoted where it could be read as more than one word of our sentence."""
    return word if word and set(word) <= PLAIN else json.dumps(word)


# --- origins --------------------------------------------------------------------------------------

PORTS = {"https": "443", "ssh": "22"}


def origin_of(url: str) -> str:
    """`host/owner/name` for an address of https, ssh or scp form; empty for any other.

    Also empty where a server may read the path in another way than we do.
    """
    if "\\" in url or " " in url or not url.isprintable():
        return ""
    scheme, found, rest = url.partition("://")
    if not found:
        return _scp(url)
    if scheme not in PORTS:
        return ""
    authority, _, path = rest.partition("/")
    host, _, port = authority.rpartition("@")[2].partition(":")
    kept = "" if port in {"", PORTS[scheme]} else f":{port}"
    return _joined(host + kept, path)


def from_origin(origin: str, patterns: Iterable[str]) -> bool:
    return bool(origin) and any(fnmatchcase(origin, it) for it in patterns)


def names_a_host(pattern: str) -> bool:
    """Whether it begins with one host, spelled out: no pattern trusts every server."""
    host, slash, path = pattern.partition("/")
    return bool(host and slash and path) and not set(host) & set("*?[]")


def _scp(url: str) -> str:
    host, colon, path = url.partition(":")
    return (
        _joined(host.rpartition("@")[2], path.removeprefix("/"))
        if colon and "/" not in host
        else ""
    )


def _joined(host: str, path: str) -> str:
    parts = path.removesuffix("/").removesuffix(".git").split("/")
    fine = set(host + path) <= PLAIN - set("[]{}*,") and not {"", ".", ".."} & set(parts)
    return f"{host.lower()}/{'/'.join(parts)}" if host and fine else ""
