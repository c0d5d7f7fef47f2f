"""When what the loop fails to do needs a human."""

from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.lifecycle.advice import Trouble, failed, is_news
from tests.given import ID, a_task


@given(st.lists(st.sampled_from(["full disk 17", "full disk 23", "no git"]), min_size=1))
def test_a_human_is_needed_where_the_last_three_failures_were_of_one_kind(whys) -> None:
    trouble: Trouble | None = None
    for why in whys:
        trouble = failed(trouble, why, ID)

    kinds = [why.partition(" ")[0] for why in whys[-3:]]
    assert trouble is not None
    assert trouble.needs_human == (len(kinds) == 3 and len(set(kinds)) == 1)
    assert (trouble.why, trouble.task) == (whys[-1], ID)


def test_a_task_is_told_once_of_the_same_trouble() -> None:
    trouble = Trouble(why="full disk 17", times=3)

    assert is_news(a_task(), trouble)
    assert is_news(a_task(troubled="no git"), trouble)
    assert not is_news(a_task(troubled="full disk 23"), trouble)
    assert not is_news(a_task(), Trouble(why="full disk 17", times=2))
