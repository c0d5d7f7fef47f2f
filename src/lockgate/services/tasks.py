"""Creating, renaming and deleting tasks; finding them by the beginning of their id."""

from dataclasses import dataclass

from lockgate.core import records
from lockgate.core.decision import Decision, Evidence
from lockgate.core.effects import MirrorTask
from lockgate.core.model import Task, TaskId
from lockgate.core.records import Unacceptable
from lockgate.errors import NoSuchTask, Refused
from lockgate.ports import Chance, Clock, Configuration, Project, Repository, Store
from lockgate.services.callers import Caller, must_be_human, must_own
from lockgate.services.coordinator import Coordinator


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """What a user says of a task that does not exist yet."""

    branch: str
    summary: str
    context: str = ""
    agent: str | None = None
    priority: int = 3
    depends_on: tuple[str, ...] = ()
    auto_start: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    store: Store
    coordinator: Coordinator
    repository: Repository
    configuration: Configuration
    clock: Clock
    chance: Chance

    def find(self, name: str) -> TaskId:
        """The one task whose id begins so."""
        match self.store.named(name) if name else ():
            case (id,):
                return id
            case ():
                raise NoSuchTask(name)
            case several:
                ids = ", ".join(several)
                raise NoSuchTask(name, why=f"several ids begin so: {ids}, ...")

    def create(self, project: Project, asked: NewTask, caller: Caller) -> Task:
        must_be_human(caller, "the task was not created")
        self._check(asked)
        now = self.clock.now()
        task = Task(
            id=records.new_id(asked.branch, self.chance.suffix()),
            project=self.store.add_project(project).id,
            summary=asked.summary.strip(),
            branch=asked.branch,
            agent=asked.agent or self.configuration.settings_of(project).project.agent,
            created=now,
            updated=now,
            priority=asked.priority,
            depends_on=tuple(self.find(name) for name in asked.depends_on),
            auto_start=asked.auto_start,
        )
        body = (
            f"## Context\n\n{asked.context.strip()}\n" if asked.context.strip() else "## Context\n"
        )
        self.store.create(with_body(records.created(task), body))
        self.coordinator.effector.carry_out(task.id)
        return task

    def rename(self, id: TaskId, summary: str, caller: Caller) -> Task:
        must_own(caller, id)
        self.check_summary(id, summary)
        return self.coordinator.turn(
            id, lambda seen: records.renamed(seen.task, summary.strip(), seen.now), caller
        )

    def delete(self, id: TaskId, caller: Caller) -> Task:
        must_be_human(caller, f"task {id} was not deleted")

        def decide(seen: Evidence) -> Decision:
            decision = records.deleted(seen.task, seen.now)
            if isinstance(decision, Unacceptable):
                raise Refused(f"task {id} was not deleted", why=decision.why, fix=decision.fix)
            return decision

        return self.coordinator.turn(id, decide, caller, write=self.store.delete)

    def _check(self, asked: NewTask) -> None:
        what = "the task was not created"
        accept(records.check_summary(asked.summary), what)
        accept(records.check_priority(asked.priority), what)
        accept(records.check_context(asked.context), what)
        self.check_branch(asked.branch, what)

    def check_summary(self, id: TaskId, summary: str) -> None:
        accept(records.check_summary(summary), f"task {id} keeps its summary")

    def check_branch(self, branch: str, what: str) -> None:
        if not self.repository.valid_branch(branch):
            raise Refused(
                what,
                why=f"{branch!r} is not a name that git takes for a branch",
                fix="use letters, digits, '-', '_', '.' and '/', for example fix-login",
            )


def accept(problem: Unacceptable | None, what: str) -> None:
    if problem:
        raise Refused(what, why=problem.why, fix=problem.fix)


def with_body(decision: Decision, body: str) -> Decision:
    return Decision(decision.task, events=decision.events, effects=(MirrorTask(body),))
