"""What a host of a fleet does besides the jobs of every orchestrator.

It attends to the sessions that run there, and goes on with the tasks of a host that is lost.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from threading import Lock

from msgspec import Struct, field

from lockgate.core.fleet import is_at_work, next_snapshot
from lockgate.core.hosts import Host, free_slots, why_not_taken
from lockgate.core.jobs import Attend, Evaluate, HostLost, Job, TestTree
from lockgate.core.lifecycle.decision import Decision, Declined, Evidence
from lockgate.core.lifecycle.evaluation import host_gone
from lockgate.core.lifecycle.records import adopted, may_take_on, placed
from lockgate.core.model.agents import End, Ending, Exit
from lockgate.core.model.task import Session, SessionId, Task, TaskId
from lockgate.errors import LockgateError, TurnDeclined
from lockgate.ports import Clock, Sessions, Store, Workspaces
from lockgate.ports.engine import CalledOff
from lockgate.ports.lanes import Hosts
from lockgate.services.agents.spawner import Monitor
from lockgate.services.task.sessions import Attendance

LOOKS = 250.0  # milliseconds between two looks whether a session is over
SOON = 1.0  # seconds until an end that could not be read is looked at again
OFTEN = 20  # looks, after which the store is asked too
GRACE = 5.0
EFFECTS = 100  # of one task, at most, that are still to do


class Placing(Struct, kw_only=True):
    """Gives the slots of this host to tasks that have no host yet, one after the other."""

    hosts: Hosts
    clock: Clock
    free: int = 0  # slots, at the last look
    _begun: int = 0  # such tasks whose agents have yet to begin; their slots are not free
    _lock: Lock = field(default_factory=Lock)

    @property
    def places(self) -> int:
        """How many of these tasks may be prepared at once."""
        return self.free + self._begun

    def look(self, host: Host) -> None:
        with self._lock:
            self.free = free_slots(host, self.hosts.at_work(host.name, self.clock.now()))

    @contextmanager
    def place(
        self, task: TaskId, host: Host, work: "HostWork", lacking: Sequence[str]
    ) -> Generator[str]:
        """Why the host does not take it; empty where it does, which is written, or has it."""
        known = work.store.find(task)
        if known is None or known.host == host.name:
            yield ""
            return
        why = self._take(task, host, work, lacking)
        try:
            yield why
        finally:
            with self._lock:
                self._begun -= not why

    def _take(self, task: TaskId, host: Host, work: "HostWork", lacking: Sequence[str]) -> str:
        """Nobody else counts before it is written."""
        with self._lock:
            at_work = self.hosts.at_work(host.name, self.clock.now())
            why = why_not_taken(host, at_work, lacking)
            if not why:
                work.place(task, host.name)
            self._begun += not why
            self.free = free_slots(host, at_work + (not why))
        return why


class HostWork(Struct, frozen=True, kw_only=True):
    """The `FleetLane` of the crew."""

    store: Store
    attendance: Attendance
    monitor: Monitor
    sessions: Sessions
    workspaces: Workspaces
    clock: Clock
    wait: Callable[[float], None]  # so many milliseconds
    snapshot_every: float = 0.0  # seconds; 0 is never
    name: str = ""  # the host's own
    lacks: Callable[[Job], bool] = lambda _: False  # a label that the job needs

    def attend(self, job: Attend, called_off: CalledOff) -> float:
        """Until the session is over and that is recorded; what ended elsewhere ends here too."""
        if self._is_over(job):
            return 0.0
        looks, due = 0, self.clock.elapsed() + self.snapshot_every
        while not called_off() and self.sessions.exit_of(job.session) is None:
            self.wait(LOOKS)
            looks += 1
            if self.snapshot_every and self.clock.elapsed() >= due:
                due = self._keep(job)
            if looks % OFTEN == 0 and self._is_over(job):
                return 0.0
        if called_off():
            return 0.0
        return 0.0 if self.monitor.finish(job.session) else SOON

    def _keep(self, job: Attend) -> float:
        """Push what a worker has done, so that it outlives this host; when to do so again.

        Where that fails nothing is lost yet: it is tried again, and told when it is handed in.
        """
        began, session = self.clock.elapsed(), self.store.session(job.session)
        with suppress(LockgateError):
            self._push(self.store.load(job.task), [session] if session else [])
        now = self.clock.elapsed()
        return now + next_snapshot(now - began, self.snapshot_every)

    def _push(self, task: Task, sessions: Iterable[Session]) -> None:
        """What a worker among them has done."""
        project = self.store.project(task.project)
        if project.url and any(is_at_work(it, task) for it in sessions):
            self.workspaces.take(project, task)

    def end_what_is_over(self, ids: Iterable[SessionId]) -> tuple[SessionId, ...]:
        """Agents here whose sessions others have ended, while this host did not answer.

        The others, which go on.
        """
        known = (self.store.session(id) for id in ids if self.sessions.exit_of(id) is None)
        alive = [it for it in known if it is not None]
        for it in alive:
            if it.ended is not None:
                self.sessions.end(it.id, 0.0)
        return tuple(it.id for it in alive if it.ended is None)

    def lead(self, called_off: CalledOff) -> float:  # noqa: ARG002 - the crew's
        """Nothing: who leads has a loop, which puts a crew of its own to work."""
        return 0.0

    def only_takes(self, job: Evaluate | TestTree) -> bool:
        """Its gates need what this host has not: the clone is here, and another one judges."""
        return self.lacks(job)

    def _is_over(self, job: Attend) -> bool:
        """Elsewhere, while this host did not answer: then its agent here works for nobody."""
        session = self.store.session(job.session)
        over = session is None or session.ended is not None
        if over:
            self.sessions.end(job.session, GRACE)
        return over

    def place(self, task: TaskId, host: str) -> None:
        """Its clone is made on this host, and what works in it runs here."""
        known = self.store.find(task)
        if known and known.host != host:
            self.attendance.coordinator.turn(
                task, lambda seen: placed(seen.task, host, seen.now), what=f"task {task} stays"
            )

    def adopt(self, ids: Iterable[SessionId]) -> None:
        """Take up the sessions of this home, and their tasks, that have no host."""
        for session in filter(None, map(self.store.session, ids)):
            if not session.host and self.store.find(session.task):
                self._adopt(session)

    def _adopt(self, session: Session) -> None:
        def decide(seen: Evidence) -> Decision | Declined:
            newest = self.store.session(session.id) or session
            others = self.store.sessions(session.task)
            return adopted(seen.task, newest, others, self.name, seen.now)

        with suppress(LockgateError):  # another host has the task; what fails must not stop a start
            what = f"session {session.id} has no host still"
            self.attendance.coordinator.turn(session.task, decide, what=what)

    def may_take_on(self, id: TaskId) -> bool:
        """Whether to have the task on this host: no other has it and made all that it needs."""
        task = self.store.find(id)
        pending = (it.effect for it in self.store.pending_effects(id, EFFECTS))
        return task is None or may_take_on(task, self.name, pending)

    def host_lost(self, job: HostLost) -> float:
        """Its sessions count as interrupted, which no counter counts; it goes on elsewhere.

        A host that gives it away keeps what was done first: where that fails, nothing moves yet.
        """
        task = self.store.find(job.task)
        if task is None:
            return 0.0
        if job.moves and task.host == job.host == self.name:
            self._push(task, self.store.sessions(job.task))
        self._gone(job)
        exit = Exit(ending=Ending.INTERRUPTED, why=f"host {job.host} is lost")
        for session in self.store.sessions(job.task):
            if session.ended is None and session.host in {"", job.host}:
                with suppress(TurnDeclined):  # somebody else has recorded it
                    self.attendance.session_ended(session.id, End(exit))
        self._gone(job)
        return 0.0

    def _gone(self, job: HostLost) -> None:
        with suppress(TurnDeclined):  # it is on another host by now, or nothing of it is lost
            self.attendance.coordinator.turn(
                job.task, lambda seen: host_gone(seen, job.host), what=f"task {job.task} stays"
            )
