"""The user's own word: what they agreed to, a file a project, `trust.toml` and `settings.toml`."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from msgspec import Struct

from lockgate.core.config.trust import Request, names_a_host
from lockgate.core.model.task import ProjectId
from lockgate.errors import BadConfig, Unavailable
from lockgate.ports import Granted, Project

REFUSED = ".refused.json"


class FileGrants(Struct, frozen=True):
    """The Grants port. A file that cannot be read grants nothing and is said.

    What was refused has a file of its own: whoever notes it must not undo a yes that comes between.
    """

    place: Path  # the home

    def of(self, project: Project) -> Granted:
        try:
            told = _read(self._path(project), {"origin": "", "granted": []})
            refused = _read(self._refused(project), {"refused": []})
            return Granted(
                origin=str(told["origin"]),
                keys=frozenset(map(str, cast("list[object]", told["granted"]))),
                refused=tuple(
                    Request(key, says) for key, says in cast("list[list[str]]", refused["refused"])
                ),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            what = f"what was agreed to for {project.name} was not read"
            raise Unavailable(what, why=repr(error), fix="lockgate trust --forget") from error

    def put(self, project: Project, granted: Granted) -> None:
        told: dict[str, object] = {
            "project": project.root,
            "origin": granted.origin,
            "granted": sorted(granted.keys),
        }
        try:
            _write(self._path(project), told)
        except OSError as error:
            what, fix = "the answer was not kept", "see that the home can be written, try again"
            raise Unavailable(what, why=str(error), fix=fix) from error

    def note(self, project: Project, refused: Sequence[Request]) -> None:
        with suppress(OSError):
            if not refused:
                self._refused(project).unlink(missing_ok=True)
            elif self.place.is_dir():
                told = [[it.key, it.says] for it in refused]
                _write(self._refused(project), {"project": project.root, "refused": told})

    def noted(self) -> tuple[ProjectId, ...]:
        found = sorted((self.place / "trust").glob(f"*{REFUSED}"))
        return tuple(ProjectId(it.name.removesuffix(REFUSED)) for it in found)

    def forget(self, project: Project) -> None:
        for path in (self._path(project), self._refused(project)):
            path.unlink(missing_ok=True)

    def origins(self) -> tuple[str, ...]:
        file = self.place / "trust.toml"
        if not file.exists():
            return ()
        import tomllib  # noqa: PLC0415 - few have such a file

        try:
            told = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise _bad(file, str(error)) from error
        found: object = told.get("origins", [])
        origins = cast("list[object]", found) if isinstance(found, list) else [found]
        for it in origins:
            if not isinstance(it, str) or not names_a_host(it):
                raise _bad(file, f"origins has {it!r}, which names no host")
        return tuple(map(str, origins))

    def home(self) -> str:
        return os.path.realpath(Path.home())

    def leads(self, path: str, root: str = "") -> str:
        return os.path.realpath(Path(root) / Path(path).expanduser())

    def _path(self, project: Project) -> Path:
        return self.place / "trust" / f"{project.id}.json"

    def _refused(self, project: Project) -> Path:
        return self.place / "trust" / f"{project.id}{REFUSED}"


def _read(path: Path, otherwise: dict[str, object]) -> dict[str, object]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return otherwise
    return dict(cast("dict[str, object]", json.loads(text)))


def _write(path: Path, told: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(told, file, indent=1)
    beside.replace(path)


def _bad(file: Path, why: str) -> BadConfig:
    fix = 'write it so: origins = ["github.com/acme/*"]'
    return BadConfig(f"{file} was not read", why=why, fix=fix)


# `settings.toml` in the home: what only the user may decide, and no repository.


FILE = "settings.toml"


def signs_off(home: Path) -> bool:
    """`[commit] signoff = true`: Lockgate adds the user's Signed-off-by. BadConfig where it is
    anything else than true or false.
    """
    import tomllib  # noqa: PLC0415 - few have such a file

    file = home / FILE
    try:
        told: dict[str, object] = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        raise _bad_setting(file, str(error)) from error
    commit = told.pop("commit", {})
    table = cast("dict[str, object]", commit) if isinstance(commit, dict) else {"": commit}
    unknown = [*told, *(it for it in table if it != "signoff")]
    if unknown:
        raise _bad_setting(
            file, f"it has {unknown[0]!r}, and [commit] signoff is all that it may have"
        )
    value = table.get("signoff", False)
    if not isinstance(value, bool):
        raise _bad_setting(file, f"[commit] signoff is {value!r}, and must be true or false")
    return value


def _bad_setting(file: Path, why: str) -> BadConfig:
    return BadConfig(f"{file} was not read", why=why, fix="write: [commit]\\nsignoff = true")
