"""What agents log in with: what `lockgate auth` was told, and this process's own environment."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from lockgate.core.model.secrets import Secret, secrets_in_file
from lockgate.errors import Unavailable

LARGEST = 1024 * 1024  # bytes of a file of variables


class StoredCredentials(Struct, frozen=True):
    """One file an agent, readable by its owner alone; a value, or the name of a variable."""

    home: Path
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def of(self, agent: str, names: Sequence[str]) -> Mapping[str, str]:
        found = {name: self.environ[name] for name in names if self.environ.get(name)}
        for name, told in self._stored(agent).items():
            value = told.get("value") or self.environ.get(told.get("variable", ""), "")
            if value:
                found[name] = value
        return found

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

    def _path(self, agent: str) -> Path:
        return self.home / "auth" / f"{agent}.json"


def _files(place: Path) -> Iterable[Path]:
    return sorted(it for it in place.rglob("*") if it.is_file()) if place.is_dir() else (place,)


def _text(file: Path) -> str:
    try:
        with file.open("rb") as found:
            return found.read(LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""
