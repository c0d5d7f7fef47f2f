"""`undo`: a new task that takes back what another task landed."""

from collections.abc import Callable
from itertools import chain, count

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.lifecycle import undoing
from lockgate.core.lifecycle.decision import Decision, Declined, Evidence
from lockgate.core.model.people import Right
from lockgate.core.model.task import Revert, Status, Task, TaskId
from lockgate.core.train.model import Built, Commit, Conflict, Green, Red, Result
from lockgate.errors import Refused, RevertConflicts, TargetIsRed
from lockgate.ports import Change, Landing, Workspaces, of_project
from lockgate.ports.train import Reverts
from lockgate.services.task.callers import Caller, must_be_human
from lockgate.services.task.coordinator import Coordinator
from lockgate.services.task.tasks import NewTask, Tasks
from lockgate.services.train.view import BATCH, Train, TrainView

CONTEXT = "Revert task {id} ({goal}), which landed as {landed}."
BY_AN_AGENT = """{about}

The plain revert conflicts with later changes in: {files}.
Begin with: git revert --no-edit {landed} (add --mainline 1 if that is a merge commit).
The branch was at {before} before the change landed.
Keep what later changes need, take back the rest, and make sure that the tests pass.
Tests that came with the reverted change go with it."""


class Undone(Struct, frozen=True):
    """A task whose change is in the target, and the target as it is now."""

    task: Task
    landing: Landing
    train: Train

    @property
    def what(self) -> str:
        return f"task {self.task.id} was not undone"

    @property
    def about(self) -> str:
        goal = " ".join(self.task.goal.split())
        return CONTEXT.format(id=self.task.id, goal=goal, landed=self.task.landed)


