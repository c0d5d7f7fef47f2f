"""The doors to the work: workspaces, sessions, agents' programs, gates, logins."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from lockgate.core.config.settings import SandboxSettings, Service, Settings
from lockgate.core.model import gates
from lockgate.core.model.agents import Exit, Job, Launch, Report, Source
from lockgate.core.model.findings import Finding
from lockgate.core.model.gates import CommandGate
from lockgate.core.model.results import ReportRead, Unreadable
from lockgate.core.model.secrets import Secret
from lockgate.core.model.spans import UNTRACED, Context
from lockgate.core.model.task import Pinned, SessionId, Size, Task, TaskId
from lockgate.ports.store import Project

if TYPE_CHECKING:
    from lockgate.core.model.brought import Brought, SetUpFailed


class Desk(Struct, frozen=True, kw_only=True):
    """A checkout that an agent sees: its directory, and what lies under it read-only."""

    directory: Path
    checkout: Path | None = None  # a reviewer's: each entry of it is shown, none can be written


class Candidate(Struct, frozen=True, kw_only=True):
    """A commit that is judged, and by which rules; it need not be a task's.

    `name` is the task's id, or one that no task has: directories and locks are called by it.
    """

    project: Project
    commit: str  # empty where a task has none yet
    rules: Pinned | None
    name: str

    @property
    def config_hash(self) -> str:
        return self.rules.config_hash if self.rules else ""


def candidate_of(project: Project, task: Task, commit: str = "") -> Candidate:
    """The task's commit that is judged, or another one of it."""
    return Candidate(
        project=project, commit=commit or task.candidate, rules=task.pinned, name=task.id
    )


class Change(Struct, frozen=True):
    """A task's work as one commit in the judge's repository, and what it differs in from base."""

    commit: str
    files: tuple[str, ...]
    patch: str = ""  # the same for the same change, whatever it is based on
    added: int = 0  # bytes
    mended: str = ""  # what was wrong with its commits, where they were made again
    lines: tuple[int, int] = (0, 0)  # that come and go
    commits: int = 0

    @property
    def size(self) -> Size:
        return Size(len(self.files), self.added, self.commits, *self.lines)


class FileSize(Struct, frozen=True):
    """The lines that a change adds to a file and removes from it; of no text, None."""

    path: str
    added: int | None
    removed: int | None


class Unfit(Struct, frozen=True):
    """Work that is not taken as a change, and what its author must mend first."""

    findings: tuple[Finding, ...]


