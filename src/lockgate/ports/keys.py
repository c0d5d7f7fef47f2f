"""The door to what lets people and programs in at the web board: links, logins and tokens."""

from enum import StrEnum
from typing import Protocol

from msgspec import Struct


class KeyKind(StrEnum):
    LINK = "link"  # logs in once, and soon
    LOGIN = "login"  # a browser's
    TOKEN = "token"  # a program's


class Key(Struct, frozen=True, kw_only=True):
    """As it is kept: by the hash of what its owner has."""

    hash: str
    kind: KeyKind
    person: str
    name: str = ""
    read_only: bool = False
    made: float = 0.0
    expires: float = 0.0  # 0 is never


class WebKeys(Protocol):
    def add(self, key: Key, now: float) -> None:
        """Also forgets those that have expired."""
        ...

    def find(self, hash: str, kind: KeyKind, now: float) -> Key | None: ...
    def take(self, hash: str, kind: KeyKind, now: float) -> Key | None:
        """Find and remove it, in one step: two who come at once do not both get it."""
        ...

    def all(self, kind: KeyKind, now: float) -> tuple[Key, ...]: ...
    def drop(self, hash: str) -> None: ...
    def drop_all_of(self, person: str) -> None: ...


class Place(Struct, frozen=True, kw_only=True):
    """Where a home's board is served: a host name that no other server here has, and its secret."""

    host: str
    secret: str
    url: str = ""  # where people reach it, for links in notifications


class Serving(Struct, frozen=True, kw_only=True):
    """How a home is served to people on other machines, as its owner has written it down."""

    certificate: str = ""  # files
    key: str = ""
    url: str = ""  # where people reach it; default: the address that it listens at
    ssh: str = ""  # what ssh calls this machine, where that is not the name in the url
    projects: tuple[str, ...] = ()  # repositories that may have tasks, besides those that had some
