"""What agents log in with: what `lockgate auth` was told, and this process's own environment."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from lockgate.core.model.logins import Source
from lockgate.core.model.secrets import Secret, secrets_in_file
from lockgate.errors import Unavailable

LARGEST = 1024 * 1024  # bytes of a file of variables


class StoredCredentials(Struct, frozen=True):
    """One file an agent, readable by its owner alone; a value, or the name of a variable."""

    home: Path
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    elsewhere: Callable[[], frozenset[str] | None] = lambda: None
    """The names that are set where agents are started; None where that is this process."""

    def of(self, agent: str, names: Sequence[str]) -> Mapping[str, str]:
        found = {name: self.environ[name] for name in names if self.environ.get(name)}
        for name, told in self._stored(agent).items():
            value = told.get("value") or self.environ.get(told.get("variable", ""), "")
            if value:
                found[name] = value
        return found

    def sources(self, agent: str, names: Sequence[str]) -> Mapping[str, Source]:
        here = frozenset(name for name, value in self.environ.items() if value)
        stored, elsewhere = self._stored(agent), self.elsewhere()
        there = here if elsewhere is None else elsewhere
        return {name: _source(name, stored.get(name), here, there) for name in names}

    def store(self, agent: str, name: str, *, value: str = "", variable: str = "") -> Path:
        told = self._stored(agent) | {name: {"value": value, "variable": variable}}
        path = self._path(agent)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            beside = path.with_suffix(".new")
            with suppress(FileNotFoundError):
                beside.unlink()
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(told, file)
            beside.replace(path)
        except OSError as error:
            what, fix = f"the login of {agent} was not stored", "mend that, then try again"
            raise Unavailable(what, why=str(error), fix=fix) from error
        return path

    def forget(self, agent: str) -> tuple[str, ...]:
        """Remove what was stored; the names that it was stored for."""
        names = tuple(self._stored_or_broken(agent))
        try:
            self._path(agent).unlink(missing_ok=True)
        except OSError as error:
            what, fix = f"the login of {agent} was not forgotten", f"remove {self._path(agent)}"
            raise Unavailable(what, why=str(error), fix=fix) from error
        return names

    def names(self, agent: str) -> tuple[str, ...]:
        return tuple(self._stored(agent))

    def in_files(self, root: Path, names: Sequence[str]) -> tuple[Secret, ...]:
        """A folder counts with all files in it; what is no text has no variables."""
        files = [it for name in names for it in _files(root / name)]
        return tuple(it for file in files for it in secrets_in_file(_text(file)))

    def _stored(self, agent: str) -> dict[str, dict[str, str]]:
        try:
            return dict(json.loads(self._path(agent).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            what, fix = (
                f"the login of {agent} was not read",
                f"store it again: lockgate auth {agent}",
            )
            raise Unavailable(what, why=str(error), fix=fix) from error

    def _stored_or_broken(self, agent: str) -> dict[str, dict[str, str]]:
        """A file that cannot be read is removed like any other."""
        try:
            return self._stored(agent)
        except Unavailable:
            return {}

    def _path(self, agent: str) -> Path:
        return self.home / "auth" / f"{agent}.json"


def _source(
    name: str, told: Mapping[str, str] | None, here: frozenset[str], there: frozenset[str]
) -> Source:
    if told and (told.get("value") or told.get("variable") in there):
        return Source.STORED
    if name in there:
        return Source.ENVIRONMENT
    if name in here or (told and told.get("variable") in here):
        return Source.SHELL
    return Source.UNSET if told else Source.NONE


def _files(place: Path) -> Iterable[Path]:
    return sorted(it for it in place.rglob("*") if it.is_file()) if place.is_dir() else (place,)


def _text(file: Path) -> str:
    try:
        with file.open("rb") as found:
            return found.read(LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""
