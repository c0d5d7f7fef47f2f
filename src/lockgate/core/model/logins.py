"""Where an agent's login comes from, and whether the agent has one."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct


class Source(StrEnum):
    """Who holds one of the variables that an agent logs in with."""

    STORED = "stored"  # by `lockgate auth`
    ENVIRONMENT = "environment"  # of the process that starts agents
    SHELL = "shell"  # of this shell alone: agents do not get it
    UNSET = "unset"  # `lockgate auth` stored the name of a variable that is not set there
    NONE = "none"


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


def refused_login(agent: str, said: str, go_on: str) -> str:
    """What a human reads when the model's provider did not accept the login."""
    reason = f" ({said})" if said else ""
    return f"{agent}'s login was refused{reason}; run: lockgate auth {agent}, then: {go_on}"
