"""`[budget] day_usd`: once a project's agents have cost that much on a day, none is started."""

from datetime import tzinfo

from msgspec import Struct

from lockgate.core.lifecycle.needs import NeedKind, Trouble
from lockgate.core.notices.hours import day_began, next_day
from lockgate.errors import LockgateError
from lockgate.ports import Clock, Configuration, Project
from lockgate.ports.notify import NoticeLog

LOOK_AGAIN = 60.0  # seconds after which a limit that was raised is noticed


class Spent(Struct, frozen=True):
    """What a project's agents have cost today, of how much they may; 0 is no limit."""

    usd: float
    limit: float

    @property
    def used_up(self) -> bool:
        return 0 < self.limit <= self.usd


class DayBudget(Struct, frozen=True, kw_only=True):
    """`troubles` are those of the loop: there a human is told of what is used up."""

    log: NoticeLog
    configuration: Configuration
    clock: Clock
    zone: tzinfo
    troubles: dict[str, Trouble]

    def spent(self, project: Project) -> Spent:
        """By what ended since midnight; a session that runs is counted when it ends."""
        try:
            limit = self.configuration.settings_of(project).budget.day_usd
        except LockgateError:
            return Spent(0.0, 0.0)
        if not limit:
            return Spent(0.0, 0.0)
        return Spent(self.log.spent(project.id, day_began(self.clock.now(), self.zone)), limit)

    def wait_until(self, project: Project) -> float:
        """When to look again before an agent is started; 0 where it may be."""
        found, now = self.spent(project), self.clock.now()
        self._tell(project, found, now)
        return min(next_day(now, self.zone), now + LOOK_AGAIN) if found.used_up else 0.0

    def lane(self, project: Project) -> str:
        """By which the loop's troubles know it."""
        return f"budget of {project.name}"

    def _tell(self, project: Project, found: Spent, now: float) -> None:
        lane = self.lane(project)
        if not found.used_up:
            self.troubles.pop(lane, None)
            return
        since = self.troubles[lane].since if lane in self.troubles else now
        why = f"{found.usd:.2f} of {found.limit:.2f} USD are used today; no agent starts"
        self.troubles[lane] = Trouble(
            why=why, kind=NeedKind.BUDGET, project=project.id, since=since
        )
