"""People: the names that they may have, and what each right includes."""

from itertools import product

import pytest

from lockgate.core.model.people import Right, allows, good_name


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("ann", True),
        ("ann.b_c-d@example.org", True),
        ("7", True),
        ("", False),
        ("-ann", False),
        ("ann b", False),
        ("ann\n", False),
        ("ann" * 22, False),
        ("\u0430nn", False),  # begins with a Cyrillic letter that looks Latin
    ],
)
def test_a_name_cannot_be_taken_for_another_one(name, good) -> None:
    assert good_name(name) is good


def test_each_right_has_all_that_stand_before_it() -> None:
    order = [Right.LOOK, Right.WORK, Right.LAND, Right.ADMIN]

    for has, wanted in product(order, order):
        assert allows(has, wanted) is (order.index(has) >= order.index(wanted))
