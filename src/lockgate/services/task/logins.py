"""Whether an agent has a login. Every command, the orchestrator and `doctor` ask here.

Also which secrets the agents and gates of a task are given, so that they are never stored.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from lockgate.core.config.settings import Settings, stand_ins
from lockgate.core.model.agents import NoLogin, Source, login_of, missing_login, whose_turn
from lockgate.core.model.secrets import Secret, secrets_in
from lockgate.core.model.task import Session
from lockgate.errors import LockgateError
from lockgate.ports import Candidate, Configuration, Credentials, Harnesses, Store

Limits = Mapping[str, float]  # logins, and when the usage limit of each ends


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

    def login(self, agent: str, settings: Settings) -> str:
        """What its sessions log in with, as a digest: the same for all that share a login."""
        given = self.credentials.of(agent, self.names(agent, settings))
        name = self.harnesses.login(agent, settings, given)
        return login_of(agent, given.get(name, ""))

    def turn(self, agents: Sequence[str], settings: Settings, limits: Limits) -> tuple[str, float]:
        """Which of these agents may work now, and until when it waits where all are limited.

        One that stands in must be installed and logged in.
        """
        first, *others = agents
        ready = [first, *(it for it in others if self.is_ready(it, settings))]
        logins = {it: self.login(it, settings) for it in ready}
        limited = {it: limits[login] for it, login in logins.items() if login in limits}
        return whose_turn(ready, limited)

    def is_ready(self, agent: str, settings: Settings) -> bool:
        """Whether its program is here, and a login where it needs one."""
        installed = self.harnesses.missing(agent, settings) is None
        return installed and self.missing(agent, settings) is None

    def stored(self, agent: str) -> tuple[str, ...]:
        return self.credentials.names(agent)

    def keep(self, agent: str, name: str, *, value: str = "", variable: str = "") -> Path:
        return self.credentials.store(agent, name, value=value, variable=variable)

    def forget(self, agent: str) -> tuple[str, ...]:
        """Remove what was stored; the names that it was stored for."""
        return self.credentials.forget(agent)


# A usage limit belongs to a login: the first session that hits it parks all tasks of that login.


def usage_limits(store: Store, now: float) -> Limits:
    """Until when each login that is limited now has to wait, by the sessions that have hit it."""
    found: dict[str, float] = {}
    for session in store.sessions_limited(now):
        login = login_in(session)
        found[login] = max(found.get(login, 0.0), session.limited_until)
    return found


def login_in(session: Session) -> str:
    """What it logged in with; sessions that began before this was noted have their agent's name."""
    return session.login or login_of(session.agent, "")


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
        reviewers = (gate.agent for gate in it.rules.gates if gate.agent)
        agents = dict.fromkeys((agent, *reviewers, *stand_ins(settings)))
        found = [secret for name in agents for secret in self._of_agent(name, settings)]
        given = self.credentials.of(agent, settings.env.passed)
        found += secrets_in({name: given[name] for name in settings.env.passed if name in given})
        files = Path(it.project.files or it.project.root)
        found += self.credentials.in_files(files, settings.env.copy)
        return tuple({it.value: it for it in found}.values())

    def _of_agent(self, agent: str, settings: Settings) -> Iterator[Secret]:
        """All that `lockgate auth` was told, and all that an agent of the user's own names."""
        own = [name for it in settings.agents if it.name == agent for name in it.env]
        try:
            given = self.credentials.of(agent, self.harnesses.variables(agent, settings))
            yield from secrets_in(given, (*own, *self.credentials.names(agent)))
        except LockgateError:
            return
