"""What the differential gate costs beside its test suite, with changed tests and without."""

from pathlib import Path

from msgspec.structs import replace

from bench.harness import AtMost, Measure, Work, clocked, interleave, main, say
from lockgate.adapters.sandbox import trouble
from lockgate.core.model.results import Passed, Waiting
from tests.e2e.cheats.repository import BASE, CODE, TESTS
from tests.e2e.cheats.stage import Case, Theatre

ROUNDS = 5
SLEEP = 2  # seconds of the suite, in one of its tests
STRENGTH = 5  # seconds, as in the corpus of cheats
SLOW = f"import time\n\n\ndef test_slow():\n    time.sleep({SLEEP})\n"
SUITE, CODE_ONLY = "the test suite", "differential gate, only code changed"
WEAKER, UNMEASURED = "differential gate, a test changed", "the same without planted faults"
ALLOWED = f"3 x the suite + {STRENGTH} s"


def bench(where: Path) -> list[Measure]:
    say("\ndifferential")
    if trouble():
        return []
    theatre = Theatre(where)
    base = {**BASE, "tests/test_slow.py": SLOW}
    code = Case(name="code", base=base, change={"app/calc.py": f"{CODE}\n\nNEW = 1\n"})
    weaker = {"tests/test_calc.py": TESTS.replace("add(1, 2) == 3", "add(1, 2) > 2")}
    tests = Case(name="tests", base=base, change=weaker)
    found = interleave(
        {
            SUITE: clocked(lambda: theatre.plain_exit(code)),
            CODE_ONLY: _judging(theatre, code),
            UNMEASURED: _judging(replace(theatre, strength=0), code),
            WEAKER: _judging(theatre, tests),
        },
        ROUNDS,
    )
    suite, allowed = found[SUITE], 3 * found[SUITE] + STRENGTH
    return [
        Measure(name=CODE_ONLY, ours=found[CODE_ONLY], peer=SUITE, theirs=suite, target=AtMost(3)),
        Measure(
            name=CODE_ONLY,
            ours=found[CODE_ONLY],
            peer=UNMEASURED,
            theirs=found[UNMEASURED],
            target=AtMost(1.1),
        ),
        Measure(name=WEAKER, ours=found[WEAKER], peer=ALLOWED, theirs=allowed, target=AtMost(1)),
    ]


def _judging(theatre: Theatre, case: Case) -> Work:
    """Base is measured in the round that warms up, as it is once a day for users."""

    def judge() -> None:
        result = theatre.result_of(case)
        if not isinstance(result, Passed | Waiting):
            raise TypeError(f"the gate said otherwise: {result}")

    return clocked(judge)


if __name__ == "__main__":
    main(bench)
