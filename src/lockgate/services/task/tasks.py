"""Creating, renaming and deleting tasks; finding them by the beginning of their id."""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.config.settings import Settings, known_agents, runs_bare
from lockgate.core.lifecycle import records
from lockgate.core.lifecycle.decision import Decision, Declined, Evidence, MirrorTask
from lockgate.core.lifecycle.records import Unacceptable
from lockgate.core.model.agents import names_a_file
from lockgate.core.model.task import Actor, Revert, Status, Task, TaskId
from lockgate.core.text.markdown import closer
from lockgate.core.text.task_file import BrokenFrontmatter, Missing, Readable, Unreadable, count_in
from lockgate.errors import Refused, did_you_mean
from lockgate.ports import (
    Chance,
    Clock,
    Configuration,
    Harnesses,
    Project,
    Repository,
    Store,
    TaskFiles,
)
from lockgate.services.task.callers import (
    HUMAN,
    Caller,
    must_be_heard,
    must_be_human,
    must_own,
)
from lockgate.services.task.coordinator import Coordinator
from lockgate.services.task.projects import Branches, task_named

TRIES = 100


class NewTask(Struct, frozen=True, kw_only=True):
    """What a user says of a task that does not exist yet."""

    branch: str
    summary: str
    context: str = ""
    agent: str | None = None
    priority: int = 3
    depends_on: tuple[str, ...] = ()
    auto_start: bool = True
    reverts: Revert | None = None
    done: str = ""  # the Handoff of work that is there already


