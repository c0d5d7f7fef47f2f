"""What an orchestrator makes of a landing that is not settled."""

import pytest

from lockgate.core.train.model import LOST_AFTER, PUSH_WITHIN, Fate, Term, fate

TERM = Term(epoch=5, since=1000.0, lost_after=60.0)
# The landing's epoch, whether the target has it, whether earlier pushes are shut out, when.
FATES = {
    (5, True, False, 1000.0): Fate.LANDED,
    (5, False, False, 1000.0): Fate.LOST,
    (4, True, False, 1000.0): Fate.LANDED,
    (4, False, False, 1000.0): Fate.UNKNOWN,
    (4, False, False, 1059.9): Fate.UNKNOWN,
    (4, False, False, 1060.0): Fate.LOST,
    (4, False, True, 1000.0): Fate.LOST,
    (4, True, True, 1000.0): Fate.LANDED,
    (0, False, False, 1000.0): Fate.UNKNOWN,
    (6, True, True, 2000.0): Fate.NOT_OURS,
    (6, False, False, 2000.0): Fate.NOT_OURS,
}


@pytest.mark.parametrize(("epoch", "there", "shut_out", "now"), FATES)
def test_what_became_of_a_landing(epoch, there, shut_out, now) -> None:
    found = fate(epoch, TERM, there=there, shut_out=shut_out, now=now)

    assert found is FATES[epoch, there, shut_out, now]


def test_a_push_is_ended_before_it_is_taken_as_lost() -> None:
    assert PUSH_WITHIN < LOST_AFTER
    assert Term(1, 10.0).alone_from > 10.0 + PUSH_WITHIN
