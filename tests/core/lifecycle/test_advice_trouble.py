"""When what the loop fails to do needs a human."""

from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.lifecycle.needs import Trouble, failed, is_news
from lockgate.core.model.limits import ANY_FAILURES, FIRST_WAIT, LONGEST_WAIT
from tests.given import ID, a_task


@given(st.lists(st.sampled_from(["full disk 17", "full disk 23", "no git"]), min_size=1))
def test_a_human_is_needed_after_three_failures_of_one_kind_or_many_in_a_row(whys) -> None:
    trouble: Trouble | None = None
    for why in whys:
        trouble = failed(trouble, why, ID)

    kinds = [why.partition(" ")[0] for why in whys[-3:]]
    assert trouble is not None
    same = len(kinds) == 3 and len(set(kinds)) == 1
    assert trouble.needs_human == (same or len(whys) >= ANY_FAILURES)
    assert (trouble.why, trouble.task) == (whys[-1], ID)


def test_each_wait_is_twice_as_long_as_the_one_before_up_to_a_limit() -> None:
    waits = list[float]()
    trouble: Trouble | None = None
    for _ in range(40):
        trouble = failed(trouble, "full disk")
        waits.append(trouble.again_after)

    assert waits[:4] == [FIRST_WAIT, 2 * FIRST_WAIT, 4 * FIRST_WAIT, 8 * FIRST_WAIT]
    assert max(waits) == waits[-1] == LONGEST_WAIT


def test_a_task_is_told_once_of_the_same_trouble() -> None:
    trouble = Trouble(why="full disk 17", times=3)

    assert is_news(a_task(), trouble)
    assert is_news(a_task(troubled="no git"), trouble)
    assert not is_news(a_task(troubled="full disk 23"), trouble)
    assert not is_news(a_task(), Trouble(why="full disk 17", times=2))
