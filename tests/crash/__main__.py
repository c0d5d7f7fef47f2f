"""Kills at every point, at random pairs, or at a sample of them; prints what was found.

`python -m tests.crash --all`, `--pairs N`, `--sample N`: with `--together N` several of them in one
home, one after the other, with `--jobs N` homes at once. `--kept FILE --seconds N` does a part:
the file holds what was found and killed, and the next part goes on from there.
"""

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from tests.crash.stories import End, Point, Result, quick_place, run

STORIES = (
    *("create", "start", "signal", "evaluate", "exit", "human answer", "land"),
    *("cancel", "pause", "resume"),
)
OURS, CHILDREN = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
TRIES = 4  # times that a point is asked for which a run may miss


@dataclass
class Kept:
    """What is known of all parts of a long run."""

    found: dict[Point, int] = field(default_factory=dict[Point, int])  # how often asked for
    killed: list[Point] = field(default_factory=list[Point])
    homes: int = 0
    bad: int = 0

    def left(self) -> list[Point]:
        done = set(self.killed)
        return [it for it, tries in self.found.items() if it not in done and tries < TRIES]

    def note(self, plan: Sequence[Point], result: Result) -> None:
        self.homes += 1
        self.bad += bool(result.wrong)
        self.killed += [it for it in result.killed if it[0] in STORIES]
        for point in plan:
            self.found[point] = self.found.get(point, 0) + 1


def main() -> int:
    asked = _asked()
    chance = random.Random(asked.seed)  # noqa: S311 - a seed is to be repeated
    kept, began = _read(asked.kept), time.monotonic()
    with tempfile.TemporaryDirectory(dir=quick_place(), ignore_cleanup_errors=True) as folder:
        base = run(Path(folder) / "base")
        if base.wrong:
            print("\n".join(base.wrong), base.story, sep="\n")
            return 1
        for it in base.points:
            if it[0] in STORIES:
                kept.found.setdefault(it, 0)
        print(_table("points found", list(kept.found)), flush=True)
        last = time.monotonic() + asked.seconds if asked.seconds else float("inf")
        for together in (asked.together, *_fewer(asked)):
            plans = _plans(asked, kept, chance, together)
            _all(Path(folder), plans, base.end, asked.jobs, Part(kept, last, asked.kept))
    print(_table("killed", kept.killed))
    print(_table("different points killed", list(dict.fromkeys(kept.killed))))
    told = f"{kept.homes} homes, {len(kept.killed)} kills, {kept.bad} with a violation"
    cpu = sum(sum(resource.getrusage(it)[:2]) for it in (OURS, CHILDREN))
    print(f"{told}; this part: {time.monotonic() - began:.0f} s, {cpu:.0f} s of CPU")
    return 1 if kept.bad else 0


def _fewer(asked: argparse.Namespace) -> list[int]:
    """What was missed in a home with many kills is asked for again, in homes with fewer."""
    return [max(1, asked.together // 2), max(1, asked.together // 4), 1] if asked.all else []


def _plans(
    asked: argparse.Namespace, kept: Kept, chance: random.Random, together: int
) -> list[list[Point]]:
    found = list(kept.found)
    if asked.points:
        wanted = [it for it in found if asked.points in f"{it[0]}: {it[1]}"]
    elif asked.all:
        wanted = kept.left()
        chance.shuffle(wanted)
    elif asked.pairs:
        return [chance.sample(found, 2) for _ in range(asked.pairs)]
    else:
        wanted = chance.sample(found, min(asked.sample, len(found)))
    return [wanted[n : n + together] for n in range(0, len(wanted), together)]


@dataclass(frozen=True)
class Part:
    kept: Kept
    last: float  # no home begins later
    file: Path | None  # what is known is written there after each home
    turn: Lock = field(default_factory=Lock)  # of homes that end at the same moment


def _all(folder: Path, plans: Sequence[list[Point]], expected: End, jobs: int, part: Part) -> None:
    def one(numbered: tuple[int, list[Point]]) -> None:
        number, plan = numbered
        began = time.monotonic()
        if began > part.last:
            return
        try:
            result = run(folder / f"home-{number}", plan, expected)
        except AssertionError as error:
            result = Result((), (), expected, (str(error),), "")
        for why in result.wrong:
            print(f"VIOLATION after kills at {result.killed}: {why}\n{result.story}", flush=True)
        with part.turn:
            part.kept.note(plan, result)
            _write(part.file, part.kept)
        told = f"home {number}: {len(result.killed)} kills, {len(result.wrong)} wrong"
        print(f"{told}, {time.monotonic() - began:.0f} s", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, enumerate(plans)))


def _table(title: str, points: Sequence[Point]) -> str:
    counts = Counter(story for story, _, _ in points)
    told = ", ".join(f"{story} {counts[story]}" for story in STORIES if counts[story])
    return f"{title}: {len(points)} ({told})"


def _read(path: Path | None) -> Kept:
    if path is None or not path.exists():
        return Kept()
    known = json.loads(path.read_text())
    found = {(story, what, nth): tries for story, what, nth, tries in known["found"]}
    killed = [(story, what, nth) for story, what, nth in known["killed"]]
    return Kept(found, killed, known["homes"], known["bad"])


def _write(path: Path | None, kept: Kept) -> None:
    if path is not None:
        found = [[*point, tries] for point, tries in kept.found.items()]
        facts = {"found": found, "killed": kept.killed, "homes": kept.homes, "bad": kept.bad}
        path.write_text(json.dumps(facts))


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.crash")
    parser.add_argument("--all", action="store_true", help="every single point")
    parser.add_argument("--pairs", type=int, default=0, help="so many random pairs")
    parser.add_argument("--sample", type=int, default=40, help="so many random points")
    parser.add_argument("--together", type=int, default=1, help="so many of them in one home")
    parser.add_argument("--points", default="", help="those with this in their name")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kept", type=Path, help="a file that holds what is done so far")
    parser.add_argument("--seconds", type=float, default=0.0, help="no home begins after so many")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
