"""Notices that a session is over, reads what it left, and has the wheel decide what that means."""

from collections.abc import Iterable

from msgspec import Struct

from lockgate.core.model.agents import End, Ending, Exit, Report, Usage
from lockgate.core.model.task import Session, SessionId
from lockgate.errors import LockgateError, TurnDeclined
from lockgate.ports import Configuration, Harnesses, Sessions, Store
from lockgate.services.task.sessions import Attendance


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
        end = End(exit, report, self._spent(session, report), self._resumable(session, report))
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
