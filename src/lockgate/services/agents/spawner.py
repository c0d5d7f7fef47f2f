"""Starts the session that a decision asked for: once, however often it is asked.

Notices that a session is over, reads what it left, and has the wheel decide what that means.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.config.settings import SandboxLevel, Service, Settings, in_turn, programs_in
from lockgate.core.lifecycle.decision import SpawnAgent
from lockgate.core.lifecycle.sessions import Place, is_elsewhere, last_native
from lockgate.core.lifecycle.transition import session_id
from lockgate.core.model.agents import DOOR, End, Ending, Exit, Job, Launch, Report, Usage
from lockgate.core.model.spans import UNTRACED, Context
from lockgate.core.model.task import Role, Session, SessionId, Task, TaskId
from lockgate.core.prompts.reviewer import first_words, sees_no_story
from lockgate.core.prompts.worker import dependencies, running_beside
from lockgate.core.text.task_file import Readable, frontmatter, only_sections, shown_to
from lockgate.errors import LockgateError, NoFreeSlot, NotPrepared, Refused, TurnDeclined
from lockgate.ports import (
    Chance,
    Clock,
    Configuration,
    Credentials,
    Desk,
    Harnesses,
    Project,
    Secrets,
    Sessions,
    Start,
    Store,
    TaskFiles,
    Workspaces,
    candidate_of,
)
from lockgate.services.agents.day_budget import DayBudget
from lockgate.services.task.logins import Logins, usage_limits
from lockgate.services.task.sessions import Attendance, Checkpoints
from lockgate.services.task.tasks import must_be_enclosed

# Where an agent works: the task's clone, or a clean checkout of the change, with its papers.


class Desks(Struct, frozen=True):
    home: Path
    store: Store
    workspaces: Workspaces
    files: TaskFiles

    def make(self, project: Project, task: Task, spawn: SpawnAgent, settings: Settings) -> Desk:
        blind = sees_no_story(task, spawn.seat)
        if spawn.role is Role.WORKER:
            desk = Desk(directory=self.workspaces.prepare(project, task))
            self.workspaces.set_up(
                candidate_of(project, task), settings, self.workspaces.place(task.id)
            )
        else:
            id = session_id(task.id, spawn.generation, spawn.seat)
            named = programs_in(settings, spawn.agent or task.agent)
            desk = self._review_desk(project, task, id, named, blind=blind)
        papers = self._papers(task, spawn.role, blind=blind)
        self.workspaces.write(desk.directory, papers, sandboxed=_sandboxed(settings))
        return desk

    def _review_desk(
        self, project: Project, task: Task, id: SessionId, named: Sequence[str], *, blind: bool
    ) -> Desk:
        place, commit = self.home / "reviews" / task.id / id, task.candidate
        if blind:
            commit = self.workspaces.squashed(project, task, commit)
        self.workspaces.checkout_for_review(project, task, commit, place / "checkout", named)
        return Desk(directory=place / "desk", checkout=place / "checkout")

    def _papers(self, task: Task, role: Role, *, blind: bool) -> dict[str, str]:
        text = self.files.read(task.id)
        body = text.body if isinstance(text, Readable) else self.store.body(task.id) or ""
        body = only_sections(body, {"Context"}) if blind else body
        facts = frontmatter(shown_to(task, role))
        pinned = task.pinned
        more = {"base": pinned.base, "base_commit": pinned.base_commit} if pinned else {}
        return {
            "TASK.md": self.files.render(facts, body),
            "task.json": json.dumps({**facts, **more}, indent=2) + "\n",
        }


NO_LIMIT = 7 * 24 * 3600.0
LEAST = 60.0  # seconds that a session gets, however little is left of the budget
GRACE = 5.0
GOODBYE = 10.0  # seconds that an agent which has signalled gets to end by itself
SILENCE = 900.0
LOOK_AGAIN = 2.0
RECKON = 300.0  # seconds after which a time of day is compared with the clock again: it may jump
MOMENT = 0.2  # seconds in which the end of a session that is over gets recorded


class Spawner(Struct, frozen=True, kw_only=True):
    home: Path
    store: Store
    attendance: Attendance
    workspaces: Workspaces
    sessions: Sessions
    harnesses: Harnesses
    checkpoints: Checkpoints
    desks: Desks
    configuration: Configuration
    credentials: Credentials
    logins: Logins
    secrets: Secrets
    clock: Clock
    chance: Chance
    budget: DayBudget
    tools: bool = False  # whether agents get Lockgate's commands as tools too
    trace: Callable[[TaskId, SessionId], Context] = lambda _task, _session: UNTRACED
    wall_seconds: float = NO_LIMIT  # that a session gets at most, whatever the budget leaves

    def spawn(self, task: Task, spawn: SpawnAgent) -> float:
        """0 once it runs, or has run; else in how many seconds to look again."""
        id = session_id(task.id, spawn.generation, spawn.seat)
        known = self.store.session(id)
        if known and (known.ended is not None or self.sessions.started(id)):
            return 0.0
        if known and is_elsewhere(known, task):
            return self._left_behind(known)
        again = self._seconds_to_wait(task, spawn, known)
        if again:
            return again
        project = self.store.project(task.project)
        until = 0.0 if spawn.interactive else self.budget.wait_until(project)
        if until:
            return max(MOMENT, until - self.clock.now())
        settings = self.configuration.allowed_for(task, project)
        spawn, limited = self._by_turn(task, spawn, settings, known)
        if limited:
            return self._parked(task, spawn, limited)
        self._must_be_there(_agent(task, spawn), settings)
        must_be_enclosed(_agent(task, spawn), settings, f"the agent of {task.id} was not started")
        if self._ended_older(task, spawn):
            return MOMENT
        try:
            self._begin(task, spawn, settings, known)
        except (NoFreeSlot, TurnDeclined):  # others began since, or another host has the task
            return LOOK_AGAIN
        return 0.0

    def _left_behind(self, known: Session) -> float:
        """Its host was gone while it began. An agent that runs there is ended when it is back."""
        exit = Exit(ending=Ending.INTERRUPTED, why=f"host {known.host} was gone while it began")
        with suppress(TurnDeclined):  # that host has recorded its end
            self.attendance.session_ended(known.id, End(exit))
        return MOMENT

    def _begin(
        self, task: Task, spawn: SpawnAgent, settings: Settings, known: Session | None
    ) -> None:
        id = session_id(task.id, spawn.generation, spawn.seat)
        project = self.store.project(task.project)
        native = self._native(task, spawn, settings)
        desk = self.desks.make(project, task, spawn, settings)
        job = self._job(task, spawn, native, settings)
        if not _sandboxed(settings):
            where, home = str(desk.directory), str(self._home(task, spawn))
            job = replace(job, workspace=where, home=home)
        start = self._start(task, spawn, desk, settings, job)
        self.sessions.note(start)
        if known is None:
            token = self.sessions.token(id) or start.token
            login = self.logins.login(_agent(task, spawn), settings)
            native = native or start.launch.native
            place = Place(str(desk.directory), native, _told(task, spawn), login)
            slots = settings.project.slots
            self.attendance.session_started(task.id, spawn, token, place, slots)
        self.sessions.start(start)

    def _by_turn(
        self, task: Task, spawn: SpawnAgent, settings: Settings, known: Session | None
    ) -> tuple[SpawnAgent, float]:
        """With the agent whose turn it is, and until when it waits where every one is limited."""
        if known:
            return replace(spawn, agent=known.agent), 0.0
        limits = usage_limits(self.store, self.clock.now())
        if spawn.interactive or spawn.insists or not limits:
            return spawn, 0.0
        now, chosen = _agent(task, spawn), (not spawn.agent and task.instead_of) or ""
        agents = dict.fromkeys((now, *in_turn(settings, chosen or now)))
        agent, until = self.logins.turn(tuple(agents), settings, limits)
        if until or agent == now:
            return spawn, until
        return replace(spawn, agent=agent, instead_of=now), 0.0

    def _parked(self, task: Task, spawn: SpawnAgent, until: float) -> float:
        """In how many seconds to look again; 0 where a human says when the task goes on."""
        if task.pinned is None or task.pinned.resume:
            return min(max(MOMENT, until - self.clock.now()), RECKON)
        self.attendance.keep_waiting(task.id, spawn, until)
        return 0.0

    def _seconds_to_wait(self, task: Task, spawn: SpawnAgent, known: Session | None) -> float:
        """A session that is recorded has its slot: two that wait for each other never start."""
        if spawn.interactive:
            return 0.0
        taken = spawn.role is Role.WORKER and task.taken_over
        since = self.clock.now() - task.updated  # less than 0 where the clock was set back
        leaving = 0 <= since < GOODBYE and self._older(task, spawn)
        free = known is not None or self._has_slot(task)
        return LOOK_AGAIN if taken or leaving or not free else 0.0

    def _has_slot(self, task: Task) -> bool:
        project = self.store.project(task.project)
        slots = self.configuration.settings_for(task, project).project.slots
        return self.store.sessions_alive_in(task.project, task.id) < slots

    def _must_be_there(self, agent: str, settings: Settings) -> None:
        how = self.harnesses.missing(agent, settings)
        if how:
            raise Refused(
                f"agent {agent} was not started", why="its program is not installed", fix=how
            )
        login = self.logins.missing(agent, settings)
        if login:
            raise Refused(f"agent {agent} was not started", why=login.why, fix=login.fix)

    def _ended_older(self, task: Task, spawn: SpawnAgent) -> bool:
        """An agent that has signalled may still be saying goodbye; two never share a desk.

        Until its end is recorded nobody knows the id by which it is resumed.
        """
        older = self._older(task, spawn)
        for it in older:
            if self.sessions.exit_of(it.id) is None:
                self.sessions.end(it.id, GRACE)
        return bool(older)

    def _older(self, task: Task, spawn: SpawnAgent) -> tuple[Session, ...]:
        return tuple(
            it
            for it in self.store.sessions(task.id)
            if it.role is spawn.role
            and it.seat == spawn.seat
            and it.generation < spawn.generation
            and it.ended is None
        )

    def _native(self, task: Task, spawn: SpawnAgent, settings: Settings) -> str:
        """The id by which the last worker is resumed; empty where a new one begins."""
        if spawn.fresh or spawn.role is Role.REVIEWER:
            return ""
        agent = _agent(task, spawn)
        if not self.harnesses.can_resume(agent, settings):
            return ""
        return last_native(self.store.sessions(task.id), agent, task.host)

    def _job(self, task: Task, spawn: SpawnAgent, native: str, settings: Settings) -> Job:
        agent = _agent(task, spawn)
        names = self.harnesses.variables(agent, settings)
        command = f"{DOOR}/bin/lockgate" if _sandboxed(settings) else "lockgate"
        stop = (command, "checkpoint", "--task-id", task.id, "--done")
        return Job(
            prompt=self._prompt(task, spawn, settings, resumed=bool(native)),
            role=spawn.role,
            task=task.id,
            session=session_id(task.id, spawn.generation, spawn.seat),
            environ=self.credentials.of(agent, names),
            native=native,
            interactive=spawn.interactive,
            stop_command=stop if spawn.role is Role.WORKER else (),
            mcp_command=(command, "mcp") if self.tools else (),
        )

    def _prompt(self, task: Task, spawn: SpawnAgent, settings: Settings, *, resumed: bool) -> str:
        if spawn.interactive:
            return ""  # a human sits down, and says what is to be said
        limits = task.pinned.limits if task.pinned else settings.limits
        left = self.checkpoints.last(task.id)
        told = first_words(task, spawn, limits, left, resumed=resumed)
        if spawn.role is Role.WORKER and not resumed:
            told += dependencies(settings.env)
        return told + running_beside(_services(spawn, settings))

    def _home(self, task: Task, spawn: SpawnAgent) -> Path:
        """A reviewer's own: it must not find the author's story."""
        if spawn.role is Role.WORKER:
            return self.home / "homes" / task.id
        id = session_id(task.id, spawn.generation, spawn.seat)
        return self.home / "reviews" / task.id / id / "home"

    def _start(
        self, task: Task, spawn: SpawnAgent, desk: Desk, settings: Settings, job: Job
    ) -> Start:
        id, agent = session_id(task.id, spawn.generation, spawn.seat), _agent(task, spawn)
        return Start(
            session=id,
            token=self.sessions.token(id) or self.chance.token(),
            launch=self._launch(agent, settings, job, self.trace(task.id, id)),
            desk=desk,
            home=self._home(task, spawn),
            base=self.workspaces.base(self.store.project(task.project)),
            read=(*self.harnesses.paths(agent, settings), *settings.sandbox.read),
            sandboxed=_sandboxed(settings),
            interactive=spawn.interactive,
            wall_seconds=NO_LIMIT if spawn.interactive else self._seconds_left(task),
            silent_seconds=NO_LIMIT if spawn.interactive else SILENCE,
            secrets=self.secrets.of(
                candidate_of(self.store.project(task.project), task), task.agent
            ),
            memory_mb=settings.sandbox.memory_mb,
            disk_mb=settings.sandbox.session_disk_mb,
            services=_services(spawn, settings),
            data=self._service_data(task, spawn, settings),
        )

    def _launch(self, agent: str, settings: Settings, job: Job, span: Context) -> Launch:
        """It is told to which span it belongs, where anybody looks."""
        made = self.harnesses.launch(agent, settings, job)
        return replace(made, env={**made.env, **span.environment}) if span.trace else made

    def _service_data(self, task: Task, spawn: SpawnAgent, settings: Settings) -> Path | None:
        """As its last candidate has it; base's where that one's own could not be prepared."""
        if not _services(spawn, settings):
            return None
        it = candidate_of(self.store.project(task.project), task)
        try:
            return self.workspaces.service_data(it, settings, task.candidate)
        except NotPrepared:
            return self.workspaces.service_data(it, settings, "")

    def _seconds_left(self, task: Task) -> float:
        minutes = task.pinned.budget.minutes if task.pinned else 0
        left = max(LEAST, minutes * 60 - task.seconds) if minutes else NO_LIMIT
        return min(left, self.wall_seconds)


def _told(task: Task, spawn: SpawnAgent) -> int:
    """The number of the last word of a human that the prompt tells; 0 where it tells none."""
    silent = spawn.interactive or spawn.role is Role.REVIEWER or not task.words
    return 0 if silent else task.words[-1].number


def _services(spawn: SpawnAgent, settings: Settings) -> tuple[Service, ...]:
    """A reviewer reads; it has no set-up either, with which it could run tests."""
    return settings.services if spawn.role is Role.WORKER else ()


def _agent(task: Task, spawn: SpawnAgent) -> str:
    return spawn.agent or task.agent


def _sandboxed(settings: Settings) -> bool:
    return settings.sandbox.level is SandboxLevel.AUTO


# The end of a session.


class Monitor(Struct, frozen=True):
    store: Store
    attendance: Attendance
    sessions: Sessions
    harnesses: Harnesses
    configuration: Configuration

    def finish(self, id: SessionId) -> bool:
        """Record the end of a session that is over; False while it lives."""
        session, exit = self.store.session(id), self.sessions.exit_of(id)
        if session is None or session.ended is not None:
            return True
        if exit is None:
            return False
        if exit.ending is Ending.LOST:
            self.sessions.end(id, 0.0)  # its runner cannot have ended what it had started
        report = self._report(session, exit)
        known = self._spent(session, report), self._resumable(session, report)
        end = End(exit, report, *known, skipped=self._skipped(session))
        try:
            self.attendance.session_ended(id, end)
        except TurnDeclined:
            return True  # somebody else has recorded it
        return True

    def _resumable(self, session: Session, report: Report) -> bool:
        """Whether the agent's own program can take this conversation up again."""
        task = self.store.load(session.task)
        settings = self.configuration.settings_for(task, self.store.project(task.project))
        known = report.native or session.native
        return bool(known) and self.harnesses.can_resume(session.agent or task.agent, settings)

    def _skipped(self, session: Session) -> str:
        """The fallbacks of its agent that are not installed."""
        task = self.store.load(session.task)
        settings = self.configuration.settings_for(task, self.store.project(task.project))
        _, *others = in_turn(settings, session.agent or task.agent)
        return ", ".join(it for it in others if self.harnesses.missing(it, settings))

    def _report(self, session: Session, exit: Exit) -> Report:
        task = self.store.load(session.task)
        settings = self.configuration.settings_for(task, self.store.project(task.project))
        output = self.sessions.output(session.id)
        try:
            return self.harnesses.read(session.agent or task.agent, settings, output, exit)
        except LockgateError as error:
            return Report(failure=str(error))

    def _spent(self, session: Session, report: Report) -> Usage:
        """What this run alone has used, where the program counts all runs of its session."""
        if not report.cumulative:
            return report.usage
        before = _most(self.store.sessions(session.task), session, report.native)
        usage = report.usage
        return Usage(max(0.0, usage.usd - before.usd), max(0, usage.tokens - before.tokens))


def _most(sessions: Iterable[Session], now: Session, native: str) -> Usage:
    same = [it for it in sessions if it.native == native and it.id != now.id]
    usd = max((it.usd for it in same), default=0.0)
    return Usage(usd, max((it.tokens for it in same), default=0))
