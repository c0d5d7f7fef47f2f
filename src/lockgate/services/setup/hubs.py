"""The hubs of projects: which project has one, whether it will do, and that mirrors follow it."""

from collections.abc import Mapping

from msgspec import Struct

from lockgate.core.hub import Finding, Unfit, judged, reach_of
from lockgate.core.model.people import Right
from lockgate.errors import LockgateError, Refused
from lockgate.ports import Project, Store
from lockgate.ports.hub import Exchange, HubTrial
from lockgate.services.task.callers import Caller, must_be_human


class Hubs(Struct, frozen=True):
    """A hub is the one bare repository by which hosts hand the commits of a project to each other.

    What a host has of such a project is a mirror, and every landing is a push to the hub.
    """

    store: Store
    exchange: Exchange
    trial: HubTrial
    fenced: bool = True  # landings rely on the ref beside a branch

    def give(self, project: Project, url: str, caller: Caller) -> None:
        """From now on every host has the project from there; Refused where the hub will not do."""
        what = f"{project.name} was not given the hub {url}"
        must_be_human(caller, what, Right.ADMIN)
        reach = reach_of(url)
        if isinstance(reach, Unfit):
            raise Refused(what, why=reach.why, fix=reach.fix)
        for it in judged(url, self.trial.tried(url), fenced=self.fenced):
            if not it.ok:
                raise Refused(what, why=f"{it.what}: {it.why}", fix=it.fix)
        self.store.give_hub(self.store.add_project(project).id, url)

    def take_away(self, project: Project, caller: Caller) -> None:
        """The repository in which the project was made is its own again."""
        must_be_human(caller, f"the hub of {project.name} was not taken away", Right.ADMIN)
        self.store.give_hub(project.id, "")

    def checked(self) -> Mapping[str, tuple[Finding, ...]]:
        """What `fleet check` says of each, by the project's name."""
        return {
            it.name: judged(it.url, self.trial.tried(it.url), fenced=self.fenced)
            for it in self.store.projects()
            if it.url
        }

    def follow(self) -> Mapping[str, str]:
        """This host's mirrors get the branches as they are now; by project, why one did not.

        The leader's worker does so every few seconds, as it plans from there.
        """
        trouble = dict[str, str]()
        for project in self.store.projects():
            try:
                self.exchange.follow(project)
            except LockgateError as error:
                trouble[project.name] = str(error)
        return trouble
