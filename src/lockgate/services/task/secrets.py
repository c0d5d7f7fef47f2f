"""The secrets that the agents and gates of a task are given, for whoever must not keep them."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from lockgate.core.config.settings import Settings
from lockgate.core.model.secrets import Secret, secrets_in
from lockgate.core.model.task import Task
from lockgate.errors import LockgateError
from lockgate.ports import Configuration, Credentials, Harnesses, Project


class HandedOut(Struct, frozen=True):
    """The Secrets port, over what this process can look up now."""

    configuration: Configuration
    harnesses: Harnesses
    credentials: Credentials

    def of(self, project: Project, task: Task) -> tuple[Secret, ...]:
        """None before it has started; what cannot be looked up was handed to nobody."""
        if task.pinned is None:
            return ()
        try:
            settings = self.configuration.settings_at(project, task.pinned.base_commit)
        except LockgateError:
            return ()
        agents = dict.fromkeys((task.agent, *(it.agent for it in task.pinned.gates if it.agent)))
        found = [it for agent in agents for it in self._of_agent(agent, settings)]
        found += self.credentials.in_files(Path(project.root), settings.env.copy)
        return tuple({it.value: it for it in found}.values())

    def _of_agent(self, agent: str, settings: Settings) -> Iterator[Secret]:
        """All that `lockgate auth` was told, and all that an agent of the user's own names."""
        own = [name for it in settings.agents if it.name == agent for name in it.env]
        try:
            given = self.credentials.of(agent, self.harnesses.variables(agent, settings))
            yield from secrets_in(given, (*own, *self.credentials.names(agent)))
        except LockgateError:
            return
