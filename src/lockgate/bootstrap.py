"""Puts the program together: the only file that chooses adapters."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lockgate.adapters.clock import SystemChance, SystemClock
from lockgate.adapters.git import GitRepository
from lockgate.adapters.store import open_store
from lockgate.adapters.task_file import TaskFiles
from lockgate.core.settings import Settings
from lockgate.ports import Store
from lockgate.services.callers import Caller, identify
from lockgate.services.configuration import BaseConfiguration
from lockgate.services.coordinator import Coordinator
from lockgate.services.effector import Effector
from lockgate.services.evidence import Witness
from lockgate.services.imports import Imports
from lockgate.services.initialise import Initialiser, Proposal, Wanted
from lockgate.services.projects import Projects
from lockgate.services.runner import TaskRunner
from lockgate.services.tasks import Tasks
from lockgate.services.views import Views


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """The services, over one home."""

    home: Path
    store: Store
    coordinator: Coordinator
    tasks: Tasks
    imports: Imports
    initialiser: Initialiser
    projects: Projects
    runner: TaskRunner
    views: Views
    caller: Caller


def home_of(environ: Mapping[str, str]) -> Path:
    """LOCKGATE_HOME, else the platform's place for a user's state."""
    if environ.get("LOCKGATE_HOME"):
        return Path(environ["LOCKGATE_HOME"]).absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "lockgate"
    state = environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "lockgate"


def open_app(environ: Mapping[str, str] = os.environ) -> App:
    """LOCKGATE_DATABASE names a Postgres URL; without it the database is a file in the home."""
    home = home_of(environ)
    store = open_store(environ.get("LOCKGATE_DATABASE") or str(home / "lockgate.db"))
    files, clock, chance, repository = (
        TaskFiles(home),
        SystemClock(),
        SystemChance(),
        GitRepository(),
    )
    configuration = BaseConfiguration(repository, _load_config, _config_hash)
    witness = Witness(
        store=store,
        files=files,
        repository=repository,
        configuration=configuration,
        clock=clock,
    )
    coordinator = Coordinator(store, witness, Effector(store, files))
    tasks = Tasks(
        store=store,
        coordinator=coordinator,
        repository=repository,
        configuration=configuration,
        clock=clock,
        chance=chance,
    )
    return App(
        home=home,
        store=store,
        coordinator=coordinator,
        tasks=tasks,
        imports=Imports(tasks, files),
        initialiser=Initialiser(repository, _propose),
        projects=Projects(store, repository, files),
        runner=TaskRunner(coordinator),
        views=Views(store, files, witness),
        caller=identify(store, environ.get("LOCKGATE_TOKEN")),
    )


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


def _propose(root: Path, wanted: Wanted, base: str) -> Proposal:
    from lockgate.adapters.config.detect import detect
    from lockgate.adapters.config.write import render_config

    seen = detect(root)
    parts = {"test": seen.test, "typecheck": seen.typecheck, "setup": seen.setup}
    found = {
        key: f"{part.command} (seen by {part.by})" if part else "not found"
        for key, part in parts.items()
    }
    text = render_config(seen, formula=wanted.formula, agent=wanted.agent, base=base)
    return Proposal(text, found)


def make_demo_repository(root: Path) -> None:
    from lockgate.adapters.demo import make_repository

    make_repository(root)


def merge_demo_branch(branch: str) -> None:
    from lockgate.adapters.demo import merge_branch

    merge_branch(Path.cwd(), branch)