class Tasks(Struct, frozen=True, kw_only=True):
    store: Store
    coordinator: Coordinator
    repository: Repository
    configuration: Configuration
    harnesses: Harnesses
    clock: Clock
    chance: Chance

    def find(self, name: str, caller: Caller = HUMAN) -> TaskId:
        return task_named(self.store, name, caller)

    def create(self, project: Project, asked: NewTask, caller: Caller) -> Task:
        must_be_human(caller, "the task was not created")
        self.check(project, asked, caller)
        known = tuple(self.find(name) for name in asked.depends_on)
        decision = self.made(project, asked, self.free_id(asked.branch), known)
        self.store.create(replace(decision, by=caller.by, how=caller.how))
        self.coordinator.effector.carry_out(decision.task.id)
        return decision.task

    def made(
        self, project: Project, asked: NewTask, id: TaskId, depends_on: tuple[TaskId, ...]
    ) -> Decision:
        """The task as it begins, with its text; it is not stored yet."""
        agent = self._agent(project, asked.agent)
        now = self.clock.now()
        task = Task(
            id=id,
            project=self.store.add_project(project).id,
            summary=asked.summary.strip(),
            goal=asked.summary.strip(),
            branch=asked.branch,
            agent=agent,
            created=now,
            updated=now,
            entered=now,
            priority=asked.priority,
            depends_on=depends_on,
            auto_start=asked.auto_start,
            reverts=asked.reverts,
        )
        done = f"\n## Handoff\n\nDONE: {asked.done}\n" if asked.done else ""
        body = _first_body(asked.context.strip()) + done
        return with_body(records.created(task), body)

    def free_id(self, branch: str) -> TaskId:
        """One that no task has; of two made at the same moment the store refuses the second."""
        ids = [records.new_id(branch, self.chance.suffix())]
        while self.store.find(ids[-1]) and len(ids) < TRIES:
            ids.append(records.new_id(branch, self.chance.suffix()))
        return ids[-1]

    def rename(self, id: TaskId, summary: str, caller: Caller) -> Task:
        self.check_rename(id, summary, caller)

        def decide(seen: Evidence) -> Decision:
            must_be_heard(seen, f"task {id} keeps its summary")
            return records.renamed(seen.task, summary.strip(), seen.actor, seen.now)

        return self.coordinator.turn(id, decide, caller)

    def drop_dependency(self, id: TaskId, needs: str, caller: Caller) -> Task:
        """A task that was deleted is named by its whole id."""
        what = f"task {id} still waits for {needs}"
        must_be_human(caller, what)

        def decide(seen: Evidence) -> Decision | Declined:
            meant = [it for it in seen.task.depends_on if it.startswith(needs)]
            other = meant[0] if len(meant) == 1 else TaskId(needs)
            return records.dependency_dropped(seen.task, other, seen.now)

        return self.coordinator.turn(id, decide, caller, what)

    def delete(self, id: TaskId, caller: Caller) -> Task:
        must_be_human(caller, f"task {id} was not deleted")

        def decide(seen: Evidence) -> Decision:
            decision = records.deleted(seen.task, seen.now)
            if isinstance(decision, Unacceptable):
                raise Refused(f"task {id} was not deleted", why=decision.why, fix=decision.fix)
            return decision

        return self.coordinator.turn(id, decide, caller, write=self.store.delete)

    def check(self, project: Project, asked: NewTask, caller: Caller) -> None:
        what = "the task was not created"
        if caller.far and asked.agent and names_a_file(asked.agent):
            why = f"{asked.agent} is a file, and files of your machine are not on the server"
            raise Refused(what, why=why, fix="name an agent that the server has")
        if asked.agent and names_a_file(asked.agent):
            self._check_travels(project, asked.agent, what)
        accept(records.check_summary(asked.summary), what)
        accept(records.check_priority(asked.priority), what)
        accept(records.check_context(asked.context), what)
        self.check_branch(project, asked.branch, what)

    def _check_travels(self, project: Project, file: str, what: str) -> None:
        if self.coordinator.witness.hosts_have_agents(project):
            raise Refused(
                what,
                why=f"{file} is a file here, and other hosts of the fleet do not have it",
                fix="commit it, and let [agents.NAME] of .lockgate/config.toml name its command",
            )

    def check_rename(self, id: TaskId, summary: str, caller: Caller) -> None:
        """A human sets the goal; a worker may set the summary alone; a reviewer neither."""
        what = f"task {id} keeps its summary"
        must_own(caller, id)
        if caller.actor is Actor.REVIEWER:
            raise Refused(what, why="a reviewer may not change it", fix="leave it as it is")
        accept(records.check_summary(summary), what)

    def _agent(self, project: Project, name: str | None) -> str:
        """A file is copied now: what is done to it later does not concern this task."""
        settings = self.configuration.settings_of(project)
        known = known_agents(settings)
        if name is None or name in known:
            return name or settings.project.agent
        if names_a_file(name):
            agent = self.harnesses.keep(Path(name))
            must_be_enclosed(agent, settings, "the task was not created")
            return agent
        raise Refused(
            "the task was not created",
            why=" ".join((f"no agent is called {name!r}.", did_you_mean(name, known))).strip(),
            fix=f"use one of {', '.join(known)}, or a file: --agent ./{name}",
        )

    def check_branch(self, project: Project, branch: str, what: str) -> None:
        if not self.repository.valid_branch(branch):
            raise Refused(
                what,
                why=f"{branch!r} is not a name that git takes for a branch",
                fix="use letters, digits, '-', '_', '.' and '/', for example fix-login",
            )
        branches = Branches(self.store, self.repository, self.configuration)
        accept(branches.problem(project, branch), what)


def must_be_enclosed(agent: str, settings: Settings, what: str) -> None:
    if runs_bare(settings, agent):
        raise Refused(
            what,
            why='a file runs as an agent in the sandbox only, and [sandbox] level is "none" here',
            fix="add [agents.NAME] with its command to .lockgate/config.toml, then: lockgate trust",
        )


def accept(problem: Unacceptable | None, what: str) -> None:
    if problem:
        raise Refused(what, why=problem.why, fix=problem.fix)


def _first_body(context: str) -> str:
    """A fence or comment left open is closed: an agent's own sections come below."""
    if not context:
        return "## Context\n"
    body = f"## Context\n\n{context}\n"
    end = closer(body)
    return f"{body}{end}\n" if end else body


