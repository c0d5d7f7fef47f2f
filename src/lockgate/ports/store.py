"""The doors to the truth: the store, the files, the user's repository, its rules, the time."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from lockgate.core.config.settings import Branch, Settings
from lockgate.core.config.trust import Request
from lockgate.core.lifecycle.decision import Decision, Effect
from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.people import Draft, Person
from lockgate.core.model.task import Pinned, ProjectId, Session, SessionId, Status, Task, TaskId
from lockgate.core.text.task_file import BrokenFrontmatter, Readable, TaskText


class Project(Struct, frozen=True, kw_only=True):
    """One repository, keyed by the real path of its git common directory."""

    id: ProjectId
    name: str
    common_dir: str
    root: str
    url: str = ""  # its hub, where several hosts work on it; then common_dir is this host's mirror
    files: str = ""  # where this host has what `[env] copy` names, where that is not the root


class Standing(Struct, frozen=True, kw_only=True):
    """Where somebody stands: the project, its base branch, and what is checked out there.

    None and empty where there is no such thing. The base is no branch that is only checked out;
    `edited` are the files that are not as the commit has them, new ones among them.
    """

    project: Project
    base: Branch | None
    commit: str | None
    branch: str
    edited: tuple[str, ...]


class PendingEffect(Struct, frozen=True):
    """An outbox row that is not done; its key is `task:rev:n`."""

    key: str
    task: TaskId
    effect: Effect
    project: ProjectId = ProjectId("")  # set where the caller wants to know it


class Mark(Struct, frozen=True):
    """The last row of the outbox that was read: rows behind it are new."""

    turn: int = -1
    task: str = ""
    rev: int = 0
    n: int = 0


class TaskFilter(Struct, frozen=True):
    """Which tasks a page shows; empty means all. `text` is part of an id, a branch or a summary.

    `needs`: only those that may need a human, by their rows.
    """

    projects: frozenset[ProjectId] = frozenset()
    statuses: frozenset[Status] = frozenset()
    agent: str = ""
    text: str = ""
    needs: bool = False

    def has(self, task: Task) -> bool:
        """Whether the task is one of them; of needs nothing is known here."""
        text = self.text.lower()
        return (
            (not self.projects or task.project in self.projects)
            and (not self.statuses or task.status in self.statuses)
            and self.agent in {"", task.agent}
            and any(text in it.lower() for it in (task.id, task.branch, task.summary))
        )


def of_project(project: ProjectId | None, statuses: Iterable[Status] = ()) -> TaskFilter:
    """The tasks of one project, or of all."""
    return TaskFilter(frozenset(() if project is None else (project,)), frozenset(statuses))


class Cursor(Struct, frozen=True):
    """A place in the list of tasks, the newest change first: those that live, then the ended."""

    ended: bool
    updated: float
    id: TaskId


class Recent(Struct, frozen=True):
    """`after` asks for the next tasks, None where these are the last."""

    tasks: tuple[Task, ...]
    after: Cursor | None


class Waits(Struct, frozen=True):
    """A task that has not ended and waits for others."""

    id: TaskId
    status: Status
    depends_on: tuple[TaskId, ...]


class Page(Struct, frozen=True):
    """Newest first; `after` asks for the next page, None where this is the last."""

    tasks: tuple[Task, ...]
    after: TaskId | None


class GateRecord(Struct, frozen=True, kw_only=True):
    """What a gate said, as it was kept: a result's own fields are in `data`."""

    rev: int
    time: float
    gate: str
    result: str
    data: Mapping[str, object]


class Granted(Struct, frozen=True, kw_only=True):
    """The keys that a human agreed to, for a clone of this origin; and what was refused last."""

    origin: str = ""
    keys: frozenset[str] = frozenset()
    refused: tuple[Request, ...] = ()


class AssistantGrants(Protocol):
    """The assistants that may ask their human for a yes, as the user said in this home."""

    def assistants(self) -> tuple[str, ...]: ...
    def grant_assistant(self, name: str) -> None: ...
    def forget_assistant(self, name: str) -> None: ...


