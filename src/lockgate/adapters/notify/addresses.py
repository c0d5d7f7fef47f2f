"""`notify.json` in the home: where people are told, and of which tasks they are not.

Its URLs hold secrets, so that nobody but its owner can read it.
"""

import fcntl
import json
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from msgspec import Struct, ValidationError, convert, field, to_builtins

from lockgate.errors import BadConfig, Refused, Unavailable
from lockgate.ports.notify import Address

FILE = "notify.json"


class Kept(Struct, frozen=True):
    addresses: tuple[Address, ...] = ()
    muted: tuple[str, ...] = ()


class FileAddresses(Struct, frozen=True):
    """The Addresses port."""

    home: Path
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def all(self) -> tuple[Address, ...]:
        return self._read().addresses

    def muted(self) -> frozenset[str]:
        return frozenset(self._read().muted)

    def add(self, address: Address) -> None:
        def added(kept: Kept) -> Kept:
            if any(it.name == address.name for it in kept.addresses):
                raise Refused(
                    f"{address.name} was not added",
                    why="a target has that name already",
                    fix=f"name it otherwise by --name, or: lockgate notify remove {address.name}",
                )
            return Kept((*kept.addresses, address), kept.muted)

        self._change(added)

    def remove(self, name: str) -> bool:
        before = self.all()
        self._change(lambda it: Kept(tuple(a for a in it.addresses if a.name != name), it.muted))
        return any(it.name == name for it in before)

    def mute(self, task: str, *, muted: bool) -> None:
        def changed(kept: Kept) -> Kept:
            others = tuple(it for it in kept.muted if it != task)
            return Kept(kept.addresses, (*others, task) if muted else others)

        self._change(changed)

    def variable(self, name: str) -> str:
        return self.environ.get(name, "")

    def _change(self, changed: Callable[[Kept], Kept]) -> None:
        """One writer at a time: the answer of another is not lost."""
        try:
            with self._alone():
                _write(self._path, changed(self._read()))
        except OSError as error:
            why, fix = f"{self._path}: {error.strerror}", "see that the home can be written"
            raise Unavailable("notify.json was not written", why=why, fix=fix) from error

    @contextmanager
    def _alone(self) -> Generator[None]:
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self.home / f"{FILE}.lock").open("a", encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield

    def _read(self) -> Kept:
        try:
            text = self._path.read_text(encoding="utf-8")
            return convert(cast("object", json.loads(text)), Kept)
        except FileNotFoundError:
            return Kept()
        except (OSError, ValueError, ValidationError) as error:
            fix = f"repair or remove {self._path}, then add the targets again"
            raise BadConfig("notify.json was not read", why=str(error), fix=fix) from error

    @property
    def _path(self) -> Path:
        return self.home / FILE


def _write(path: Path, kept: Kept) -> None:
    beside = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(to_builtins(kept), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
