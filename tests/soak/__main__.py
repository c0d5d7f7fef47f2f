"""`make home-soak`: a whole home with faults; prints what happened in it and what is wrong."""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.soak.checks import problems
from tests.soak.town import Town


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.soak")
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--projects", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600.0, help="of faults, at most")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        wrong, told = soaked(Path(folder), asked.tasks, asked.projects, asked.seed, asked.seconds)
    print("\n".join([*(f"WRONG: {it}" for it in wrong), told]))
    return 1 if wrong else 0


def soaked(
    place: Path, tasks: int, projects: int, seed: int, seconds: float
) -> tuple[list[str], str]:
    """What is wrong at the end, and what happened in a line."""
    began = time.monotonic()
    town = Town(place / "town", tasks, projects, seed)
    try:
        town.lives(seconds)
        wrong = problems(town)
        ended = Counter(str(it.status) for it in town.all_tasks())
        faults = ", ".join(f"{name} {n}" for name, n in sorted(town.faults.items()))
        head = town.app.store.head()
        told = f"{tasks} tasks in {projects} projects, seed {seed}: {dict(ended)}, {head} events"
        disk = "" if town.mounted else "; no disk of its own: it was never full"
        took = time.monotonic() - began
        return wrong, f"{told}; {faults}{disk}; {len(wrong)} wrong; {took:.0f} s"
    finally:
        town.close()


if __name__ == "__main__":
    sys.exit(main())
