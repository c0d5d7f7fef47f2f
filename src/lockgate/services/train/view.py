"""Read-only view of one project's merge train, for the orchestrator and `queue list` alike."""

from collections.abc import Collection, Iterable

from msgspec import Struct

from lockgate.core.config.settings import (
    MergeFence,
    MergeMode,
    MergeSettings,
    MergeTarget,
    Settings,
    lands_by,
)
from lockgate.core.model.task import Pinned, ProjectId, Status, Task, TaskId
from lockgate.core.train.entries import Waits, entries, may_land, pull_entries, since
from lockgate.core.train.model import Built, Commit, Queue, Tree
from lockgate.ports import Configuration, Project, Store, Target, TrainLog, Yard, of_project
from lockgate.ports.forge import Pulls
from lockgate.ports.train import Span

BATCH = 1000
RECENT = 20  # landed changes that a conflict may be with
EVER = float("inf")
REMOTE = "origin"


class Train(Struct, frozen=True, kw_only=True):
    """A target, where it is, and the rules that it has there."""

    target: Target
    tip: Built
    settings: Settings
    rules: Pinned

    @property
    def name(self) -> str:
        return self.target.name

    @property
    def by_pull_request(self) -> bool:
        return self.settings.merge.target is MergeTarget.PULL_REQUEST


def span(task: Task) -> Span | None:
    """Its change by itself; None where it has none yet."""
    if not (task.candidate and task.pinned):
        return None
    return Span(Commit(task.pinned.base_commit), Commit(task.candidate))


class TrainView(Struct, frozen=True):
    store: Store
    log: TrainLog
    yard: Yard
    configuration: Configuration
    pulls: Pulls | None = None  # of projects whose changes land by pull requests
    hub_fence: MergeFence = MergeFence.REF  # of projects with a hub

    def waiting(self, project: ProjectId) -> tuple[Task, ...]:
        """All of them, newest first."""
        which, after = of_project(project, {Status.REVIEWING}), None
        found: list[Task] = []
        while True:
            page = self.store.page(which, after, BATCH)
            found += page.tasks
            after = page.after
            if after is None:
                return tuple(found)

    def landed_last(self, project: ProjectId) -> tuple[Task, ...]:
        """The newest of those that are in the target, as far as one looks back."""
        which = of_project(project, {Status.DONE})
        return tuple(it for it in self.store.page(which, None, RECENT).tasks if it.landed)

    def rewrite_notes(self, target: Target) -> int:
        """The notes of a target's commits, from the database; how many there are then."""
        return self.yard.rewrite_notes(target.project, self.log.evidence(target.name))

    def lost_notes(self, *, repair: bool = False) -> dict[str, int]:
        """The projects in whose repository git has lost a part of the notes, by name.

        Repaired, with how many notes there are now; else with 0.
        """
        lost = [it for it in self.store.projects() if not self.yard.notes_sound(it)]
        return {it.name: self.rewrite_notes(self.target(it)[0]) if repair else 0 for it in lost}

    def target(self, project: Project) -> tuple[Target, MergeMode]:
        """Where the changes of a project land, and whether they do so by themselves."""
        settings = self.configuration.settings_of(project)
        merge = settings.merge
        branch = self.configuration.rules_of(project).base
        remote, fence = lands_by(merge, REMOTE, self.hub_fence if project.url else None)
        target = Target(
            project=project,
            branch=branch,
            remote=remote,
            fence=fence,
            identity=settings.commit.identity,
        )
        return target, merge.mode

    def train(self, target: Target) -> Train:
        """Its rules are those of the commit that the target is at."""
        tip = self.yard.tip(target)
        rules = self.configuration.rules_at(target.project, tip.commit, target.branch)
        settings = self.configuration.settings_at(target.project, tip.commit)
        return Train(target=target, tip=tip, settings=settings, rules=rules)

    def queue(self, train: Train, running: Collection[Tree] = (), blocked: str = "") -> Queue:
        name, merge = train.name, train.settings.merge
        waiting = self._waits(name, self.waiting(train.target.project.id))
        pulls = merge.target is MergeTarget.PULL_REQUEST
        return Queue(
            tip=train.tip,
            entries=pull_entries(waiting, train.tip.commit)
            if pulls
            else entries(waiting, merge.mode),
            candidates=self.log.candidates(name),
            results=self.log.results(name, train.rules.config_hash),
            running=frozenset(running),
            landed=self.log.landed(name, EVER),
            window=merge.window,
            batch=merge.batch,
            blocked=blocked,
            pulls=pulls,
        )

    def wants_turn(self, target: Target, merge: MergeSettings) -> bool:
        """Whether a change may go on now: without a human, and without the forge."""
        waiting = self.waiting(target.project.id)
        if merge.target is not MergeTarget.PULL_REQUEST:
            return any(may_land(it, merge.mode) for it in waiting)
        found = pull_entries(self._waits(target.name, waiting), Commit(""))
        return any(not it.held for it in found)

    def _waits(self, name: str, tasks: Iterable[Task]) -> Iterable[Waits]:
        for task in tasks:
            if task.candidate:
                pull = self.pulls.of(task.id) if self.pulls else None
                yield Waits(task, self._unlanded(task), self.log.landed(name, since(task)), pull)

    def _unlanded(self, task: Task) -> tuple[TaskId, ...]:
        """One that was deleted counts: nobody knows whether it landed."""
        named = ((id, self.store.find(id)) for id in task.depends_on)
        return tuple(id for id, it in named if it is None or it.status is not Status.DONE)
