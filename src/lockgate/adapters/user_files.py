"""What the user told this machine, in files of the home that nobody else reads.

What agents log in with, by `lockgate auth`; what the user agreed to, a file a project, by `lockgate
trust`; `trust.toml` and `settings.toml`, which the user writes.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from msgspec import Struct, field

from lockgate.core.config.trust import Request, names_a_host
from lockgate.core.model.agents import Source
from lockgate.core.model.secrets import Secret, secrets_in_file
from lockgate.core.model.task import ProjectId
from lockgate.errors import BadConfig, Unavailable
from lockgate.ports import Granted, Project
from lockgate.ports.keys import Place, Serving

if TYPE_CHECKING:
    from lockgate.core.fleet import FleetSettings
    from lockgate.core.retention import Keep

LARGEST = 1024 * 1024  # bytes of a file of variables
REFUSED = ".refused.json"


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
            what, fix = f"the login of {agent} was not stored", "fix that, then try again"
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


class FileGrants(Struct, frozen=True):
    """The Grants port. A file that cannot be read grants nothing and is said.

    What was refused has a file of its own: writing it must not undo a yes that comes between.
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


class FileAssistants(Struct, frozen=True):
    """The AssistantGrants port: one file of the home. One that cannot be read grants nothing."""

    place: Path  # the home

    def assistants(self) -> tuple[str, ...]:
        try:
            told = _read(self._path(), {"assistants": []})
            return tuple(map(str, cast("list[object]", told["assistants"])))
        except (OSError, ValueError, KeyError, TypeError) as error:
            what = "which assistants may ask was not read"
            fix = f"remove {self._path()}, then: lockgate trust --assistant NAME"
            raise Unavailable(what, why=repr(error), fix=fix) from error

    def grant_assistant(self, name: str) -> None:
        self._put(dict.fromkeys((*self.assistants(), name)))

    def forget_assistant(self, name: str) -> None:
        self._put(it for it in self.assistants() if it != name)

    def _put(self, names: Iterable[str]) -> None:
        try:
            _write(self._path(), {"assistants": list(names)})
        except OSError as error:
            what, fix = "the answer was not kept", "see that the home can be written, try again"
            raise Unavailable(what, why=str(error), fix=fix) from error

    def _path(self) -> Path:
        return self.place / "assistants.json"


def _read(path: Path, otherwise: dict[str, object]) -> dict[str, object]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return otherwise
    return dict(cast("dict[str, object]", json.loads(text)))


