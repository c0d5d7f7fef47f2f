"""The services over one home, as every command uses them.

What only some commands need is made, and imported, when it is asked for.
"""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.adapters.harnesses import Registry
from lockgate.adapters.store import hosts_have_agents, open_store, shared_text
from lockgate.adapters.store.sql import HAS_HOSTS, HAS_PULL, HAS_PULLS
from lockgate.adapters.store.sql_store import SqlStore
from lockgate.adapters.system import (
    SystemChance,
    SystemClock,
    alone,
    holder,
    kept_sizes,
    nobody_orchestrating,
    owner_of,
    path_outside,
    user_id,
    user_name,
    wait,
)
from lockgate.adapters.task_file import TaskFiles
from lockgate.adapters.user_files import FileAssistants, StoredCredentials, signs_off
from lockgate.bootstrap.rules import base_configuration, database_of, home_of, placed, repository_of
from lockgate.core.config.settings import MergeFence
from lockgate.core.lifecycle.needs import Trouble
from lockgate.core.model.task import ProjectId, Task, TaskId
from lockgate.core.train.model import Began, Standings
from lockgate.services.task.boards import Boards
from lockgate.services.task.callers import Caller, Users, identify
from lockgate.services.task.evidence import Witness
from lockgate.services.task.logins import HandedOut, Logins
from lockgate.services.task.page import Clashing, Near, Pages
from lockgate.services.task.projects import BaseConfiguration, Projects
from lockgate.services.task.rows import Live, Source
from lockgate.services.task.views import Views

if TYPE_CHECKING:
    from lockgate.adapters.sessions.sessions import ProcessSessions
    from lockgate.adapters.workspaces import GitWorkspaces
    from lockgate.bootstrap.forge import Parts
    from lockgate.core.discovery.found import Plan, Tree
    from lockgate.core.fleet import FleetSeen
    from lockgate.core.forge.model import Pull
    from lockgate.core.model.landings import PullShown
    from lockgate.ports import FileSize, Project
    from lockgate.services.gates.steps import Steps
    from lockgate.services.orchestrator.feed import Feed
    from lockgate.services.setup.doctor import Readiness, Trial
    from lockgate.services.setup.init import Initialiser, Wanted
    from lockgate.services.task.assistants import AssistantRights
    from lockgate.services.task.coordinator import Coordinator
    from lockgate.services.task.fleet import FleetControl
    from lockgate.services.task.members import Members, Notebook
    from lockgate.services.task.people import Approvals, People, Repinning, Shells, TaskRunner
    from lockgate.services.task.plans import Plans
    from lockgate.services.task.sessions import AgentSessions, Attendance, Signals
    from lockgate.services.task.statistics import Statistics
    from lockgate.services.task.tasks import Imports, Tasks
    from lockgate.services.train.board import TrainBoards
    from lockgate.services.train.control import Queueing
    from lockgate.services.train.pull_control import PullControl
    from lockgate.services.train.undo import Undoing
    from lockgate.services.train.view import TrainView

