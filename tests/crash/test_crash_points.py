"""The real programs are killed where they touch the world; the home ends as without a kill."""

import random

import pytest

from tests.crash.__main__ import STORIES
from tests.crash.stories import Point, Result, run

KILLS = 40
AT_ONCE = 14  # in one home, one after the other
HOMES = 8  # at most: a point may be missing in a run


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return run(tmp_path_factory.mktemp("undisturbed") / "home")


def test_every_story_touches_the_world(undisturbed) -> None:
    assert undisturbed.wrong == ()
    assert {story for story, _, _ in undisturbed.points} >= set(STORIES)


@pytest.mark.slow
def test_killed_forty_times_at_points_of_all_stories_homes_end_the_same(
    undisturbed, tmp_path
) -> None:
    chance = random.Random(40)  # noqa: S311 - a seed is to be repeated
    found = [it for it in dict.fromkeys(undisturbed.points) if it[0] in STORIES]
    killed: list[Point] = []
    for number in range(HOMES):
        sample = chance.sample(found, AT_ONCE)
        result = run(tmp_path / f"home-{number}", sample, undisturbed.end)
        assert result.wrong == (), f"after kills at {result.killed}\n{result.story}"
        killed += result.killed
        if len(killed) >= KILLS:
            break

    assert len(killed) >= KILLS
