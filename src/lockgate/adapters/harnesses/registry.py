"""Every harness by the name that a configuration has for it: a port's face over small modules."""

import os
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lockgate.adapters.harnesses.harness import Found, Harness
from lockgate.core.config.settings import HARNESSES, Settings
from lockgate.core.model.agents import NETWORK, Exit, Job, Launch, Report, digest_in
from lockgate.errors import BadConfig, Unavailable

# Name → module of this package, imported when it is asked for; each has a HARNESS. The names are
# the configuration's, and a module is called as its agent is; where that is a program's, not so.
MODULES = {name: name for name in HARNESSES} | {"claude-live": "claude_talk"}
THIRD_PARTIES = "lockgate.harnesses"  # the group of entry points that each name a Harness


class Registry(Struct, frozen=True):
    """The Harnesses port. Programs are looked for along `search`, or this process's PATH.

    `copies` is the directory with the files that users named as agents.
    """

    search: str | None = None
    now: Callable[[], float] = time.time
    copies: Path = Path(os.devnull)

    def keep(self, file: Path) -> str:
        from lockgate.adapters.harnesses import own_agents  # noqa: PLC0415 - seldom needed

        return own_agents.keep(file, self.copies, self.search)

    def missing(self, agent: str, settings: Settings) -> str | None:
        harness = self._harness(agent, settings)
        return harness.install if harness.find(self.search) is None else None

    def launch(self, agent: str, settings: Settings, job: Job) -> Launch:
        harness = self._harness(agent, settings)
        allowed = self.variables(agent, settings)
        given = {name: job.environ[name] for name in allowed if name in job.environ}
        return harness.launch(self._found(agent, harness), replace(job, environ=given))

    def can_resume(self, agent: str, settings: Settings) -> bool:
        return self._harness(agent, settings).resumes

    def read(self, agent: str, settings: Settings, output: str, exit: Exit) -> Report:
        return self._harness(agent, settings).read(output, exit, self.now())

    def paths(self, agent: str, settings: Settings) -> tuple[str, ...]:
        return self._found(agent, self._harness(agent, settings)).paths

    def variables(self, agent: str, settings: Settings) -> tuple[str, ...]:
        return (*self._harness(agent, settings).variables, *NETWORK)

    def keys(self, agent: str, settings: Settings) -> tuple[str, ...]:
        return self._harness(agent, settings).keys

    def login(self, agent: str, settings: Settings, given: Mapping[str, str]) -> str:
        harness = self._harness(agent, settings)
        if harness.login is not None:
            return harness.login(given)
        return next((name for name in harness.keys if name in given), "")

    def logins(self, agent: str, settings: Settings) -> tuple[str, ...]:
        """Those of them that it logs in by and chooses its model with."""
        return tuple(it for it in self.variables(agent, settings) if it not in NETWORK)

    def _harness(self, agent: str, settings: Settings) -> Harness:
        if digest_in(agent):
            module = import_module(f"{__package__}.own_agents")
            return _checked(agent, module.harness_of(agent, self.copies))
        return _named(agent, settings)

    def _found(self, agent: str, harness: Harness) -> Found:
        found = harness.find(self.search)
        if found is None:
            raise Unavailable(
                f"agent {agent} was not started",
                why="its program is not on this machine's PATH",
                fix=harness.install,
            )
        return found


def _named(agent: str, settings: Settings) -> Harness:
    if agent in MODULES:
        return _checked(agent, import_module(f"{__package__}.{MODULES[agent]}").HARNESS)
    for own in settings.agents:
        if own.name == agent and own.command:
            return _checked(agent, import_module(f"{__package__}.own_agents").command_harness(own))
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow to load, and seldom needed

    for entry in entry_points(group=THIRD_PARTIES, name=agent):
        return _checked(agent, entry.load())
    raise BadConfig(
        f"agent {agent!r} was not found",
        why=f"it is neither {', '.join(MODULES)} nor an [agents.{agent}] of the configuration",
        fix=f"write [agents.{agent}] with its command, or install a package that brings it",
    )


def _checked(agent: str, found: object) -> Harness:
    if isinstance(found, Harness):
        return found
    raise BadConfig(
        f"agent {agent!r} was not loaded",
        why=f"the entry point {agent!r} of {THIRD_PARTIES} names a {type(found).__name__}",
        fix="let it name a lockgate.adapters.harnesses.Harness",
    )
