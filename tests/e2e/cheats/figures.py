"""The whole corpus judged in real sandboxes: refused, asked and passed by class, as a table.

    python -m tests.e2e.cheats.figures FILE [WORD …]

Only classes whose name has one of the words, if words are given. FILE grows as cases end, so that a
run that is ended early leaves what it saw.
"""

import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from lockgate.core.model.results import Broken, Failed, Passed, SingleGateResult, Waiting
from tests.e2e.cheats.by_name import BY_NAME, MARKED, RECOGNISED
from tests.e2e.cheats.cheats import NODE_CASES, PLAYED, REAL, RESIDUE
from tests.e2e.cheats.honest import HONEST, QUESTIONS
from tests.e2e.cheats.outside import OUTSIDE, OUTSIDE_HONEST, OUTSIDE_TEXTS
from tests.e2e.cheats.refactored import ASKED_ONCE, REFACTORED
from tests.e2e.cheats.runners import RUNNERS, cases_of
from tests.e2e.cheats.stage import RESULTS, Case, Theatre, words_of
from tests.e2e.cheats.structural import STRUCTURAL
from tests.e2e.cheats.weakened import GO_WEAKENED, JEST_WEAKENED, NODE_WEAKENED, UNNOTICED, WEAKENED
from tests.e2e.cheats.wrapped import WRAPPED, WRAPPED_HONEST

Classes = dict[str, tuple[Case, ...]]

CHEATS: Classes = {
    "cheat: pytest": REAL,
    "cheat: node": NODE_CASES,
    "cheat: structural": STRUCTURAL,
    "cheat: weaken now, break later (pytest, unittest)": WEAKENED,
    "cheat: weaken now, break later (node)": NODE_WEAKENED,
    "cheat: weaken now, known to pass": UNNOTICED,
    "cheat: unittest and make": WRAPPED,
    "cheat: outside [tests] paths": (*OUTSIDE, *OUTSIDE_TEXTS),
    "cheat: by name, marks, looks": (*BY_NAME, *MARKED, *RECOGNISED),
    "cheat: residue, known to pass": RESIDUE,
}
HONEST_CLASSES: Classes = {
    "honest: no expectation changed": (*HONEST, *WRAPPED_HONEST, *OUTSIDE_HONEST, *REFACTORED),
    "honest: an expectation changed": (*QUESTIONS, *ASKED_ONCE),
}
VERDICTS: dict[type[SingleGateResult], str] = {
    Failed: "refused",
    Waiting: "asked",
    Passed: "passed",
    Broken: "broken",
}
TEXT = 200  # characters of what is said of a case


def main() -> int:
    file, words = Path(sys.argv[1]), sys.argv[2:]
    classes = {**CHEATS, **_with_runners(), **HONEST_CLASSES}
    chosen = {it: own for it, own in classes.items() if _wanted(it, words)}
    with tempfile.TemporaryDirectory() as place, file.open("w", encoding="utf-8") as told:
        theatre = Theatre(Path(place))
        for name, cases in chosen.items():
            for line in _judged(theatre, name, cases):
                told.write(f"{line}\n")
                told.flush()
    return 0


def _wanted(name: str, words: Iterable[str]) -> bool:
    return not words or any(it in name for it in words)


def _with_runners() -> Classes:
    """What is played in the suite, with the runner itself where it is on PATH."""
    cheats = (*PLAYED, *JEST_WEAKENED, *GO_WEAKENED)
    honest = tuple(it for it in (*HONEST, *REFACTORED) if it.played)
    found: Classes = {}
    for program, made in RUNNERS.items():
        if shutil.which(program):
            found[f"cheat: {program}"] = tuple(map(made, cases_of(program, cheats)))
            found[f"honest: {program}"] = tuple(map(made, cases_of(program, honest)))
    return found


def _judged(theatre: Theatre, name: str, cases: Iterable[Case]) -> Iterator[str]:
    """One line for each case that is not judged as expected, then the row of the class."""
    counted: Counter[str] = Counter()
    began = time.monotonic()
    for case in cases:
        if case.played and "jest" not in name and "vitest" not in name and "go" not in name:
            continue
        result = theatre.result_of(case)
        verdict = VERDICTS[type(result)]
        counted[verdict] += 1
        if not isinstance(result, RESULTS[case.expect]):
            said = " ".join(words_of(result).split())[:TEXT]
            yield f"- {name} / {case.name}: {verdict}. {said}"
    took = time.monotonic() - began
    row = " | ".join(str(counted[it]) for it in VERDICTS.values())
    yield f"| {name} | {counted.total()} | {row} | {took:.0f} s |"


if __name__ == "__main__":
    sys.exit(main())