class Workspaces(Protocol):
    """The clones agents work in, and the two repositories they never write.

    No method runs git in a directory that an agent can write, but in a sandbox without network.
    """

    def prepare(self, project: Project, task: Task) -> Path:
        """The task's clone on its branch, made from its base commit unless it is there."""
        ...

    def place(self, id: TaskId) -> Path: ...
    def base(self, project: Project) -> Path:
        """base.git, which every sandbox of the project is shown read-only."""
        ...

    def write(self, directory: Path, files: Mapping[str, str], *, sandboxed: bool = True) -> None:
        """Put these files there by name, replacing what is in their place, following no link.

        They belong to the agent, which is another user only in a sandbox.
        """
        ...

    def read(self, directory: Path, name: str) -> str | None:
        """A plain file of that name, which an agent may have written; None where there is none."""
        ...

    def take(self, project: Project, task: Task) -> Change | Unfit:
        """All work in the clone, committed or not, as a commit kept by a ref in judge.git.

        Work that is unfit stays in the clone, and nothing of it comes into judge.git.
        """
        ...

    def adopt(self, project: Project, task: Task) -> Change | None:
        """The task's branch as the user's repository has it; None where it has none."""
        ...

    def change(self, it: Candidate) -> Change: ...
    def changed_files(self, it: Candidate) -> tuple[str, ...]:
        """Those of the change alone, which takes less time."""
        ...

    def diff(self, project: Project, task: Task, commit: str) -> str: ...
    def checkout(self, it: Candidate, directory: Path) -> str:
        """A clean clone of that commit with its history, which only we have written: its tree."""
        ...

    def checkout_for_review(
        self, project: Project, task: Task, commit: str, directory: Path, named: Sequence[str]
    ) -> None:
        """A clean clone of that commit, but for the files that instruct agents: those are base's.

        So are `named`, which are paths in the repository.
        """
        ...

    def squashed(self, project: Project, task: Task, commit: str) -> str:
        """The same change as one commit, without its author's words."""
        ...

    def tree(self, project: Project, commit: str) -> str: ...
    def discard(self, directory: Path) -> None:
        """Remove a checkout, whatever was done to it."""
        ...

    def publish(self, project: Project, task: Task, commit: str) -> str | None:
        """Set the branch in the user's repository; why not, where it is not ours to move."""
        ...

    def release(self, project: Project, task: Task, *, counts: bool = True) -> None:
        """Remove the clone, once all work in it is kept by a ref; one with unfit work stays.

        Its work is not kept where it does not count: another host has the task.
        """
        ...

    def set_up(
        self, it: Candidate, settings: Settings, directory: Path, *, own: bool = False
    ) -> None:
        """Give a task's clone, or a checkout of ours, what `[env]` says; safe to repeat.

        `own`: with what the candidate's own set-up brought, where it has one.
        """
        ...

    def brought(self, it: Candidate, settings: Settings) -> "Brought | SetUpFailed | None":
        """What the set-up of this very commit brings, beside base's; None where base's fits."""
        ...

    def service_data(self, it: Candidate, settings: Settings, commit: str) -> Path | None:
        """What the services of that commit start from; None where they start from nothing.

        Made now, unless it is there. No commit is base's.
        """
        ...

    def keep_within(
        self, limit_bytes: int, idle: Sequence[tuple[Project, Task]]
    ) -> tuple[TaskId, ...]:
        """Release clones of these tasks, the longest untouched first, until all fit in there."""
        ...

    def keep_set_ups_within(self, limit_bytes: int) -> None:
        """Remove what set-ups of base left and downloaded, the longest unused first, until it fits.

        What was used lately stays.
        """
        ...

    def sizes(self) -> Mapping[str, int]:
        """Bytes by what they are for: workspaces, repositories, homes, sessions."""
        ...


class Start(Struct, frozen=True, kw_only=True):
    """A session that is to run: what, where, and for how long."""

    session: SessionId
    token: str
    launch: Launch
    desk: Desk
    home: Path  # the task's HOME, which outlives the session
    base: Path
    read: tuple[str, ...] = ()  # more paths that the sandbox shows read-only
    sandboxed: bool = True
    interactive: bool = False
    wall_seconds: float = 7200.0
    silent_seconds: float = 900.0
    limited_seconds: float = 30.0  # that it may try again by itself after it hit a usage limit
    secrets: tuple[Secret, ...] = ()  # what its logs must not show
    memory_mb: int = 0  # no limit; nor in the next one
    disk_mb: int = 0  # of its desk and its home together
    services: tuple[Service, ...] = ()  # that run beside it, for it alone
    data: Path | None = None  # prepared, for the services to start from


class Shell(Struct, frozen=True, kw_only=True):
    """A program that a person runs in a task's workspace, as its agent would see it."""

    argv: tuple[str, ...]  # empty: a shell
    workspace: Path
    home: Path  # the task's HOME
    base: Path
    read: tuple[str, ...] = ()  # more paths that the sandbox shows read-only
    sandboxed: bool = True
    read_only: bool = False
    terminal: bool = False  # it keeps the person's terminal


