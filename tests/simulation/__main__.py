"""`make simulate`: many seeds, or one with its trace."""

import argparse
import json
import os
import sys
import time

from tests.simulation.plants import PLANTS
from tests.simulation.world import Outcome, simulate


def main() -> int:
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets in their order, the same in every run
        again = (sys.executable, "-m", "tests.simulation", *sys.argv[1:])
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606
    asked = _asked()
    if asked.seed is not None:
        outcome = simulate(asked.seed, asked.plant, keep=0)
        print("\n".join(outcome.trace))
        print(_line(outcome))
        return 1 if outcome.wrong else 0
    began, seeds, points, bad = time.monotonic(), 0, 0, 0
    for seed in range(asked.first, asked.first + asked.seeds):
        if asked.seconds and time.monotonic() - began > asked.seconds:
            break
        seeds += 1
        outcome = simulate(seed, asked.plant)
        points += outcome.points
        bad += bool(outcome.wrong)
        if asked.json or outcome.wrong:
            print(_json(outcome) if asked.json else _line(outcome), flush=True)
        if outcome.wrong and asked.stop:
            break
    if not asked.json:
        seconds = time.monotonic() - began
        told = f"{seeds} seeds from {asked.first}, {points} events, {bad} with a violation"
        print(f"{told}, {seconds:.0f} s")
    return 1 if bad else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.simulation")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--plant", default="", choices=["", *PLANTS])
    parser.add_argument("--stop", action="store_true", help="at the first violation")
    parser.add_argument("--seconds", type=float, default=0.0, help="no seed begins after so many")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _line(it: Outcome) -> str:
    ended = ", ".join(f"{n} {status}" for status, n in it.statuses.items())
    told = "; ".join(it.wrong) or "all holds"
    return f"seed {it.seed}: {it.points} events, {ended}; {told} [{it.digest}]"


def _json(it: Outcome) -> str:
    facts = {"seed": it.seed, "points": it.points, "digest": it.digest, "wrong": list(it.wrong)}
    return json.dumps({**facts, "statuses": dict(it.statuses), "faults": dict(it.faults)})


if __name__ == "__main__":
    sys.exit(main())
