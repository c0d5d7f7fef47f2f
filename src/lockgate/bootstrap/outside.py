"""What reaches people who do not sit at this machine: notifications, the web board, figures."""

from functools import partial

from msgspec.structs import replace

from lockgate.adapters.notify import FileAddresses, ProcessNotifier
from lockgate.adapters.store.figures import SqlFigures
from lockgate.adapters.store.web_keys import SqlWebKeys
from lockgate.adapters.system import SystemChance
from lockgate.adapters.user_files import board_place, board_reached_at
from lockgate.bootstrap.app import App, users_of
from lockgate.core.model.people import Right
from lockgate.core.model.task import Actor, ProjectId
from lockgate.core.notices.text import Day
from lockgate.services.task.callers import Caller
from lockgate.services.task.measures import Measures
from lockgate.services.task.subscriptions import Subscriptions
from lockgate.services.task.web_logins import WebLogins


def for_person(it: App, name: str, how: str, *, read_only: bool = False) -> App:
    """The same for somebody whom another face has asked who they are.

    The owner of the home may do everything; who is not listed may look.
    """
    users = users_of(it.home)
    listed = {person.name: person.may for person in it.store.people()}
    owns = name == users.name(users.owner) and name not in listed
    may = Right.ADMIN if owns else listed.get(name, Right.LOOK)
    may = Right.LOOK if read_only else may
    caller = Caller(Actor.HUMAN, by=name, how=how, may=may, far=True)
    return replace(it, caller=caller)


def subscriptions_of(it: App) -> Subscriptions:
    """Who is told of what needs a human."""
    return Subscriptions(
        store=it.store,
        addresses=FileAddresses(it.home),
        notifier=ProcessNotifier(),
        clock=it.witness.clock,
    )


def web_logins_of(it: App) -> WebLogins:
    """Who is logged in at the web board."""
    return WebLogins(
        keys=SqlWebKeys(it.store.database),
        place=partial(board_place, it.home),
        reached_at=partial(board_reached_at, it.home),
        clock=it.witness.clock,
        chance=SystemChance(),
    )


def measures_of(it: App) -> Measures:
    """What the home comes to, as figures."""
    figures = SqlFigures(it.store.database)
    return Measures(
        store=it.store, figures=figures, statistics=it.statistics, clock=it.witness.clock
    )


def day_of(it: App, project: ProjectId, since: float) -> Day:
    """What a project came to since then."""
    figures = SqlFigures(it.store.database)
    landed, dropped = figures.ended(project, since)
    return Day(name="", landed=landed, dropped=dropped, usd=figures.spent_since(project, since))