class Becomes(Struct, frozen=True):
    """The program that takes the place of this process."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    directory: str


class Sessions(Protocol):
    """Agents under their runners, which outlive this process."""

    def note(self, start: Start) -> None:
        """Write down what is to run, durably, without running it; what is written stays."""
        ...

    def start(self, start: Start) -> None:
        """Start its runner; nothing happens where it has been started before."""
        ...

    def token(self, id: SessionId) -> str | None:
        """The token of a session that was written down, started or not."""
        ...

    def exit_of(self, id: SessionId) -> Exit | None:
        """How it ended; None while it lives or where it has not been started."""
        ...

    def started(self, id: SessionId) -> bool: ...
    def watch(self, id: SessionId) -> int | None:
        """A descriptor that becomes readable when its runner ends; None where it has."""
        ...

    def end(self, id: SessionId, grace: float) -> None:
        """End it and all it started; returns when nothing of it is left."""
        ...

    def output(self, id: SessionId) -> str:
        """What its program wrote, head and tail where it was too much."""
        ...

    def attach_command(self, id: SessionId) -> tuple[str, ...] | None:
        """What a person runs to sit at an interactive session; None where it is not one."""
        ...

    def remove(self, id: SessionId) -> None: ...


class Upkeep(Struct):
    """Of a checkout that several attempts use: how each of them finds it as it was made."""

    renew: Callable[[], object]
    seen: dict[Path, bytes] = field(default_factory=dict[Path, bytes])
    """Fingerprint of the checkout and of each directory kept beside it; all go with it."""
    lock: Lock = field(default_factory=Lock)


class GateRun(Struct, frozen=True, kw_only=True):
    """What a gate is run on, and by whose rules."""

    checkout: Path
    base: Path
    commit: str
    tree: str
    config_hash: str
    sandbox: SandboxSettings
    services: tuple[Service, ...] = ()
    data: Path | None = None  # prepared, for the services to start from
    upkeep: Upkeep | None = None  # without it nothing may write the checkout
    alone: bool = False  # nobody else uses the checkout meanwhile
    span: Context = UNTRACED  # of which its command is told


class Cut(StrEnum):
    """Why a program's exit code says nothing about it."""

    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    BOX = "box"  # what should have enclosed it failed
    SERVICE = "service"  # what it needs beside it was not ready, or has ended
    MEMORY = "memory"  # this and the next two: it used up what it may have
    SCRATCH = "scratch"
    PIDS = "pids"


class Attempt(Struct, frozen=True, kw_only=True):
    """How one try of a gate's command ended. Nothing it did is there when the next one starts.

    No exit code means that it was ended, or that its own says nothing; 125, that it never ran.
    """

    exit_code: int | None
    cut: Cut | None
    why: str  # of the cut, for people; of an exit code that may be a signal's, a note
    out: str
    err: str
    report_dir: Path | None  # plain files of ours, what it left in $OUT; the caller removes it
    seconds: float
    level: str


class Watch(Protocol):
    """Waits for the end of many sessions at once."""

    def add(self, id: SessionId, descriptor: int) -> None: ...
    def wake(self) -> None: ...
    def wait(self, seconds: float) -> tuple[SessionId, ...]:
        """Those that ended; none where the time is up or somebody woke it."""
        ...


class Taken(Protocol):
    """A connection, both ways: a socket. Its descriptor may go to another process."""

    def fileno(self) -> int: ...
    def close(self) -> None: ...


class FeedSource(Protocol):
    """What is told to all who follow, each at their own pace; one thread asks for it.

    Who follows goes by the descriptor of their connection.
    """

    def look(self, now: float) -> float:
        """See what is new, by a clock that never jumps; the seconds until the next look is due."""
        ...

    def arrived(self) -> Sequence[Taken]:
        """Those who came since."""
        ...

    def more(self, reader: int) -> bytes:
        """The next whole lines for one of them; none where that one has all."""
        ...

    def left(self, reader: int) -> None: ...
    def farewell(self) -> bytes:
        """The last line of all, when no more is told."""
        ...


class Tail(Protocol):
    """A session's output as it grows."""

    def lines(self) -> list[str]:
        """Those that came since the last look; at the first one the newest of what is there."""
        ...


