"""The secrets that the agents and gates of a task are given, for whoever must not keep them."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from lockgate.core.config.settings import Settings
from lockgate.core.model.secrets import Secret, secrets_in
from lockgate.errors import LockgateError
from lockgate.ports import Candidate, Configuration, Credentials, Harnesses


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
