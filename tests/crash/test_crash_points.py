"""The real programs are killed where they touch the world; the home ends as without a kill."""

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.crash.__main__ import STORIES
from tests.crash.stories import Point, Result, run

KILLS = 40
IN_ONE = 26  # kills of one home, one after the other
AT_ONCE = 2
ROUNDS = 3  # at most


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return run(tmp_path_factory.mktemp("undisturbed") / "home")


def test_every_story_touches_the_world(undisturbed) -> None:
    assert undisturbed.wrong == ()
    assert {story for story, _, _ in undisturbed.points} >= set(STORIES)


def test_killed_forty_times_at_points_of_all_stories_homes_end_the_same(
    undisturbed, tmp_path
) -> None:
    chance = random.Random(40)  # noqa: S311 - a seed is to be repeated
    found = [it for it in dict.fromkeys(undisturbed.points) if it[0] in STORIES]
    killed: list[Point] = []

    def home(numbered: tuple[int, Sequence[Point]]) -> Result:
        number, kills = numbered
        return run(Path(tmp_path, f"home-{number}"), kills, undisturbed.end)

    for _ in range(ROUNDS):
        asked = min(IN_ONE, KILLS - len(killed))  # of which a home may miss some
        plans = [chance.sample(found, asked) for _ in range(AT_ONCE)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for result in pool.map(home, enumerate(plans)):
                assert result.wrong == (), f"after kills at {result.killed}\n{result.story}"
                killed += result.killed
        if len(killed) >= KILLS:
            break

    assert len(killed) >= KILLS