class Undoing(Struct, frozen=True):
    view: TrainView
    tasks: Tasks
    coordinator: Coordinator
    workspaces: Workspaces

    def undo(self, id: TaskId, caller: Caller) -> Task:
        """The task that has the plain revert, which its gates judge now.

        TargetIsRed where the gates fail on the target as it is, RevertConflicts where git cannot
        make the revert by itself.
        """
        it = self._undone(id, caller)
        tip = self._tip(it.train)
        if isinstance(tip, Red):
            raise TargetIsRed(id, it.train.target.branch, tip.evidence)
        made = self._made(it, caller)
        return self._turn(made, it, caller, lambda seen: undoing.handed_in(seen, it.train.rules))

    def undo_now(self, id: TaskId, caller: Caller) -> Task:
        """The task that has the plain revert, which lands unjudged as soon as the target is red."""
        it = self._undone(id, caller)
        branch = it.train.target.branch
        if isinstance(self._tip(it.train), Green):
            why = f"{branch} is green, so that its gates can judge a revert"
            raise Refused(it.what, why=why, fix=f"lockgate undo {id}")
        made = self._made(it, caller)
        change = self._change(it, made)
        taken = undoing.Taken(
            commit=change.commit, patch=change.patch, files=change.files, size=change.size
        )
        why = f"{branch} is red, and a human has task {id} reverted at once"
        rules = it.train.rules
        return self._turn(
            made, it, caller, lambda seen: undoing.lands_unjudged(seen, rules, taken, why)
        )

    def undo_by_agent(self, id: TaskId, caller: Caller) -> Task:
        """A task for an agent, which is told where the plain revert conflicts."""
        it = self._undone(id, caller)
        match self._reverted(it):
            case Built():
                return self.undo(id, caller)
            case Conflict(_, _, files):
                told = {"landed": it.landing.commit, "before": it.landing.expected}
                listed = ", ".join(files)
                context = BY_AN_AGENT.format(about=it.about, files=listed, **told)
                asked = replace(self._asked(it, ""), context=context)
                return self.tasks.create(it.train.target.project, asked, caller)

    def _undone(self, id: TaskId, caller: Caller) -> Undone:
        what = f"task {id} was not undone"
        must_be_human(caller, what, Right.LAND)
        task = self.view.store.load(id)
        declined = undoing.not_undoable(task)
        if declined:
            raise Refused(what, why=declined.why, fix=declined.fix)
        landing = self.view.log.landing_of(Commit(task.landed))
        if landing is None:
            why = f"this home has no record of its landing as {task.landed[:12]}"
            raise Refused(what, why=why, fix=f"revert it by hand: git revert {task.landed[:12]}")
        project = self.view.store.project(task.project)
        self.view.configuration.allowed_of(project)
        target, _ = self.view.target(project)
        it = Undone(task, landing, self.view.train(target))
        if not self.view.yard.has(target, landing.commit):
            why = f"{target.branch} does not contain {landing.commit[:12]} any more"
            raise Refused(what, why=why, fix=f"see: git log {target.branch}")
        return it

    def _tip(self, train: Train) -> Result | None:
        """What is known of the target as it is; None where it has not been tested."""
        return self.view.queue(train).results.get(train.tip.tree)

    def _made(self, it: Undone, caller: Caller) -> Task:
        """The new task with the plain revert on its branch; one that a crash has left is used."""
        made = self._left(it) or self._created(it, caller)
        project, pinned = it.train.target.project, replace(made, pinned=it.train.rules)
        commit = made.reverts.commit if made.reverts else ""
        why = self.workspaces.publish(project, pinned, commit)
        if why:
            again = f"lockgate task cancel {made.id}, then: lockgate undo {it.task.id}"
            raise Refused(it.what, why=why, fix=again)
        return made

    def _created(self, it: Undone, caller: Caller) -> Task:
        match self._reverted(it):
            case Conflict(_, _, files):
                raise RevertConflicts(it.task.id, files)
            case Built(commit):
                asked = self._asked(it, commit)
                return self.tasks.create(it.train.target.project, asked, caller)

    def _left(self, it: Undone) -> Task | None:
        """Of an undo that was cut short; Refused where another one is under way."""
        live = frozenset(Status) - undoing.ENDED
        other = undoing.under_way(undoing.undone_by(it.task, self._page(it.task, live)))
        if other is None or undoing.is_begun(other):
            return other
        why = f"task {other.id} reverts it already, and is {other.status}"
        fix = (
            f"lockgate task why {other.id}; to begin again, first: lockgate task cancel {other.id}"
        )
        raise Refused(it.what, why=why, fix=fix)

    def _page(self, task: Task, statuses: frozenset[Status]) -> tuple[Task, ...]:
        return self.view.store.page(of_project(task.project, statuses), None, BATCH).tasks

    def _reverted(self, it: Undone) -> Built | Conflict:
        """The plain revert on the target; Refused where nothing is left to take back."""
        target, tip = it.train.target, it.train.tip
        reverts = Reverts(
            task=it.task.id,
            message=undoing.message(it.task),
            before=it.landing.expected,
            landed=it.landing.commit,
            change=Commit(it.task.candidate),
            alone=it.landing.tasks == (it.task.id,),
        )
        made = self.view.yard.revert(target, tip.commit, reverts)
        if isinstance(made, Built) and made.commit == tip.commit:
            done = undoing.undone_by(it.task, self._page(it.task, frozenset({Status.DONE})))
            by = f": task {done[0].id} has reverted it" if done else ""
            why = f"nothing of it is left in {target.branch}{by}"
            raise Refused(it.what, why=why, fix=f"see: git log {target.branch}")
        return made

    def _asked(self, it: Undone, commit: str) -> NewTask:
        """On a branch that is free: an earlier undo may have left its own."""
        slug, project = f"undo-{it.task.id}", it.train.target.project
        names = chain([slug], (f"{slug}-{n}" for n in count(2)))
        free = (name for name in names if not self.tasks.repository.commit_of(project, name))
        return NewTask(
            branch=next(free),
            summary=undoing.subject(it.task),
            context=it.about,
            priority=1,
            auto_start=not commit,
            reverts=Revert(task=it.task.id, landed=it.task.landed, commit=commit),
            done=f"a plain revert. {it.about}" if commit else "",
        )

    def _change(self, it: Undone, made: Task) -> Change:
        pinned = replace(made, pinned=it.train.rules)
        change = self.workspaces.adopt(it.train.target.project, pinned)
        if change is None:
            why, fix = f"branch {made.branch} is gone", f"lockgate undo {it.task.id}"
            raise Refused(it.what, why=why, fix=fix)
        return change

    def _turn(
        self,
        made: Task,
        it: Undone,
        caller: Caller,
        decide: Callable[[Evidence], Decision | Declined],
    ) -> Task:
        return self.coordinator.turn(made.id, decide, caller, it.what)
