"""Cases of one test whose ids differ from run to run, though they are the same cases.

pytest numbers the values that have no text of their own: `test_a[one-pair0]`. Where the values
come out of a set, each run has another order, and so other numbers.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from lockgate.core.differential.runs import AnyRun, NotRun, Outcomes, Run, Runs, outcomes_of
from lockgate.core.differential.table import Place, Tests, placed
from lockgate.core.model.results import Outcome

_ARGUMENTS = re.compile(r"^(?:async )?def \((.*)\)$", re.MULTILINE)
_WORD = re.compile(r"\w+")
_NUMBERED = re.compile(r"\b([A-Za-z_]\w*?)\d+\b")


def with_steady_cases(runs: Runs, base: Tests, candidate: Tests) -> Runs:
    """Base's ids in every run; what is new has the same id in both runs that have it."""
    again = runs.base_again
    change = named_as_in(runs.base, runs.candidate, base, candidate)
    on_base = named_as_in(runs.base, runs.candidate_on_base, base, candidate)
    return replace(
        runs,
        base_again=named_as_in(runs.base, again, base, base) if again else None,
        base_on_candidate=named_as_in(runs.base, runs.base_on_candidate, base, base),
        candidate=change,
        candidate_on_base=named_as_in(change, on_base, candidate, candidate),
    )


def named_as_in(known: AnyRun, run: AnyRun, before: Tests, after: Tests) -> AnyRun:
    """The run with the ids of a known one, where only numbers of pytest's differ."""
    if isinstance(run, NotRun) or isinstance(known, NotRun):
        return run
    theirs, mine = outcomes_of(known), outcomes_of(run)
    gone, new = _only(theirs, mine), _only(mine, theirs)
    if not gone or not new:
        return run
    same = dict(_pairs(_by_words(gone, before), _by_words(new, after)))
    return _renamed(run, same)


def _renamed(run: Run, same: Mapping[str, str]) -> Run:
    return replace(run, tests=tuple(replace(it, id=same.get(it.id, it.id)) for it in run.tests))


def _only(mine: Outcomes, theirs: Outcomes) -> Outcomes:
    return {id: it for id, it in mine.items() if id.endswith("]") and id not in theirs}


def _by_words(outcomes: Outcomes, tests: Tests) -> dict[str, list[str]]:
    """Ids by what they say without the numbers, those that pass first."""
    found: dict[str, list[str]] = defaultdict(list)
    ordered = sorted(outcomes, key=lambda it: outcomes[it] is not Outcome.PASSED)
    places = placed(ordered, tests)
    for id in ordered:
        if id in places:
            found[_without_numbers(places[id])].append(id)
    return found


def _without_numbers(place: Place) -> str:
    """Only an argument of the test can have a number of pytest's behind it."""
    named = _ARGUMENTS.search(place.test.body)
    arguments = frozenset(_WORD.findall(named[1])) if named else frozenset[str]()
    case = _NUMBERED.sub(lambda it: it[1] if it[1] in arguments else it[0], place.case)
    return f"{place.test.id}{case}"


def _pairs(
    gone: Mapping[str, Iterable[str]], new: Mapping[str, Iterable[str]]
) -> Iterator[tuple[str, str]]:
    for words, ids in new.items():
        yield from zip(ids, gone.get(words, ()), strict=False)
