"""The services over one home, as every command uses them.

What only some commands need is made, and imported, when it is asked for.
"""

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.adapters.harnesses import Registry
from lockgate.adapters.repository import GitRepository
from lockgate.adapters.store import open_store
from lockgate.adapters.store.sql_store import SqlStore
from lockgate.adapters.system import (
    SystemChance,
    SystemClock,
    alone,
    holder,
    path_outside,
    version_of,
    wait,
)
from lockgate.adapters.task_file import TaskFiles
from lockgate.adapters.user_files import FileGrants, StoredCredentials, signs_off
from lockgate.core.config.settings import Settings
from lockgate.core.lifecycle.advice import Trouble
from lockgate.services.task.callers import Caller, identify
from lockgate.services.task.evidence import Witness
from lockgate.services.task.logins import HandedOut, Logins
from lockgate.services.task.projects import BaseConfiguration, Projects, Trust
from lockgate.services.task.views import Views

if TYPE_CHECKING:
    from lockgate.adapters.sessions.sessions import ProcessSessions
    from lockgate.adapters.workspaces import GitWorkspaces
    from lockgate.core.discovery.found import Plan, Tree
    from lockgate.ports import Project
    from lockgate.services.gates.steps import Steps
    from lockgate.services.setup.doctor import Checkup, Readiness, Trial
    from lockgate.services.setup.init import Initialiser, Wanted
    from lockgate.services.task.coordinator import Coordinator
    from lockgate.services.task.people import Approvals, People, Repinning, Shells, TaskRunner
    from lockgate.services.task.sessions import AgentSessions, Attendance, Signals
    from lockgate.services.task.tasks import Imports, Tasks
    from lockgate.services.train.control import Queueing
    from lockgate.services.train.undo import Undoing
    from lockgate.services.train.view import TrainView

# What reads a repository's rules, and where the home is; it needs no database.


def home_of(environ: Mapping[str, str]) -> Path:
    """LOCKGATE_HOME, else the platform's place for a user's state."""
    if environ.get("LOCKGATE_HOME"):
        return Path(environ["LOCKGATE_HOME"]).absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "lockgate"
    state = environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "lockgate"


def repository_of(home: Path) -> GitRepository:
    return GitRepository(bases=home / "bases")


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


PATIENCE = 5.0  # seconds for the orchestrator to answer
path_outside_of, orchestrator_pid = path_outside, holder


def checkup() -> "Checkup":
    """What `doctor` looks at, also where no database can be opened."""
    from lockgate.adapters.sandbox import sockets_closed_by, trouble
    from lockgate.adapters.sandbox.services.serving import missing
    from lockgate.services.setup.doctor import Checkup

    return Checkup(version_of, trouble, sockets_closed_by, missing)