class Store(Protocol):
    """The truth. Each method that writes is one transaction."""

    def create(self, *decisions: Decision) -> None:
        """Insert new tasks with their events and effects, or none; Refused if an id is taken."""
        ...

    def commit(self, decision: Decision) -> None:
        """Compare-and-set on (id, rev - 1), with all it holds; StaleTask if the task moved.

        NoFreeSlot where it begins a session beside as many as there are slots.
        """
        ...

    def delete(self, decision: Decision) -> None:
        """As commit, but the row goes; its events stay."""
        ...

    def load(self, id: TaskId) -> Task:
        """NoSuchTask where there is none."""
        ...

    def find(self, id: TaskId) -> Task | None: ...
    def named(self, prefix: str) -> tuple[TaskId, ...]:
        """The ids that begin so, at most three; an exact match alone."""
        ...

    def counts(self, projects: Iterable[ProjectId] = ()) -> Mapping[Status, int]:
        """How many tasks are in each status: of those projects, or of all."""
        ...

    def page(self, which: TaskFilter, after: TaskId | None, limit: int) -> Page: ...
    def recent(self, which: TaskFilter, after: Cursor | None, limit: int) -> Recent:
        """As page, but those that live first, each by its last change."""
        ...

    def needs(self, projects: Iterable[ProjectId] = ()) -> tuple[Task, ...]:
        """The tasks of which the row says that they may need a human."""
        ...

    def waits(self) -> tuple[Waits, ...]:
        """Every task that has not ended and depends on others."""
        ...

    def statuses(self, ids: Iterable[TaskId]) -> Mapping[TaskId, Status]:
        """Of those that there are."""
        ...

    def head(self) -> int:
        """The seq of the last event."""
        ...

    def on_branch(self, project: ProjectId, branch: str) -> tuple[Task, ...]:
        """The tasks of the project that have this branch, ended ones among them."""
        ...

    def troubled(self) -> tuple[Task, ...]:
        """The tasks, in any status, for which Lockgate keeps failing to do its part."""
        ...

    def pulse(self) -> int:
        """How many changes of tasks were ever written; read at every wake.

        SchemaIsNewer where this program must not write any more, Restored where the database is
        an older copy than it was.
        """
        ...

    def projects_ready(self) -> tuple[ProjectId, ...]:
        """The projects that have a task which could start."""
        ...

    def ready(
        self, project: ProjectId, limit: int, without: Sequence[str] = ()
    ) -> tuple[Task, ...]:
        """The first tasks that could start, urgent ones first, but none of these agents."""
        ...

    def at_work(self, project: ProjectId, now: float) -> int:
        """How many tasks of it have a slot: none whose agent is dead or waits for a limit."""
        ...

    def in_vain(self) -> tuple[Task, ...]:
        """The tasks that need one which is not going to be done by itself, or were said to."""
        ...

    def to_land(self) -> Mapping[ProjectId, object]:
        """For each project with changes that wait to land a value that changes with them."""
        ...

    def events(self, task: TaskId | None, since: int, limit: int) -> tuple[StoredEvent, ...]:
        """Events with seq > since, oldest first."""
        ...

    def first_broken_event(self) -> int | None:
        """The first seq whose chain does not hold, by reading them all; None when all do."""
        ...

    def pending_effects(self, task: TaskId | None, limit: int) -> tuple[PendingEffect, ...]: ...
    def effects_after(self, mark: Mark, limit: int) -> tuple[tuple[PendingEffect, ...], Mark]:
        """The next rows of the outbox in the order in which they were written, and the last."""
        ...

    def gate_results(self, task: TaskId, since: int, limit: int) -> tuple[GateRecord, ...]:
        """Those recorded after that rev, oldest first."""
        ...

    def body(self, task: TaskId) -> str | None:
        """The last text of TASK.md that a decision was made on."""
        ...

    def forget_texts(self, task: TaskId) -> None:
        """All but that last one."""
        ...

    def effects_done(self, keys: Sequence[str]) -> None: ...
    def session(self, id: SessionId) -> Session | None: ...
    def session_by_token(self, token_hash: str) -> Session | None: ...
    def sessions(self, task: TaskId) -> tuple[Session, ...]: ...
    def sessions_alive(self) -> tuple[Session, ...]:
        """Those of all tasks that have not been recorded as ended."""
        ...

    def ids_alive(self) -> tuple[SessionId, ...]:
        """Of the same ones only their ids: the loop looks at all of them now and then."""
        ...

    def sessions_alive_in(self, project: ProjectId, besides: TaskId) -> int:
        """How many of them are of this project, but not of that task."""
        ...

    def sessions_limited(self, now: float) -> tuple[Session, ...]:
        """Those that hit a usage limit which is not over."""
        ...

    def people(self) -> tuple[Person, ...]:
        """All that are listed, by name."""
        ...

    def put_person(self, person: Person) -> None:
        """Insert, or give another right and user to the one of that name."""
        ...

    def remove_person(self, name: str) -> bool:
        """Whether there was one."""
        ...

    def drafts(self, task: TaskId, person: str) -> tuple[Draft, ...]:
        """The oldest first."""
        ...

    def put_draft(self, draft: Draft) -> None: ...
    def drop_draft(self, id: str) -> None: ...
    def seen(self, person: str) -> Mapping[str, float]:
        """The needs that they have seen, by key, and until when each is dimmed; 0 is for good."""
        ...

    def mark_seen(self, person: str, need: str, until: float | None) -> None:
        """None takes the mark off."""
        ...

    def add_project(self, project: Project) -> Project:
        """Insert it, or give back the one with that common directory."""
        ...

    def project(self, id: ProjectId) -> Project: ...
    def give_hub(self, id: ProjectId, url: str) -> None: ...  # none where it is empty
    def projects(self) -> tuple[Project, ...]:
        """All that are known, by name."""
        ...

    def close(self) -> None: ...


