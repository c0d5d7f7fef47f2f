"""The doors to those who are told: their addresses, the ledger of what was told, the way there."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from lockgate.core.notices.plan import Entry
from lockgate.core.notices.text import Message


class Address(Struct, frozen=True, kw_only=True):
    """Where somebody is told; its URL holds secrets and is shown to nobody."""

    name: str
    url: str
    secret: str = ""  # of a webhook; it signs what is sent
    person: str = ""  # for whom
    kinds: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    added: float = 0.0

    @property
    def is_webhook(self) -> bool:
        return bool(self.secret)


class Letter(Struct, frozen=True, kw_only=True):
    """What is sent: the message for people, the facts for programs, and its id."""

    id: str
    message: Message
    facts: dict[str, object]


class Addresses(Protocol):
    """Kept in the home, readable by its owner alone."""

    def all(self) -> tuple[Address, ...]: ...
    def add(self, address: Address) -> None:
        """Refused where its name is taken."""
        ...

    def remove(self, name: str) -> bool: ...
    def muted(self) -> frozenset[str]:
        """The tasks of which nobody is told."""
        ...

    def mute(self, task: str, *, muted: bool) -> None: ...
    def variable(self, name: str) -> str:
        """The address that an `env:NAME` of a repository stands for; empty where it is not set."""
        ...


class Notifier(Protocol):
    def send(self, address: Address, letter: Letter) -> str:
        """Why it did not arrive; empty where it did. It comes back within a time limit."""
        ...

    def problem(self, url: str) -> str:
        """Why nothing can be sent there; empty where it can."""
        ...

    def new_secret(self) -> str: ...


class NoticeLog(Protocol):
    """Who was told what. Each method that writes is one transaction."""

    def entries(self) -> tuple[Entry, ...]: ...
    def write(self, put: Sequence[Entry], drop: Sequence[Entry] = ()) -> None: ...
    def spent(self, project: str, since: float) -> float:
        """What the sessions of a project have cost that ended since then, in USD."""
        ...
