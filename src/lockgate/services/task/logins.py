"""Whether an agent has a login. Every command, the orchestrator and `doctor` ask here.

Also which secrets the agents and gates of a task are given, for whoever must not keep them.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from lockgate.core.config.settings import Settings
from lockgate.core.model.agents import NoLogin, Source, missing_login
from lockgate.core.model.secrets import Secret, secrets_in
from lockgate.core.model.task import Status, Task
from lockgate.errors import LockgateError
from lockgate.ports import Candidate, Configuration, Credentials, Harnesses, Store, TaskFilter


class Logins(Struct, frozen=True):
    """Which variables an agent logs in by, and what the user has given for them."""

    harnesses: Harnesses
    credentials: Credentials

    def missing(self, agent: str, settings: Settings) -> NoLogin | None:
        """None where its sessions would get a login, or where it needs none."""
        keys = self.keys(agent, settings)
        return missing_login(agent, self.credentials.sources(agent, keys)) if keys else None

    def names(self, agent: str, settings: Settings) -> tuple[str, ...]:
        return self.harnesses.logins(agent, settings)

    def keys(self, agent: str, settings: Settings) -> tuple[str, ...]:
        """Those of which any one is a login."""
        return self.harnesses.keys(agent, settings)

    def sources(self, agent: str, settings: Settings) -> Mapping[str, Source]:
        return self.credentials.sources(agent, self.names(agent, settings))

    def stored(self, agent: str) -> tuple[str, ...]:
        return self.credentials.names(agent)

    def keep(self, agent: str, name: str, *, value: str = "", variable: str = "") -> Path:
        return self.credentials.store(agent, name, value=value, variable=variable)

    def forget(self, agent: str) -> tuple[str, ...]:
        """Remove what was stored; the names that it was stored for."""
        return self.credentials.forget(agent)


# A usage limit belongs to an agent's login: the first task that hits it parks all of them.


BATCH = 1000
_AT_WORK = frozenset({Status.WORKING, Status.AGENT_REVIEW})


def usage_limits(store: Store, now: float) -> Mapping[str, float]:
    """Until when each agent that is limited now has to wait, by the tasks that have hit it."""
    found: dict[str, float] = {}
    after = None
    while True:
        page = store.page(TaskFilter(None, _AT_WORK), after, BATCH)
        for task in page.tasks:
            if now < task.not_before:
                agent = _last_agent(store, task)
                found[agent] = max(found.get(agent, 0.0), task.not_before)
        after = page.after
        if after is None:
            return found


def _last_agent(store: Store, task: Task) -> str:
    """Whose session ended last: a reviewer's may be another than the task's own."""
    ended = [it for it in store.sessions(task.id) if it.ended is not None]
    last = max(ended, key=lambda it: it.ended or 0.0, default=None)
    return (last.agent if last else "") or task.agent


# The secrets that the agents and gates of a task are given.


class HandedOut(Struct, frozen=True):
    """The Secrets port, over what this process can look up now."""

    configuration: Configuration
    harnesses: Harnesses
    credentials: Credentials

    def of(self, it: Candidate, agent: str) -> tuple[Secret, ...]:
        """None before it has started; what cannot be looked up was handed to nobody."""
        if it.rules is None:
            return ()
        try:
            settings = self.configuration.settings_at(it.project, it.rules.base_commit)
        except LockgateError:
            return ()
        agents = dict.fromkeys((agent, *(gate.agent for gate in it.rules.gates if gate.agent)))
        found = [secret for name in agents for secret in self._of_agent(name, settings)]
        found += self.credentials.in_files(Path(it.project.root), settings.env.copy)
        return tuple({it.value: it for it in found}.values())

    def _of_agent(self, agent: str, settings: Settings) -> Iterator[Secret]:
        """All that `lockgate auth` was told, and all that an agent of the user's own names."""
        own = [name for it in settings.agents if it.name == agent for name in it.env]
        try:
            given = self.credentials.of(agent, self.harnesses.variables(agent, settings))
            yield from secrets_in(given, (*own, *self.credentials.names(agent)))
        except LockgateError:
            return
