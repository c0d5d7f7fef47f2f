"""What is said to an agent's program and what is read from it; no program is started here.

Also where an agent's login comes from.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field

from lockgate.core.model.task import Role

# An agent that is one file of the user's. Its name has the file's name and the digest of its bytes.
DIGEST = 32  # characters of the SHA-256
LONGEST_NAME = 40
_FILE_AGENT = re.compile(r"[A-Za-z0-9._-]+@([0-9a-f]{32})")
_ODD = re.compile(r"[^A-Za-z0-9._-]")


def names_a_file(agent: str) -> bool:
    """Whether a user who asks for this agent means a file: `./agent.sh`, `/opt/agent`."""
    return "/" in agent


def file_agent(file: str, digest: str) -> str:
    """The name of the agent that is this file, with the content that has this digest."""
    plain = _ODD.sub("-", file)[:LONGEST_NAME]
    return f"{plain or 'agent'}@{digest[:DIGEST]}"


def digest_in(agent: str) -> str | None:
    """The digest in a file agent's name; None for every other agent."""
    found = _FILE_AGENT.fullmatch(agent)
    return found[1] if found else None


# How this machine reaches the world: every agent and every set-up needs to know these variables.
NETWORK = (
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
)
WORKSPACE = "/workspace"  # where every agent finds the checkout it works in or reviews
AGENT_HOME = "/home/agent"
DOOR = "/run/lockgate"  # the directory with the session's socket and its `lockgate` command


class Job(Struct, frozen=True, kw_only=True):
    """What an agent is asked to do. Paths are those inside the sandbox."""

    prompt: str
    role: Role
    task: str
    session: str
    environ: Mapping[str, str] = field(default_factory=dict[str, str])  # credentials, as given
    native: str = (
        ""  # the id by which the agent's own program resumes; empty starts a new conversation
    )
    interactive: bool = False
    stop_command: tuple[str, ...] = ()  # what a Stop hook runs; empty where there is no hook
    mcp_command: tuple[str, ...] = ()  # the server of Lockgate's tools; empty where there is none
    home: str = AGENT_HOME  # without a sandbox it is where these two really lie
    workspace: str = WORKSPACE


class Launch(Struct, frozen=True, kw_only=True):
    """How the agent's program is started inside the sandbox."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    stdin: str | None = None
    files: Mapping[str, str] = field(
        default_factory=dict[str, str]
    )  # in its HOME, rewritten at each start
    kept: Mapping[str, str] = field(default_factory=dict[str, str])  # in its HOME, unless there
    programs: Mapping[str, str] = field(default_factory=dict[str, str])  # as `files`, to be run
    native: str = ""  # the id its program was told to go by, where its output will not say one
    limited: str = ""  # a pattern: lines with which it says that it waits for a usage limit to end


class Usage(Struct, frozen=True):
    usd: float = 0.0
    tokens: int = 0


class Report(Struct, frozen=True, kw_only=True):
    """What a session's output says of itself. Nothing of it moves a task forward."""

    native: str = ""
    usage: Usage = Usage()
    cumulative: bool = False  # the usage is that of all runs of this native session together
    exhausted: bool = False  # its context is full: only a fresh agent can go on
    limited_until: float | None = None  # no more work before this time; 0 where it does not say
    refused: bool = False  # its login was not accepted
    failure: str = ""  # why it ended badly, in the program's own words
    said: str = ""  # its last words, for people


class Ending(StrEnum):
    """Why a session is over."""

    EXITED = "exited"
    ENDED = "ended"  # by us, on somebody's word
    WALL_CLOCK = "wall-clock"
    SILENT = "silent"
    LIMITED = "limited"  # its model told it to wait, and it only tried again and again
    MEMORY = "memory"  # it used more than it may
    DISK = "disk"  # as above
    SERVICE = "service"  # what it needs beside it was not ready, so it never began
    LOST = "lost"  # its runner is gone and left no word
    INTERRUPTED = "interrupted"  # the machine went down


class Exit(Struct, frozen=True, kw_only=True):
    """A session's end as its runner wrote it down; no code where a signal or we ended it."""

    ending: Ending
    code: int | None = None
    seconds: float = 0.0  # awake, not counting sleep
    why: str = ""  # in words, where it used up more than it may, or a service was not ready


USED_UP = frozenset({Ending.MEMORY, Ending.DISK})


class End(Struct, frozen=True):
    """All that is known of a session that is over; `spent` is what this run alone has used."""

    exit: Exit = Exit(ending=Ending.EXITED)
    report: Report = Report()
    spent: Usage = Usage()
    resumable: bool = False  # its conversation can be taken up again
    skipped: str = ""  # fallbacks of its agent that are not installed


# Where an agent's login comes from, and whether the agent has one.


class Source(StrEnum):
    """Who holds one of the variables that an agent logs in with."""

    STORED = "stored"  # by `lockgate auth`
    ENVIRONMENT = "environment"  # of the process that starts agents
    SHELL = "shell"  # of this shell alone: agents do not get it
    UNSET = "unset"  # `lockgate auth` stored the name of a variable that is not set there
    NONE = "none"


KEY_DIGEST = 16  # characters of the SHA-256 of a key: it tells logins apart, and gives none away

REACHES_AGENTS = frozenset({Source.STORED, Source.ENVIRONMENT})


class NoLogin(Struct, frozen=True):
    """Why an agent cannot log in, and the command that gives it a login."""

    why: str
    fix: str


def missing_login(agent: str, keys: Mapping[str, Source]) -> NoLogin | None:
    """Any one of `keys` is a login; None where the agent has one or needs none."""
    if not keys or not REACHES_AGENTS.isdisjoint(keys.values()):
        return None
    why, fix = f"{agent} is not logged in", f"lockgate auth {agent}"
    for name, source in keys.items():
        if source is Source.SHELL:
            why = f"{why}: {name} is set in this shell, but the orchestrator was started without it"
            return NoLogin(why, f"{fix}, or stop the orchestrator and try again: lockgate down")
        if source is Source.UNSET:
            why = f"{why}: the variable that lockgate auth was told to read for {name} is not set"
            return NoLogin(why, fix)
    return NoLogin(why, fix)


def login_of(agent: str, key: str) -> str:
    """What a usage limit belongs to: the key, or the agent itself where it has none."""
    return hashlib.sha256(key.encode()).hexdigest()[:KEY_DIGEST] if key else f"agent {agent}"


def whose_turn(agents: Sequence[str], limited: Mapping[str, float]) -> tuple[str, float]:
    """The first of these whose login is not limited, and 0.

    Where all are limited: the one whose limit ends first, and when it ends.
    """
    for agent in agents:
        if agent not in limited:
            return agent, 0.0
    first = min(agents, key=lambda it: limited[it])
    return first, limited[first]


def refused_login(agent: str, said: str, go_on: str) -> str:
    """What a human reads when the model's provider did not accept the login."""
    reason = f" ({said})" if said else ""
    return f"{agent}'s login was refused{reason}; run: lockgate auth {agent}, then: {go_on}"
