"""Tells people of what needs them: looks what there is, plans, writes it down, sends.

It runs beside the loop, in a thread of its own: whatever a notifier does, no task waits for it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import tzinfo
from threading import Event

from msgspec import Struct, field

from lockgate.core.config.settings import Settings
from lockgate.core.lifecycle.needs import Need, NeedKind, Trouble
from lockgate.core.model.limits import SAME_FAILURES
from lockgate.core.model.task import ProjectId
from lockgate.core.notices import text as words
from lockgate.core.notices.hours import day_of, hours_of, last_time, next_time, seconds_of
from lockgate.core.notices.plan import (
    NEVER,
    Call,
    Entry,
    Rules,
    Seen,
    Send,
    Target,
    delivered,
    not_delivered,
    plan,
)
from lockgate.errors import LockgateError
from lockgate.ports import Clock, Configuration, Project, Store
from lockgate.ports.notify import Address, Addresses, Letter, NoticeLog, Notifier
from lockgate.services.agents.day_budget import DayBudget
from lockgate.services.task.boards import Boards
from lockgate.services.task.rows import BoardRow

AT_ONCE = 4  # targets that are told at the same time
PAUSE = 1.0  # seconds between two looks, however much happens
LOOK_AGAIN = 60.0
KNOWN_FOR = 60.0  # seconds that a project's rules are believed
LATE = 6 * 3600.0  # a digest that is older than this is not sent any more
FROM_ENV = "env:"
NOTHING_SEEN: Mapping[str, float] = {}


class Notices(Struct, kw_only=True):
    store: Store
    boards: Boards
    log: NoticeLog
    addresses: Addresses
    notifier: Notifier
    configuration: Configuration
    budget: DayBudget
    clock: Clock
    zone: tzinfo
    link: Callable[[str], str]  # where the board shows a path; empty where none is served
    report: Callable[[str], None]
    troubles: dict[str, Trouble]
    day: Callable[[ProjectId, float], words.Day]  # what came of a project since then
    woken: Event = field(default_factory=Event)
    stopping: Event = field(default_factory=Event)
    _known: dict[ProjectId, tuple[float, Settings | None]] = field(
        default_factory=dict[ProjectId, tuple[float, Settings | None]]
    )
    _failed: str = ""

    def run(self) -> None:
        """Until it is stopped; what fails is told once and tried again."""
        while not self.stopping.is_set():
            try:
                again, self._failed = self.turn(), ""
            except LockgateError as error:
                again = self._trouble(f"{error} ({error.fix})")
            except Exception as error:  # noqa: BLE001 - our bug must not end all notifications
                again = self._trouble(f"a bug in Lockgate: {error!r}")
            left = again - self.clock.now()
            self.woken.wait(max(PAUSE, min(left, LOOK_AGAIN)))
            self.woken.clear()
            self.stopping.wait(PAUSE)

    def stop(self) -> None:
        self.stopping.set()
        self.woken.set()

    def turn(self) -> float:
        """Tell what is to be told now; the answer is when to look again."""
        now = self.clock.now()
        projects = {it.id: it for it in self.store.projects()}
        for it in projects.values():
            if self._limited(it) or self.budget.lane(it) in self.troubles:
                self.budget.wait_until(it)
        addresses = {it.name: it for it in self._addresses(projects.values())}
        if not addresses:
            return now + LOOK_AGAIN
        made = plan(
            Seen(
                calls=tuple(self._calls(projects, addresses.values(), now)),
                ledger=self.log.entries(),
                targets=tuple(self._target(it, projects, now) for it in addresses.values()),
                rules={id: self._rules(it) for id, it in projects.items()} | {"": ALWAYS},
                now=now,
                zone=self.zone,
            )
        )
        self.log.write(made.put, made.drop)
        self._send_all(made.send, addresses)
        return min(now if made.send else made.again, self._next_digest(projects.values(), now))

    def _send_all(self, sends: Iterable[Send], addresses: Mapping[str, Address]) -> None:
        waiting = [it for it in sends if it.target in addresses]
        if not waiting:
            return
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self._send, waiting, (addresses[it.target] for it in waiting)))

    def _send(self, send: Send, address: Address) -> None:
        entry, lane = send.entries[0], f"notify {address.name}"
        letter = Letter(
            id=words.message_id(entry),
            message=words.message_of(send.calls),
            facts=words.facts_of(send.calls[0], entry),
        )
        why, now = self.notifier.send(address, letter), self.clock.now()
        ended: list[Entry] = [
            not_delivered(it, now) if why else delivered(it, now) for it in send.entries
        ]
        self.log.write(ended)
        if not why:
            self.troubles.pop(lane, None)
            return
        self.report(f"{lane}: nothing was delivered: {why}")
        if any(it.failed for it in ended):
            told = f"nothing was delivered: {why}; run: lockgate notify test {address.name}"
            self.troubles[lane] = Trouble(why=told, times=SAME_FAILURES, since=now)

    def _addresses(self, projects: Iterable[Project]) -> Iterator[Address]:
        """Those of the home, and those of variables that projects name."""
        yield from self.addresses.all()
        for project in projects:
            for url in self._urls(project):
                value = self.addresses.variable(url.removeprefix(FROM_ENV))
                if value:
                    name = f"{project.name} {url}"
                    yield Address(name=name, url=value, projects=(project.name,))

    def _urls(self, project: Project) -> tuple[str, ...]:
        """None where nobody agreed to them."""
        settings = self._settings(project)
        if settings is None or not settings.notify.urls:
            return ()
        try:
            return self.configuration.allowed_of(project).notify.urls
        except LockgateError:
            return ()

    def _target(
        self, address: Address, projects: Mapping[ProjectId, Project], now: float
    ) -> Target:
        named = {it.id for it in projects.values() if {it.id, it.name} & set(address.projects)}
        seen = self.store.seen(address.person) if address.person else NOTHING_SEEN
        return Target(
            name=address.name,
            kinds=frozenset(address.kinds),
            projects=frozenset(named) if address.projects else frozenset(),
            each=address.is_webhook,
            without=frozenset(key for key, until in seen.items() if until == 0 or now < until),
        )

    def _calls(
        self,
        projects: Mapping[ProjectId, Project],
        addresses: Iterable[Address],
        now: float,
    ) -> Iterator[Call]:
        muted = self.addresses.muted()
        needs = [it for it in self.boards.inbox().needs if it.task not in muted]
        for need in needs:
            yield self._call(need, projects.get(need.project), now)
        for project in projects.values():
            yield from self._thresholds(project, now)
        yield from self._digests(projects.values(), needs, min(a.added for a in addresses), now)

    def _call(self, need: Need, project: Project | None, now: float) -> Call:
        row = self.boards.row(need.task) if need.task else None
        where = "/".join(filter(None, (project.name if project else "", need.task or "")))
        page = f"/t/{need.task}/review" if need.patch else f"/t/{need.task}" if need.task else "/"
        return Call(
            key=need.key,
            kind=need.kind,
            project=need.project,
            task=need.task or "",
            title=f"{where or 'Lockgate'}: {need.kind.replace('-', ' ')}",
            text="\n".join(filter(None, (need.ask, _measures(row, now - need.since)))),
            link=self.link(page),
            time=need.since,
            facts=need.facts(),
        )

    def _thresholds(self, project: Project, now: float) -> Iterator[Call]:
        """The highest share of the day's budget that is reached; all of it is a need."""
        settings = self._settings(project)
        if settings is None or not self._limited(project):
            return
        found = self.budget.spent(project)
        if not found.limit or found.used_up:
            return
        reached = [it for it in settings.notify.budget if it * found.limit <= found.usd]
        if reached:
            share, day = max(reached), day_of(now, self.zone)
            told = words.threshold(project.name, share, found.usd, found.limit)
            yield Call(
                key=f"budget:{project.id}:{day}:{share}",
                kind=NeedKind.BUDGET,
                project=project.id,
                title=told.title,
                text=told.body,
                link=self.link("/stats"),
                time=now,
                lasts=False,
            )

    def _digests(
        self, projects: Iterable[Project], needs: Iterable[Need], added: float, now: float
    ) -> Iterator[Call]:
        """One for all projects that have the same time for it."""
        times: dict[str, list[Project]] = {}
        for project in projects:
            settings = self._settings(project)
            if settings and settings.notify.digest:
                times.setdefault(settings.notify.digest, []).append(project)
        for clock, them in times.items():
            at = last_time(now, clock, self.zone)
            if now - at < LATE and added <= at:
                yield self._digest(clock, them, needs, at)

    def _digest(
        self, clock: str, projects: Iterable[Project], needs: Iterable[Need], at: float
    ) -> Call:
        days: list[words.Day] = []
        for project in projects:
            own = sorted((it for it in needs if it.project == project.id), key=lambda it: it.since)
            asks = tuple((f"{it.task or it.kind}: {it.ask}", at - it.since) for it in own)
            day = self.day(project.id, at - 86400.0)
            days.append(
                words.Day(
                    name=project.name,
                    landed=day.landed,
                    dropped=day.dropped,
                    usd=day.usd,
                    needs=asks,
                )
            )
        told = words.digest(days)
        return Call(
            key=f"digest:{day_of(at, self.zone)}:{clock}",
            kind=DIGEST,
            project="",
            title=told.title,
            text=told.body,
            link=self.link("/"),
            time=at,
            lasts=False,
        )

    def _next_digest(self, projects: Iterable[Project], now: float) -> float:
        settings = (self._settings(it) for it in projects)
        times = {it.notify.digest for it in settings if it and it.notify.digest}
        return min((next_time(now, it, self.zone) for it in times), default=NEVER)

    def _limited(self, project: Project) -> bool:
        """Whether its days have a budget; most have none, and git is not asked again."""
        settings = self._settings(project)
        return settings is not None and settings.budget.day_usd > 0

    def _rules(self, project: Project) -> Rules:
        settings = self._settings(project)
        if settings is None:
            return Rules()
        said = settings.notify
        return Rules(
            kinds=frozenset(said.kinds),
            urgent=frozenset(said.urgent),
            quiet=hours_of(said.quiet),
            remind=seconds_of(said.remind),
        )

    def _settings(self, project: Project) -> Settings | None:
        """None where its configuration cannot be read, which a task of it tells."""
        known = self._known.get(project.id)
        now = self.clock.now()
        if known is None or now - known[0] > KNOWN_FOR:
            try:
                found = self.configuration.settings_of(project)
            except LockgateError:
                found = None
            known = self._known[project.id] = (now, found)
        return known[1]

    def _trouble(self, why: str) -> float:
        if why != self._failed:
            self.report(f"notifications: {why}")
        self._failed = why
        return self.clock.now() + LOOK_AGAIN


DIGEST = "digest"
# A digest belongs to no project.
ALWAYS = Rules(kinds=frozenset({DIGEST}))


def _measures(row: BoardRow | None, waits: float) -> str:
    """Size, cost, and how long it waits."""
    parts = [f"waits {words.long(waits)}"]
    if row is not None:
        sized = {"files": row.size.files, "added": row.size.added, "removed": row.size.removed}
        cost = f"{row.usd:.2f} USD" if row.usd else ""
        parts = [words.size_text(sized), cost, *parts]
    return ", ".join(filter(None, parts))