class TaskFiles(Protocol):
    """TASK.md and what lies beside it, under the state directory."""

    def place(self, id: TaskId) -> str:
        """Where the canonical file is, for people."""
        ...

    def read(self, id: TaskId) -> TaskText: ...
    def read_at(self, directory: Path, name: str = "TASK.md") -> TaskText: ...
    def write(self, id: TaskId, frontmatter: Mapping[str, str | int], body: str) -> None: ...
    def write_at(self, directory: Path, text: Readable, body: str) -> None:
        """The TASK.md where a session works, with another body; it stays its owner's."""
        ...

    def shows(self, text: Readable, frontmatter: Mapping[str, str | int]) -> bool:
        """Whether the text carries exactly this frontmatter."""
        ...

    def fields(self, text: Readable) -> Mapping[str, object] | BrokenFrontmatter: ...
    def last_exported(self, id: TaskId) -> int:
        """The seq of the last line in history.jsonl; 0 where there is none."""
        ...

    def append_history(self, id: TaskId, lines: Sequence[str]) -> None: ...
    def add_checkpoint(self, id: TaskId, facts: Mapping[str, object], above: int = 0) -> int:
        """Keep it under the next number, which is the answer and higher than `above`."""
        ...

    def last_checkpoint(self, id: TaskId) -> Mapping[str, object] | None: ...
    def render(self, frontmatter: Mapping[str, str | int], body: str) -> str:
        """A TASK.md as text, for a place where an agent will read it."""
        ...

    def discard(self, id: TaskId) -> None: ...


