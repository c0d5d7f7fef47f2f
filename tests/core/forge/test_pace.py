"""How often a forge is looked at."""

import pytest
from msgspec.structs import replace

from lockgate.core.forge.pace import Budget, Intervals, spread, usual

EVERY = Intervals()
FULL = Budget(limit=5000, remaining=5000, left=3600.0)


@pytest.mark.parametrize(
    ("by_people", "waited", "hooked", "rest"),
    [
        (False, 0.0, False, 30.0),
        (True, 0.0, False, 120.0),
        (True, 0.0, True, 300.0),
        (False, 0.0, True, 300.0),
        (False, 8 * 86_400.0, True, 600.0),
    ],
)
def test_the_rest_goes_by_what_is_waited_for(by_people, waited, hooked, rest):
    assert usual(EVERY, by_people=by_people, waited=waited, hooked=hooked) == rest


@pytest.mark.parametrize(
    ("spent", "remaining", "rest"),
    [
        (0, 5000, 0.0),  # 304s are free
        (100, 5000, 180.0),  # half of the 4000 beyond the reserve: 20 such looks in an hour
        (100, 1200, 3600.0),
        (100, 1100, 3600.0),  # less than one look: nothing until the limit is full again
        (100, 0, 3600.0),
    ],
)
def test_half_of_what_remains_is_spread_up_to_the_reset(spent, remaining, rest):
    after = replace(FULL, remaining=remaining, paid=spent)

    assert spread(FULL, after) == rest
