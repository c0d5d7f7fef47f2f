"""What reads a repository's rules, and where the home and its database are."""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from lockgate.adapters.repository import GitRepository
from lockgate.adapters.user_files import FileGrants
from lockgate.core.config.settings import Settings
from lockgate.errors import Unavailable
from lockgate.ports import Project
from lockgate.services.task.projects import BaseConfiguration, Trust

POSTGRES = "LOCKGATE_DATABASE"  # names a URL, whatever else is said
DATABASE = "database"  # a file of the home that names one


def home_of(environ: Mapping[str, str]) -> Path:
    """LOCKGATE_HOME, else the platform's place for a user's state."""
    if environ.get("LOCKGATE_HOME"):
        return Path(environ["LOCKGATE_HOME"]).absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "lockgate"
    state = environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "lockgate"


def database_of(home: Path, environ: Mapping[str, str]) -> str:
    """The URL of a PostgreSQL database, or the path of the file in the home."""
    if where := environ.get(POSTGRES):
        return where
    try:
        return (home / DATABASE).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return str(home / "lockgate.db")
    except OSError as error:
        what, fix = "the database was not opened", f"see that {home / DATABASE} can be read"
        raise Unavailable(what, why=str(error), fix=fix) from error


def repository_of(home: Path) -> GitRepository:
    return GitRepository(bases=home / "bases", fetch=partial(_follow, home))


def placed(home: Path, project: Project) -> Project:
    """A project with a hub is read from this home's mirror of it, which has no files beside it."""
    if not project.url:
        return project
    mirror = str(home / "repos" / project.id / "mirror.git")
    files = str(home / "files" / project.id)
    return replace(project, common_dir=mirror, root=mirror, files=files)


def _follow(home: Path, project: Project, commit: str) -> None:
    """Imported here because few projects have a hub."""
    from lockgate.adapters.hub import GitExchange

    GitExchange(home).follow(project, commit)


def base_configuration(repository: GitRepository, environ: Mapping[str, str]) -> BaseConfiguration:
    """LOCKGATE_TRUST has the digests of questions that were answered with yes."""
    said = frozenset(environ.get("LOCKGATE_TRUST", "").replace(",", " ").split())
    trust = Trust(repository, FileGrants(home_of(environ)), said)
    return BaseConfiguration(repository, _load_config, _config_hash, trust)


def _load_config(text: str | None, origin: str) -> Settings:
    """Imported here because only a task that starts needs it, and pydantic is slow to load."""
    from lockgate.adapters.config.load import load_config

    return load_config(text, origin=origin)


def _config_hash(settings: Settings) -> str:
    from lockgate.adapters.config.load import config_hash

    return config_hash(settings)


def config_schema() -> dict[str, object]:
    """The JSON Schema of .lockgate/config.toml."""
    from lockgate.adapters.config.load import json_schema

    return json_schema()