def _write(path: Path, told: Mapping[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(told, file, indent=1)
    beside.replace(path)


def _bad(file: Path, why: str) -> BadConfig:
    fix = 'write it so: origins = ["github.com/acme/*"]'
    return BadConfig(f"{file} was not read", why=why, fix=fix)


# `web.json` in the home: where its board is served.


def board_place(home: Path) -> Place:
    """Made when it is asked for first: a host name of its own, and a secret."""
    path = home / "web.json"
    try:
        told = _read(path, {})
        if not told:
            told = {"host": f"lg-{os.urandom(5).hex()}.localhost", "secret": os.urandom(32).hex()}
            _write(path, told)
        return Place(
            host=str(told["host"]), secret=str(told["secret"]), url=str(told.get("url", ""))
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        fix = f"remove {path}; everybody logs in again"
        raise Unavailable("web.json was not read", why=repr(error), fix=fix) from error


def board_reached_at(home: Path, url: str) -> None:
    """Where people reach the board now, for the links in notifications."""
    place = board_place(home)
    if place.url != url:
        with suppress(OSError):
            told: dict[str, object] = {"host": place.host, "secret": place.secret, "url": url}
            _write(home / "web.json", told)


def link_to(home: Path, path: str) -> str:
    """A page of the board; empty where no board has been served."""
    try:
        url = str(_read(home / "web.json", {}).get("url", ""))
    except (OSError, ValueError, TypeError):
        return ""
    return f"{url}{path}" if url else ""


# `settings.toml` in the home: what only the user may decide, and no repository.


FILE = "settings.toml"


def signs_off(home: Path) -> bool:
    """`[commit] signoff = true`: Lockgate adds the user's Signed-off-by. BadConfig where it is
    anything else than true or false.
    """
    value = _settings(home)["commit"].get("signoff", False)
    if not isinstance(value, bool):
        why = f"[commit] signoff is {value!r}, and must be true or false"
        raise _bad_setting(home / FILE, why)
    return value


def kept_for(home: Path) -> "Keep":
    """`[keep]`: for how many days each kind of thing is kept once nothing uses it."""
    from lockgate.core.retention import Keep  # noqa: PLC0415 - only who cleans needs it

    told = _settings(home)["keep"]
    for name, days in told.items():
        if isinstance(days, bool) or not isinstance(days, int | float) or not days >= 0:
            why = f"[keep] {name} is {days!r}, and must be a number of days"
            raise _bad_setting(home / FILE, why)
    return Keep(**{name: float(str(days)) for name, days in told.items()})


def serving_of(home: Path) -> Serving:
    """`[server]`: how `lockgate up --listen` serves the people of a team."""
    told = _settings(home)["server"]
    for name, value in told.items():
        listed = name == "projects"
        items = cast("list[object]", value) if listed and isinstance(value, list) else [value]
        if isinstance(value, list) is not listed or not all(isinstance(it, str) for it in items):
            kind = "a list of paths" if listed else "text"
            raise _bad_setting(home / FILE, f"[server] {name} is {value!r}, and must be {kind}")
    projects = cast("list[str]", told.pop("projects", []))
    return Serving(projects=tuple(projects), **{name: str(it) for name, it in told.items()})


def _settings(home: Path) -> dict[str, dict[str, object]]:
    """Its tables, with what each may have; BadConfig where it has anything else."""
    import tomllib  # noqa: PLC0415 - few have such a file

    file = home / FILE
    try:
        told: dict[str, object] = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"commit": {}, "keep": {}, "server": {}}
    except (OSError, ValueError) as error:
        raise _bad_setting(file, str(error)) from error
    from lockgate.core.retention import Keep  # noqa: PLC0415 - as above

    tables = {
        "commit": ("signoff",),
        "keep": Keep.__struct_fields__,
        "server": Serving.__struct_fields__,
    }
    found = dict[str, dict[str, object]]()
    for name, known in tables.items():
        table = told.pop(name, {})
        found[name] = cast("dict[str, object]", table) if isinstance(table, dict) else {"": table}
        told |= {f"{name}.{it}": 0 for it in found[name] if it not in known}
    if told:
        may = ", ".join(f"[{name}] {' '.join(keys)}" for name, keys in tables.items())
        raise _bad_setting(file, f"it has {next(iter(told))!r}, and may have: {may}")
    return found


def _bad_setting(file: Path, why: str) -> BadConfig:
    return BadConfig(f"{file} was not read", why=why, fix="write: [commit]\\nsignoff = true")


# `fleet.toml`: how this host takes part in a fleet.


FLEET = "fleet.toml"


def fleet_of(home: Path) -> "FleetSettings":
    """BadConfig where it says what nothing goes by."""
    import tomllib  # noqa: PLC0415 - few have such a file

    from msgspec import ValidationError, convert  # noqa: PLC0415 - as above

    from lockgate.core.fleet import FleetSettings  # noqa: PLC0415 - as above

    file = home / FLEET
    try:
        told: object = tomllib.loads(file.read_text(encoding="utf-8"))
        return convert(told, FleetSettings)
    except FileNotFoundError:
        return FleetSettings()
    except (OSError, ValueError, ValidationError) as error:
        fix = "write it as docs/fleet.md shows"
        raise BadConfig(f"{file} was not read", why=str(error), fix=fix) from error
