"""How often a forge is looked at: by what is waited for, and by what its limit leaves."""

from msgspec import Struct

RESERVE = 0.2  # of a limit is kept for landing
SHARE = 0.5  # of what remains beyond it is ours: one login, many tools
HOOKED_FOR = 3600.0  # seconds after a webhook in which the next one is expected


class Intervals(Struct, frozen=True, kw_only=True):
    """Seconds between two looks: for machines, for people, for those that wait for long.

    `hooked` is where webhooks arrive; no hint brings a look sooner than `least` after the last one.
    """

    machines: float = 30.0
    people: float = 120.0
    long: float = 600.0
    hooked: float = 300.0
    least: float = 10.0
    week: float = 7 * 86_400.0


class Budget(Struct, frozen=True, kw_only=True):
    """What a forge's limit leaves; `left` are the seconds until it is full, by its own clock."""

    limit: int = 5000
    remaining: int = 5000
    left: float = 3600.0
    paid: int = 0  # requests of ours that it counted, since the start


def usual(every: Intervals, *, by_people: bool, waited: float, hooked: bool) -> float:
    """The rest after a look at one pull request."""
    if waited > every.week:
        return every.long
    if hooked:
        return every.hooked
    return every.people if by_people else every.machines


def spread(before: Budget, after: Budget) -> float:
    """The least rest with which looks as dear as this one take their share until the reset."""
    spent = after.paid - before.paid
    share = (after.remaining - after.limit * RESERVE) * SHARE
    if spent <= 0:
        return 0.0
    return after.left if share < spent else after.left * spent / share