class Repository(Protocol):
    """The user's clone: asked, never changed, and never a directory that an agent can write."""

    def project_at(self, directory: Path) -> Project | None:
        """The project that a directory belongs to; None outside of git."""
        ...

    def valid_branch(self, name: str) -> bool: ...
    def base_branch(self, project: Project) -> Branch | None:
        """A local branch, on which tasks start; None where no branch has a commit."""
        ...

    def record_base(self, project: Project, branch: str) -> None:
        """Keep in the home that this branch is the base of the project."""
        ...

    def default_branches(self, project: Project) -> tuple[str, ...]:
        """The default branch of each remote, as far as the clone knows it."""
        ...

    def commit_of(self, project: Project, branch: str) -> str | None: ...
    def revision(self, project: Project, name: str) -> str | None:
        """The commit that git takes this name for, in the work tree we stand in."""
        ...

    def tip(self, project: Project, branch: str, *, fetched_first: bool) -> Branch | None:
        """A branch of this repository or of its remote; None where neither has it."""
        ...

    def tree_of(self, project: Project, commit: str) -> str | None: ...
    def standing(self, directory: Path, *, fetched_first: bool = False) -> Standing | None:
        """None outside of git. The base is the remote's branch where that is to come first."""
        ...

    def file_at(self, project: Project, commit: str, path: str) -> str | None: ...
    def origin(self, project: Project) -> str:
        """Where it was cloned from, as the user's git has it; empty where nowhere is named."""
        ...

    def landed(self, project: Project, change: str, target: str) -> bool:
        """Whether the target branch has all of this commit; False where either is missing."""
        ...

    def signing_trouble(self, project: Project) -> str | None:
        """Why git could not sign a commit, where the user's git signs every one of them."""
        ...

    def current_branch(self, project: Project) -> str: ...
    def check_place(self, project: Project, path: str, *, replace: bool) -> None:
        """Refused where `write_file` would be."""
        ...

    def write_file(self, project: Project, path: str, text: str, *, replace: bool) -> None:
        """Write it into the work tree; Refused where it is there and may not be replaced."""
        ...

    def commit_file(self, project: Project, path: str, message: str) -> str:
        """Commit this one file on the branch that is checked out; answers its name."""
        ...


class Configuration(Protocol):
    """The project's configuration, as its trusted base commit has it; BadConfig if it is wrong."""

    def settings_at(self, project: Project, commit: str) -> Settings:
        """As that commit has it: what a running task was started with."""
        ...

    def settings_of(self, project: Project) -> Settings: ...
    def allowed_at(self, project: Project, commit: str) -> Settings:
        """As settings_at, to act by them: Untrusted where they ask for what nobody agreed to."""
        ...

    def allowed_of(self, project: Project) -> Settings: ...
    def settings_for(self, task: Task, project: Project) -> Settings:
        """The settings that a task was started with; base's where it has not started."""
        ...

    def allowed_for(self, task: Task, project: Project) -> Settings:
        """As settings_for, to act by them."""
        ...

    def refused(self, project: Project) -> tuple[Request, ...]:
        """What something was refused for and still is; nothing where nobody has tried."""
        ...

    def noted(self) -> tuple[ProjectId, ...]:
        """The projects of which something was refused."""
        ...

    def landed(self, project: Project, before: str, after: str, by: Sequence[Task]) -> None:
        """The base moved by these changes: what a human agreed to in them is agreed to."""
        ...

    def rules_of(self, project: Project) -> Pinned: ...
    def rules_at(self, project: Project, commit: str, base: str) -> Pinned:
        """Those of a commit of the base branch."""
        ...


class Grants(Protocol):
    """What the user has agreed to, kept in the home, and where the words of a question lead."""

    def of(self, project: Project) -> Granted: ...
    def put(self, project: Project, granted: Granted) -> None:
        """What was agreed to, without what was refused."""
        ...

    def note(self, project: Project, refused: Sequence[Request]) -> None:
        """What was refused last, where there is a home already; a failure is nothing."""
        ...

    def noted(self) -> tuple[ProjectId, ...]:
        """The projects of which something is noted as refused."""
        ...

    def forget(self, project: Project) -> None: ...
    def origins(self) -> tuple[str, ...]:
        """Those that `trust.toml` names; BadConfig where one of them names no host."""
        ...

    def home(self) -> str: ...
    def leads(self, path: str, root: str = "") -> str:
        """Where a path really leads, links and `~` followed."""
        ...


class Clock(Protocol):
    def now(self) -> float:
        """The time of day, for people and for what the world gives as a time of day."""
        ...

    def elapsed(self) -> float:
        """Seconds on a clock that nobody sets: what waits, waits by this one."""
        ...


class Chance(Protocol):
    """Where ids and tokens come from."""

    def suffix(self) -> str:
        """Four characters that make an id unique."""
        ...

    def token(self) -> str: ...