PATIENCE = 5.0  # seconds for the orchestrator to answer
path_outside_of, orchestrator_pid, uid_of_user = path_outside, holder, user_id


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
    standings: dict[ProjectId, Standings] = field(default_factory=dict[ProjectId, Standings])
    feed: "Feed | None" = None  # where the loop is this process's
    began: Began = field(default_factory=Began)  # the tests of the train
    hub_fence: MergeFence = MergeFence.REF  # of landings at a hub, as this host is set
    hints: dict[ProjectId, bool] = field(default_factory=dict[ProjectId, bool])  # forges with news

    def called_by(self, token: str | None, uid: int | None = None) -> "App":
        """The same for the holder of this token; without one, for the human of that user."""
        return replace(self, caller=identify(self.store, token, uid, users_of(self.home)))

    @property
    def members(self) -> "Members":
        """Who may do what in this home."""
        from lockgate.services.task.members import Members

        return Members(self.store, self.witness.clock)

    @property
    def desk(self) -> "Notebook":
        """What the caller keeps for later, and has seen."""
        from lockgate.services.task.members import Notebook

        return Notebook(self.store, self.witness.clock, SystemChance())

    def close(self) -> None:
        self.store.close()

    def sizes(self) -> Mapping[str, int]:
        """Bytes on disk by what they are for."""
        return self.workspaces.sizes()

    def kept_sizes(self) -> Mapping[str, int]:
        """Bytes of layers, caches and service data, as they were noted when they were made."""
        return kept_sizes(self.home)

    # What a command that only looks does without is loaded, and put together, when one asks for
    # it. None of it keeps anything between two calls.

    @property
    def boards(self) -> Boards:
        """The board, the inbox and the pages of tasks, as the caller sees them."""
        live = Live(self.troubles, self.standings)
        near = Near(sizes=self._file_sizes, conflicts=self._conflicts, evidence=self._evidence)
        near = replace(near, pull=self.pull_of)
        source = Source(
            store=self.store,
            configuration=self.configuration,
            clock=self.witness.clock,
            live=live,
            person=self.caller.by,
            pulls=self._live_pulls,
        )
        return Boards(source, Pages(self.views, near, live))

    def pull_of(self, id: TaskId) -> "Pull | None":
        """The task's pull request; None where it has none."""
        if not self.store.database.read(HAS_PULL, {"task": id}):
            return None
        from lockgate.adapters.store.pulls import SqlPulls

        return SqlPulls(self.store.database).of(id)

    def _live_pulls(self) -> "Mapping[TaskId, PullShown]":
        """As lists show them; what reads them is loaded only where there are any."""
        if not self.store.database.read(HAS_PULLS, {}):
            return {}
        from lockgate.adapters.store.pulls import SqlPulls

        return SqlPulls(self.store.database).shown()

    @property
    def hosts(self) -> "FleetControl":
        """The hosts that share this database, as people see and steer them."""
        from lockgate.bootstrap.hosts import fleet_control

        return fleet_control(self.store.database, self.witness.clock)

    def fleet(self) -> "FleetSeen | None":
        """The hosts and what waits for one; None where this machine works alone."""
        return self.hosts.status(self.caller) if self.store.database.read(HAS_HOSTS, {}) else None

    def _file_sizes(self, task: Task) -> "tuple[FileSize, ...]":
        from lockgate.ports import candidate_of

        return self.workspaces.file_sizes(candidate_of(self.views.project_of(task), task))

    def _conflicts(self, task: Task) -> tuple[Clashing, ...]:
        return tuple(Clashing(it.task, it.summary, it.files) for it in self.queue.forecast(task))

    def _evidence(self, task: Task) -> Mapping[str, object] | None:
        """What the note of its landed commit says."""
        found = self.queue.verify(self.views.project_of(task), task.landed) if task.landed else None
        return found.evidence if found and not found.problem else None

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
            clock=self.witness.clock,
            chance=SystemChance(),
        )

    @property
    def plans(self) -> "Plans":
        from lockgate.services.task.plans import Plans

        return Plans(self.tasks)

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
        from lockgate.adapters.store.checkpoints import SqlCheckpoints
        from lockgate.services.task.sessions import Checkpoints, Signals

        return Signals(
            store=self.store,
            coordinator=self.coordinator,
            workspaces=self.workspaces,
            files=self.witness.files,
            checkpoints=Checkpoints(SqlCheckpoints(self.store.database), self.witness.files),
            clock=self.witness.clock,
        )

    @property
    def people(self) -> "People":
        from lockgate.bootstrap.hosts import files_of
        from lockgate.services.task.people import People

        hosts = files_of(self.home, self.store.database)
        return People(self.store, self.attendance, self.workspaces, self.witness.files, hosts)

    @property
    def assistants(self) -> "AssistantRights":
        from lockgate.services.task.assistants import AssistantRights

        return AssistantRights(FileAssistants(self.home), self.coordinator, self.people)

    @property
    def approvals(self) -> "Approvals":
        from lockgate.services.task.people import Approvals

        return Approvals(self.coordinator)

    @property
    def workspaces(self) -> "GitWorkspaces":
        from lockgate.adapters.hub import GitExchange
        from lockgate.adapters.workspaces import GitWorkspaces

        signoff = partial(signs_off, self.home)
        it = GitWorkspaces(self.home, secrets=self.witness.secrets.of, signoff=signoff)
        it.hub = GitExchange(self.home)
        return it

    @property
    def sessions(self) -> "ProcessSessions":
        from lockgate.adapters.sessions.sessions import ProcessSessions

        return ProcessSessions(self.home)

    @property
    def agents(self) -> "AgentSessions":
        from lockgate.bootstrap.hosts import files_of
        from lockgate.services.task.sessions import AgentSessions

        return AgentSessions(self.store, self.sessions, files_of(self.home, self.store.database))

    @property
    def shells(self) -> "Shells":
        from lockgate.adapters.sessions.prepare import shell_at
        from lockgate.services.task.people import Shells

        return Shells(
            home=self.home,
            people=self.people,
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
        from lockgate.adapters.hub import GitExchange
        from lockgate.adapters.store.pulls import SqlPulls
        from lockgate.adapters.store.train_log import SqlTrainLog
        from lockgate.adapters.train import GitYard
        from lockgate.services.train.view import TrainView

        log, signoff = SqlTrainLog(self.store.database), partial(signs_off, self.home)
        yard = GitYard(self.home, signoff=signoff, hub=GitExchange(self.home))
        pulls = SqlPulls(self.store.database)
        return TrainView(self.store, log, yard, self.configuration, pulls, self.hub_fence)

    @property
    def pull_requests(self) -> "PullControl":
        """Pull requests and issues, as people see and steer them."""
        from lockgate.bootstrap.forge import pull_control

        return pull_control(self.forge_parts)

    @property
    def forge_parts(self) -> "Parts":
        from lockgate.adapters.store.pulls import SqlPulls
        from lockgate.bootstrap.forge import Parts

        return Parts(
            home=self.home,
            pulls=SqlPulls(self.store.database),
            train=self.train,
            tasks=self.tasks,
            credentials=self.credentials,
            configuration=self.configuration,
            repository=self.projects.repository,
        )

    @property
    def statistics(self) -> "Statistics":
        from lockgate.adapters.store.daily import SqlDaily
        from lockgate.services.task.statistics import Statistics

        return Statistics(self.store, SqlDaily(self.store.database), self.witness.clock)

    @property
    def train_boards(self) -> "TrainBoards":
        """The train as people watch it."""
        from lockgate.services.train.board import TrainBoards

        return TrainBoards(view=self.train, began=self.began, clock=self.witness.clock)

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
    """LOCKGATE_DATABASE, or the home, may name a PostgreSQL database; else it is a file there."""
    home = home_of(environ)
    store = open_store(database_of(home, environ), guard=partial(nobody_orchestrating, home))
    store.placed = partial(placed, home)
    files, repository = TaskFiles(home, partial(shared_text, store)), repository_of(home)
    configuration = base_configuration(repository, environ)
    harnesses = Registry(copies=home / "agents")
    credentials = StoredCredentials(home, environ, partial(_set_in_the_orchestrator, home))
    witness = Witness(
        store=store,
        files=files,
        repository=repository,
        configuration=configuration,
        harnesses=harnesses,
        logins=Logins(harnesses, credentials),
        clock=SystemClock(store.database.now),
        secrets=HandedOut(configuration, harnesses, credentials),
        hosts_have_agents=partial(hosts_have_agents, store),
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
        caller=identify(store, environ.get("LOCKGATE_TOKEN"), os.getuid(), users_of(home)),
    )


def users_of(home: Path) -> Users:
    return Users(owner_of(home), user_name)


def _set_in_the_orchestrator(home: Path) -> frozenset[str] | None:
    """The names of the variables it has; None where it is this process, or where none runs."""
    pid = holder(home)
    if pid is None or pid == os.getpid():
        return None
    from lockgate.adapters.sessions.runner.command_socket import Request, ask

    asked = Request(token="", cwd="/", stdin="", argv=("environment",))
    answer = ask(str(home / "door.sock"), asked, patience=PATIENCE)
    return frozenset(answer.out.split()) if answer and answer.code == 0 else None


def _look(project: "Project", commit: str | None) -> "Tree":
    from lockgate.adapters.config.detect import look_at

    return look_at(Path(project.root), commit)


def _render(plan: "Plan", wanted: "Wanted", base: str) -> str:
    from lockgate.adapters.config.write import render_config

    how = {"formula": wanted.formula, "agent": wanted.agent, "base": base}
    return render_config(plan, **how, pulls=wanted.pulls)


def make_demo_repository(root: Path, seconds: float = 0.0) -> str | None:
    from lockgate.adapters.demo import make_repository

    return make_repository(root, seconds)


def run_demo_tests(root: Path) -> tuple[bool, str]:
    from lockgate.adapters.demo import run_tests

    return run_tests(root)