class Line(Protocol):
    """The way back to the caller: each text is sent at once."""

    def out(self, text: str) -> None: ...
    def err(self, text: str) -> None: ...
    def end(self, code: int) -> None:
        """Tell the exit code; nothing more is heard."""
        ...

    def gone(self) -> bool:
        """Whether nobody listens any more."""
        ...

    def take(self) -> Taken:
        """The connection itself, which is the taker's to close; OSError where nobody listens."""
        ...


class Call(Struct, frozen=True, kw_only=True):
    """A command line that somebody brought to the orchestrator's door."""

    argv: tuple[str, ...]
    token: str
    directory: Path
    stdin: str
    path: str  # where they look for programs
    lively: bool  # a person sees what goes to stderr
    line: Line
    columns: int = 0  # of the terminal that stdout goes to; 0 where that is none
    uid: int | None = None  # of the caller's process, by the kernel's word


class Harnesses(Protocol):
    """The agents' programs by the names that the configuration has for them."""

    def keep(self, file: Path) -> str:
        """Copy a file that a user names as an agent; the agent's name, with the file's digest."""
        ...

    def missing(self, agent: str, settings: Settings) -> str | None:
        """How to install its program, where it is not there."""
        ...

    def launch(self, agent: str, settings: Settings, job: Job) -> Launch: ...
    def can_resume(self, agent: str, settings: Settings) -> bool: ...
    def read(self, agent: str, settings: Settings, output: str, exit: Exit) -> Report: ...
    def paths(self, agent: str, settings: Settings) -> tuple[str, ...]:
        """Where its program and toolchain lie, to be shown read-only."""
        ...

    def variables(self, agent: str, settings: Settings) -> tuple[str, ...]:
        """The variables it takes its login and its model from; it is given no others."""
        ...

    def logins(self, agent: str, settings: Settings) -> tuple[str, ...]:
        """Those of them that it logs in by and chooses its model with."""
        ...

    def keys(self, agent: str, settings: Settings) -> tuple[str, ...]:
        """Those of them of which any one is a login; empty where it needs none."""
        ...

    def login(self, agent: str, settings: Settings, given: Mapping[str, str]) -> str:
        """The one that it would use, of those that it is given; empty where it would use none."""
        ...


class GateRuns(Protocol):
    """Runs a gate's command on a clean checkout, where nothing that it does is kept."""

    def attempt(self, gate: CommandGate, run: GateRun, cancelled: Callable[[], bool]) -> Attempt:
        """One try, which finds the checkout as the one before found it."""
        ...

    def read(self, attempt: Attempt, wanted: gates.Report | None) -> ReportRead | Unreadable:
        """What it reported, in files or in words; the files are removed."""
        ...


class Conditions(Protocol):
    """Decides a gate's `when`; one that has no answer holds."""

    def hold(self, when: str, task: Mapping[str, object], change: Mapping[str, object]) -> bool: ...


class Credentials(Protocol):
    """What an agent may log in with, by the names of the variables that its program reads."""

    def of(self, agent: str, names: Sequence[str]) -> Mapping[str, str]: ...
    def sources(self, agent: str, names: Sequence[str]) -> Mapping[str, Source]:
        """Who holds each of these variables, seen from the process that starts agents."""
        ...

    def names(self, agent: str) -> tuple[str, ...]:
        """Those that the user has stored for it."""
        ...

    def store(self, agent: str, name: str, *, value: str = "", variable: str = "") -> Path:
        """Keep a login, or the name of the variable that has it; the answer is the file."""
        ...

    def forget(self, agent: str) -> tuple[str, ...]:
        """Remove what was stored; the names that it was stored for."""
        ...

    def in_files(self, root: Path, names: Sequence[str]) -> tuple[Secret, ...]:
        """The values of variables in these files of a project, where they are there."""
        ...


class Secrets(Protocol):
    """What a task's agents and gates are given that nobody may keep in writing."""

    def of(self, it: Candidate, agent: str) -> tuple[Secret, ...]:
        """`agent` is who works on it."""
        ...
