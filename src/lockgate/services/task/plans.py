"""Makes all tasks of a plan, or none of them."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import Decision
from lockgate.core.lifecycle.plans import ordered
from lockgate.core.lifecycle.records import Unacceptable
from lockgate.core.model.task import Task, TaskId
from lockgate.errors import LockgateError, Refused
from lockgate.ports import Project
from lockgate.services.task.callers import Caller, must_be_human
from lockgate.services.task.tasks import NewTask, Tasks

WHAT = "no task of the plan was created"


class Planned(Struct, frozen=True):
    """One task of a plan. It waits for others by their names there, or for tasks by their ids."""

    name: str
    asked: NewTask


class Plans(Struct, frozen=True):
    tasks: Tasks

    def create(self, project: Project, plan: Sequence[Planned], caller: Caller) -> tuple[Task, ...]:
        """In the order of the plan; what is wrong with one of them leaves all of them out."""
        must_be_human(caller, WHAT)
        of_plan = {it.name: it for it in plan}
        inner = {it.name: [name for name in it.asked.depends_on if name in of_plan] for it in plan}
        branches = [it.asked.branch for it in plan]
        order = ordered([it.name for it in plan], branches, inner)
        if isinstance(order, Unacceptable):
            raise Refused(WHAT, why=order.why, fix=order.fix)
        for it in plan:
            with _naming(it):
                self.tasks.check(project, it.asked, caller)
        ids = {it.name: self.tasks.free_id(it.asked.branch) for it in plan}
        decisions = {name: self._made(project, of_plan[name], ids) for name in order}
        self.tasks.store.create(
            *(replace(it, by=caller.by, how=caller.how) for it in decisions.values())
        )
        for id in ids.values():
            self.tasks.coordinator.effector.carry_out(id)
        return tuple(decisions[it.name].task for it in plan)

    def _made(self, project: Project, it: Planned, ids: Mapping[str, TaskId]) -> Decision:
        with _naming(it):
            known = [ids.get(name) or self.tasks.find(name) for name in it.asked.depends_on]
            return self.tasks.made(project, it.asked, ids[it.name], tuple(dict.fromkeys(known)))


@contextmanager
def _naming(it: Planned) -> Generator[None]:
    """What is wrong is told as for a task that is made alone, with the name of the one it is."""
    try:
        yield
    except LockgateError as error:
        raise Refused(WHAT, why=f"of {it.name!r}: {error.why}", fix=error.fix) from error
