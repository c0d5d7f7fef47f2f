"""Kills at every point, at random pairs, or at a sample of them; prints what was found.

`python -m tests.crash --all`, `--pairs N`, `--sample N`: each with `--jobs N` homes at once.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.crash.stories import End, Point, Result, quick_place, run

STORIES = (
    *("create", "start", "signal", "evaluate", "exit", "human answer", "land"),
    *("cancel", "pause", "resume"),
)


def main() -> int:
    asked = _asked()
    chance = random.Random(asked.seed)  # noqa: S311 - a seed is to be repeated
    with tempfile.TemporaryDirectory(dir=quick_place(), ignore_cleanup_errors=True) as folder:
        base = run(Path(folder) / "base")
        if base.wrong:
            print("\n".join(base.wrong), base.story, sep="\n")
            return 1
        found = [it for it in dict.fromkeys(base.points) if it[0] in STORIES]
        print(_table("points found", found), flush=True)
        plans = _plans(asked, found, chance)
        began = time.monotonic()
        results = _all(Path(folder), plans, base.end, asked.jobs)
        killed = [it for result in results for it in result.killed]
        print(_table("killed", killed))
        bad = [it for it in results if it.wrong]
        seconds = time.monotonic() - began
        told = f"{len(results)} homes, {len(killed)} kills, {len(bad)} with a violation"
        print(f"{told}, {seconds:.0f} s")
    return 1 if bad else 0


def _plans(
    asked: argparse.Namespace, found: Sequence[Point], chance: random.Random
) -> list[list[Point]]:
    if asked.points:
        return [[it] for it in found if asked.points in f"{it[0]}: {it[1]}"]
    if asked.all:
        return [[it] for it in found]
    if asked.pairs:
        return [chance.sample(found, 2) for _ in range(asked.pairs)]
    return [[it] for it in chance.sample(found, min(asked.sample, len(found)))]


def _all(folder: Path, plans: Sequence[list[Point]], expected: End, jobs: int) -> list[Result]:
    def one(numbered: tuple[int, list[Point]]) -> Result:
        number, plan = numbered
        try:
            result = run(folder / f"home-{number}", plan, expected)
        except AssertionError as error:
            result = Result((), (), expected, (str(error),), "")
        for why in result.wrong:
            print(f"VIOLATION after kills at {plan}: {why}\n{result.story}", flush=True)
        return result

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, enumerate(plans)))


def _table(title: str, points: Sequence[Point]) -> str:
    counts = Counter(story for story, _, _ in points)
    told = ", ".join(f"{story} {counts[story]}" for story in STORIES if counts[story])
    return f"{title}: {len(points)} ({told})"


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.crash")
    parser.add_argument("--all", action="store_true", help="every single point")
    parser.add_argument("--pairs", type=int, default=0, help="so many random pairs")
    parser.add_argument("--sample", type=int, default=40, help="so many random points")
    parser.add_argument("--points", default="", help="those with this in their name")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
