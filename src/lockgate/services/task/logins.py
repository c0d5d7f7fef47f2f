"""Whether an agent has a login. Every command, the orchestrator and `doctor` ask here."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from lockgate.core.config.settings import Settings
from lockgate.core.model.agents import NoLogin, Source, missing_login
from lockgate.core.model.task import Status, Task
from lockgate.ports import Credentials, Harnesses, Store, TaskFilter


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