def with_body(decision: Decision, body: str) -> Decision:
    return replace(decision, body=body, effects=(MirrorTask(accepted=True),))


# Makes a task of a TASK.md that the database does not know.


WHAT = "the task was not imported"
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


class Imports(Struct, frozen=True):
    tasks: Tasks
    files: TaskFiles

    def take(self, project: Project, path: Path, caller: Caller) -> Task:
        """The file stays as it is; its text and what its frontmatter says become a task."""
        must_be_human(caller, WHAT)
        text = self._text(path)
        fields = self._fields(text)
        task = self._task(project, fields)
        made = replace(records.imported(task), by=caller.by, how=caller.how)
        decision = with_body(made, text.body)
        self.tasks.store.create(decision)
        self.tasks.coordinator.effector.carry_out(task.id)
        return task

    def _text(self, path: Path) -> Readable:
        directory, name = (path, "TASK.md") if _is_directory(path) else (path.parent, path.name)
        match self.files.read_at(directory, name):
            case Readable() as text:
                return text
            case Missing():
                raise Refused(WHAT, why=f"there is no file {path}", fix="name a TASK.md")
            case Unreadable() as bad:
                raise Refused(WHAT, why=bad.why, fix=bad.fix)

    def _fields(self, text: Readable) -> Mapping[str, object]:
        fields = self.files.fields(text)
        if isinstance(fields, BrokenFrontmatter):
            raise Refused(
                WHAT,
                why=f"its frontmatter is broken in line {fields.line}: {fields.why}",
                fix="fix the lines between the two '---'",
            )
        return fields

    def _task(self, project: Project, fields: Mapping[str, object]) -> Task:
        summary, branch = _string(fields, "summary"), _string(fields, "branch")
        goal = _string(fields, "goal") if "goal" in fields else summary
        accept(records.check_summary(summary) or records.check_summary(goal), WHAT)
        self.tasks.check_branch(project, branch, WHAT)
        status = _status(fields)
        settings = self.tasks.configuration
        now = self.tasks.clock.now()
        return Task(
            id=self._id(fields, branch),
            project=self.tasks.store.add_project(project).id,
            summary=summary.strip(),
            goal=goal.strip(),
            branch=branch,
            agent=settings.settings_of(project).project.agent,
            created=now,
            updated=now,
            entered=now,
            status=status,
            auto_start=False,
            pinned=None if status is Status.PENDING else settings.rules_of(project),
            iteration=_count(fields, "iteration"),
            review_round=_count(fields, "review_round"),
            crash_count=_count(fields, "crash_count"),
        )

    def _id(self, fields: Mapping[str, object], branch: str) -> TaskId:
        """Its own where it has a good one that is free, else a new one."""
        own = fields.get("id")
        if isinstance(own, str) and _ID.fullmatch(own) and own not in self.tasks.store.named(own):
            return TaskId(own)
        return self.tasks.free_id(branch)


def _is_directory(path: Path) -> bool:
    with suppress(OSError):  # its name is too long, for one
        return path.is_dir()
    return False


def _string(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if isinstance(value, str) and value.strip():
        return value
    has = "has none" if value is None else f"has {value!r}"
    raise Refused(
        WHAT, why=f"{name} must be a text, and the frontmatter {has}", fix=f"add {name}: ..."
    )


def _count(fields: Mapping[str, object], name: str) -> int:
    count = count_in(fields, name)
    if isinstance(count, BrokenFrontmatter):
        raise Refused(WHAT, why=count.why, fix=f"set {name}: 0")
    return count


def _status(fields: Mapping[str, object]) -> Status:
    value = fields.get("status", Status.PENDING.value)
    known = {status.value: status for status in Status}
    if isinstance(value, str) and value in known:
        return known[value]
    raise Refused(WHAT, why=f"there is no status {value!r}", fix=f"use one of: {', '.join(known)}")
