"""Puts the forge together: the login, the client, and the services that use them."""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from lockgate.adapters.store.pulls import SqlPulls
from lockgate.adapters.train import GitPullYard
from lockgate.adapters.user_files import StoredCredentials
from lockgate.core.config.trust import origin_of
from lockgate.core.forge.pace import Intervals
from lockgate.core.model.task import ProjectId
from lockgate.errors import Refused
from lockgate.ports import Project, Repository, Workspaces
from lockgate.ports.forge import Forge
from lockgate.services.task.projects import BaseConfiguration
from lockgate.services.task.tasks import Tasks
from lockgate.services.train.intake import IssueIntake
from lockgate.services.train.offers import Offers
from lockgate.services.train.pull_control import PullControl
from lockgate.services.train.pulls import PullRequests
from lockgate.services.train.queue import MergeQueue
from lockgate.services.train.view import TrainView

if TYPE_CHECKING:  # an orchestrator starts without it; it takes a tenth of that time
    from http.server import ThreadingHTTPServer

PATIENCE = 5.0  # seconds for the orchestrator to answer
LOGIN = "github"  # what `lockgate auth` calls it
LOOK = "LOCKGATE_FORGE_SECONDS"  # between two looks, for tests


class Parts(Struct, frozen=True, kw_only=True):
    """What these services are made of, over one home."""

    home: Path
    pulls: SqlPulls
    train: TrainView
    tasks: Tasks
    credentials: StoredCredentials
    configuration: BaseConfiguration
    repository: Repository


def pull_control(app: Parts) -> PullControl:
    """What people ask of pull requests."""
    return PullControl(
        view=app.train,
        pulls=app.pulls,
        yard=GitPullYard(app.home),
        coordinator=app.tasks.coordinator,
        forge_of=forges(app),
        intake=_intake(app),
    )


def pull_requests(
    app: Parts, workspaces: Workspaces, trains: MergeQueue, hints: dict[ProjectId, bool]
) -> PullRequests:
    """For the orchestrator, which alone acts by itself."""
    offers = Offers(
        pulls=app.pulls,
        yard=GitPullYard(app.home),
        coordinator=app.tasks.coordinator,
        clock=trains.lander.clock,
    )
    seconds = os.environ.get(LOOK, "")
    every = _every(float(seconds)) if seconds else Intervals()
    return PullRequests(
        view=app.train,
        offers=offers,
        lander=trains.lander,
        workspaces=workspaces,
        forge_of=forges(app),
        intake=_intake(app).sync,
        nudge=trains.nudge,
        hints=hints,
        every=every,
    )


def _every(seconds: float) -> Intervals:
    least = min(seconds, Intervals().least)
    return Intervals(machines=seconds, people=seconds, long=seconds, hooked=seconds, least=least)


def forges(app: Parts) -> Callable[[Project], Forge]:
    """One client a repository, so that what it has seen is not asked for again."""
    known: dict[str, Forge] = {}

    def forge_of(project: Project) -> Forge:
        settings = app.configuration.allowed_of(project).forge
        key = f"{project.id} {settings.repo}"
        if key not in known:
            known[key] = _github(app, project, settings.repo)
        return known[key]

    return forge_of


def _github(app: Parts, project: Project, wanted: str) -> Forge:
    """Imported here: only who asks a forge loads its client."""
    try:
        from lockgate.adapters.forge.credentials import github_login
        from lockgate.adapters.forge.github.app_login import app_login
        from lockgate.adapters.forge.github.client import Client, Wires
        from lockgate.adapters.forge.github.forge import GithubForge
    except ImportError as error:
        raise Refused(
            "GitHub was not asked",
            why=f"the client for it is not installed: {error.name}",
            fix="pip install 'lockgate[forge]'",
        ) from error
    origin = origin_of(app.repository.origin(project))
    stored = partial(app.credentials.of, LOGIN, ())
    login = github_login(origin, wanted, stored)
    wires = Wires(elapsed=time.monotonic, sleep=_sleep)
    told = {**os.environ, **stored()}
    of_app = app_login(told, login.api, login.repository, wires, time.time)
    client = Client(api=login.api, token=of_app.token if of_app else login.token, wires=wires)
    return GithubForge(client=client, repository=login.repository, host=login.host)


def _sleep(seconds: float) -> None:
    """Tests, which look more often, also write more often."""
    time.sleep(min(seconds, float(os.environ.get(LOOK) or seconds)))


def listening(app: Parts, project: Project, port: int, secret: str) -> "ThreadingHTTPServer":
    """Deliveries ask the orchestrator for a look, as `lockgate forge sync` does."""
    from lockgate.adapters.forge.webhooks import Deliveries, listener
    from lockgate.adapters.sessions.runner.command_socket import Request, ask

    settings = app.configuration.allowed_of(project).forge
    origin = origin_of(app.repository.origin(project))
    repository = settings.repo or origin.partition("/")[2]
    call = Request(token="", cwd=project.root, stdin="", argv=("forge", "sync", "--hint"))

    def look() -> None:
        ask(str(app.home / "door.sock"), call, patience=PATIENCE)

    return listener(port, Deliveries(secret.encode(), repository), look)


def _intake(app: Parts) -> IssueIntake:
    return IssueIntake(view=app.train, pulls=app.pulls, tasks=app.tasks)