class App(Struct, frozen=True, kw_only=True):
    """The services, over one home: all that a face may call.

    The store, the sessions and the other adapters are for bootstrap and for tests.
    """

    home: Path
    store: SqlStore
    witness: Witness
    projects: Projects
    views: Views
    harnesses: Registry
    credentials: StoredCredentials
    configuration: BaseConfiguration
    caller: Caller
    troubles: dict[str, Trouble] = field(default_factory=dict[str, Trouble])  # of the loop's lanes

    def called_by(self, token: str | None) -> "App":
        """The same for whoever has this token; a human where there is none."""
        return replace(self, caller=identify(self.store, token))

    def close(self) -> None:
        self.store.close()

    def sizes(self) -> Mapping[str, int]:
        """Bytes on disk by what they are for."""
        return self.workspaces.sizes()

    # What a command that only looks does without is loaded, and put together, when one asks for
    # it. None of it keeps anything between two calls.

    @property
    def coordinator(self) -> "Coordinator":
        from lockgate.services.task.coordinator import Coordinator, Effector

        return Coordinator(self.store, self.witness, Effector(self.store, self.witness.files))

    @property
    def attendance(self) -> "Attendance":
        from lockgate.services.task.sessions import Attendance

        return Attendance(self.coordinator)

    @property
    def tasks(self) -> "Tasks":
        from lockgate.services.task.tasks import Tasks

        return Tasks(
            store=self.store,
            coordinator=self.coordinator,
            repository=self.projects.repository,
            configuration=self.configuration,
            harnesses=self.harnesses,
            clock=SystemClock(),
            chance=SystemChance(),
        )

    @property
    def imports(self) -> "Imports":
        from lockgate.services.task.tasks import Imports

        return Imports(self.tasks, self.witness.files)

    @property
    def initialiser(self) -> "Initialiser":
        from lockgate.services.setup.init import Initialiser

        return Initialiser(self.projects.repository, _look, _render, self.configuration)

    @property
    def runner(self) -> "TaskRunner":
        from lockgate.services.task.people import TaskRunner

        return TaskRunner(self.coordinator)

    @property
    def signals(self) -> "Signals":
        from lockgate.services.task.sessions import Signals

        return Signals(
            store=self.store,
            coordinator=self.coordinator,
            workspaces=self.workspaces,
            files=self.witness.files,
            clock=SystemClock(),
        )

    @property
    def people(self) -> "People":
        from lockgate.services.task.people import People

        return People(self.store, self.attendance, self.workspaces, self.witness.files)

    @property
    def approvals(self) -> "Approvals":
        from lockgate.services.task.people import Approvals

        return Approvals(self.coordinator)

    @property
    def workspaces(self) -> "GitWorkspaces":
        from lockgate.adapters.workspaces import GitWorkspaces

        signoff = partial(signs_off, self.home)
        return GitWorkspaces(self.home, secrets=self.witness.secrets.of, signoff=signoff)

    @property
    def sessions(self) -> "ProcessSessions":
        from lockgate.adapters.sessions.sessions import ProcessSessions

        return ProcessSessions(self.home)

    @property
    def agents(self) -> "AgentSessions":
        from lockgate.services.task.sessions import AgentSessions

        return AgentSessions(self.store, self.sessions)

    @property
    def shells(self) -> "Shells":
        from lockgate.adapters.sessions.prepare import shell_at
        from lockgate.services.task.people import Shells

        return Shells(
            home=self.home,
            store=self.store,
            attendance=self.attendance,
            workspaces=self.workspaces,
            configuration=self.configuration,
            harnesses=self.harnesses,
            enclose=partial(shell_at, self.home),
        )

    @property
    def repinning(self) -> "Repinning":
        from lockgate.services.task.people import Repinning

        return Repinning(self.coordinator, self.configuration)

    @property
    def readiness(self) -> "Readiness":
        from lockgate.adapters.sandbox import trouble
        from lockgate.services.setup.doctor import Readiness

        return Readiness(
            store=self.store,
            repository=self.projects.repository,
            configuration=self.configuration,
            harnesses=self.harnesses,
            logins=self.logins,
            trouble=trouble,
        )

    @property
    def logins(self) -> Logins:
        return self.witness.logins

    @property
    def trial(self) -> "Trial":
        from lockgate.services.setup.doctor import Trial

        return Trial(
            home=self.home,
            workspaces=self.workspaces,
            sessions=self.sessions,
            harnesses=self.harnesses,
            credentials=self.credentials,
            logins=self.logins,
            chance=self.tasks.chance,
        )

    @property
    def train(self) -> "TrainView":
        """What the orchestrator acts on, and people look at."""
        from lockgate.adapters.store.train_log import SqlTrainLog
        from lockgate.adapters.train import GitYard
        from lockgate.services.train.view import TrainView

        log = SqlTrainLog(self.store.database)
        yard = GitYard(self.home, signoff=partial(signs_off, self.home))
        return TrainView(self.store, log, yard, self.configuration)

    @property
    def queue(self) -> "Queueing":
        """The queue for people, who look at it and steer it."""
        from lockgate.services.train.control import Queueing

        return Queueing(self.train, self.coordinator, self.projects.repository)

    @property
    def undoing(self) -> "Undoing":
        from lockgate.services.train.undo import Undoing

        return Undoing(self.train, self.tasks, self.coordinator, self.workspaces)

    @property
    def steps(self) -> "Steps":
        from lockgate.adapters.gate_commands import CommandGates
        from lockgate.adapters.reports import read_reports
        from lockgate.services.gates.steps import Steps, StepSandbox

        sandbox = StepSandbox(
            home=self.home,
            workspaces=self.workspaces,
            gates=CommandGates(read_reports, self.home),
            configuration=self.configuration,
            delay=wait,
        )
        return Steps(home=self.home, coordinator=self.coordinator, sandbox=sandbox, alone=alone)


def open_app(environ: Mapping[str, str] = os.environ) -> App:
    """LOCKGATE_DATABASE names a Postgres URL; without it the database is a file in the home."""
    home = home_of(environ)
    store = open_store(environ.get("LOCKGATE_DATABASE") or str(home / "lockgate.db"))
    files, repository = TaskFiles(home), repository_of(home)
    configuration = base_configuration(repository, environ)
    harnesses, credentials = Registry(copies=home / "agents"), _credentials(home, environ)
    witness = Witness(
        store=store,
        files=files,
        repository=repository,
        configuration=configuration,
        harnesses=harnesses,
        logins=Logins(harnesses, credentials),
        clock=SystemClock(),
        secrets=HandedOut(configuration, harnesses, credentials),
    )
    return App(
        home=home,
        store=store,
        witness=witness,
        projects=Projects(store, repository, files),
        views=Views(store, files, witness),
        harnesses=harnesses,
        credentials=credentials,
        configuration=configuration,
        caller=identify(store, environ.get("LOCKGATE_TOKEN")),
    )


def _credentials(home: Path, environ: Mapping[str, str]) -> StoredCredentials:
    return StoredCredentials(home, environ, partial(_set_in_the_orchestrator, home))


def _set_in_the_orchestrator(home: Path) -> frozenset[str] | None:
    """The names of the variables it has; None where it is this process, or where none runs."""
    pid = holder(home)
    if pid is None or pid == os.getpid():
        return None
    from lockgate.adapters.sessions.runner.command_socket import Request, ask

    asked = Request(token="", cwd="/", stdin="", argv=("environment",))
    answer = ask(str(home / "door.sock"), asked, patience=PATIENCE)
    return frozenset(answer.out.split()) if answer and answer.code == 0 else None


def config_schema() -> dict[str, object]:
    """The JSON Schema of .lockgate/config.toml."""
    from lockgate.adapters.config.load import json_schema

    return json_schema()


def _look(project: "Project", commit: str | None) -> "Tree":
    from lockgate.adapters.config.detect import look_at

    return look_at(Path(project.root), commit)


def _render(plan: "Plan", wanted: "Wanted", base: str) -> str:
    from lockgate.adapters.config.write import render_config

    return render_config(plan, formula=wanted.formula, agent=wanted.agent, base=base)


def make_demo_repository(root: Path, seconds: float = 0.0) -> str | None:
    from lockgate.adapters.demo import make_repository

    return make_repository(root, seconds)


def run_demo_tests(root: Path) -> tuple[bool, str]:
    from lockgate.adapters.demo import run_tests

    return run_tests(root)
