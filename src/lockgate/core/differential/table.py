"""What a change did to each test: one row a test id, decided by four runs and two texts.

Tests as they stand in files are matched first: which one a reported id means, which became which.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.core.differential.runs import Seen
from lockgate.core.model.results import FAILING, Outcome

_TOKENS = re.compile(r"\w+")
_STEMS = re.compile(r"\.(?:py|go|[cm]?[jt]sx?)\Z")


# Tests as they stand in files: which one a reported id means, and which one became which.


class SourceTest(Struct, frozen=True, kw_only=True):
    """One test in a file. `body` has neither comments nor the test's own name."""

    file: str
    line: int
    names: tuple[str, ...]  # what it stands in, then its own name
    body: str
    checks: int = 1  # how many things it asserts
    asserts: tuple[str, ...] = ()  # those as text, where they can be told from the rest
    flexible: bool = False  # its own name goes on with what only a run knows

    @property
    def id(self) -> str:
        return "::".join((self.file, *self.names))


Tests = tuple[SourceTest, ...]
Tokens = tuple[str, ...]


class Place(Struct, frozen=True):
    """The test that an id means; `case` is what the id adds to it, such as its parameters."""

    test: SourceTest
    case: str = ""


class _Index(Struct):
    whole: dict[Tokens, list[SourceTest]] = field(default_factory=lambda: defaultdict(list))
    titles: dict[Tokens, list[SourceTest]] = field(default_factory=lambda: defaultdict(list))
    flexible: dict[str, list[SourceTest]] = field(default_factory=lambda: defaultdict(list))
    longest: int = 0


def placed(ids: Iterable[str], tests: Sequence[SourceTest]) -> dict[str, Place]:
    """Where each id's test stands; an id that could be two tests, or none, is not in it."""
    index = _indexed(tests)
    found = ((id, _place(id, index)) for id in ids)
    return {id: place for id, place in found if place}


def paired(
    gone: Iterable[SourceTest], new: Iterable[SourceTest]
) -> tuple[tuple[SourceTest, SourceTest], ...]:
    """Each with what it became: the same body, or the same name in another file; one to one."""
    left, right = sorted(set(gone), key=_order), sorted(set(new), key=_order)
    pairs: list[tuple[SourceTest, SourceTest]] = []
    for key in _LIKENESS:
        matched = list(_zipped(left, right, key))
        pairs.extend(matched)
        left = sorted(set(left) - {old for old, _ in matched}, key=_order)
        right = sorted(set(right) - {became for _, became in matched}, key=_order)
    return (*pairs, *_grown(left, right))


def _grown(
    left: Sequence[SourceTest], right: Sequence[SourceTest]
) -> Iterator[tuple[SourceTest, SourceTest]]:
    """Each with the first that says all it said, in assertions, and perhaps more."""
    free = list(right)
    for old in left:
        heirs = [it for it in free if old.asserts and {*old.asserts} <= {*it.asserts}]
        if heirs:
            free.remove(heirs[0])
            yield old, heirs[0]


_LIKENESS: tuple[Callable[[SourceTest], Hashable], ...] = (
    lambda it: (it.names, it.body),
    lambda it: (it.file, it.body),
    lambda it: it.body,
    lambda it: it.asserts or it.id,
    lambda it: it.names,
)


def _zipped(
    left: Iterable[SourceTest],
    right: Iterable[SourceTest],
    key: Callable[[SourceTest], Hashable],
) -> Iterator[tuple[SourceTest, SourceTest]]:
    ours, theirs = _grouped(left, key), _grouped(right, key)
    for name, group in ours.items():
        yield from zip(group, theirs.get(name, ()), strict=False)


def _grouped(
    tests: Iterable[SourceTest], key: Callable[[SourceTest], Hashable]
) -> Mapping[Hashable, list[SourceTest]]:
    groups: dict[Hashable, list[SourceTest]] = defaultdict(list)
    for test in tests:
        groups[key(test)].append(test)
    return groups


def _order(test: SourceTest) -> tuple[str, int, str]:
    return test.id, test.line, test.body


def _indexed(tests: Sequence[SourceTest]) -> _Index:
    index = _Index()
    for test in tests:
        names = _tokens(" ".join(test.names))
        if not names:
            continue
        if test.flexible:
            index.flexible[names[0]].append(test)
        else:
            index.whole[names].append(test)
            index.longest = max(index.longest, len(names))
            if not test.file.endswith((".py", ".go")):
                index.titles[_tokens(test.names[-1])].append(test)
    return index


def _place(id: str, index: _Index) -> Place | None:
    for stem, case in _variants(id):
        test = _exact(_tokens(stem), index)
        if test:
            return Place(test, case)
    test = _begun(_tokens(id), index)
    return Place(test, id) if test else None


def _variants(id: str) -> Iterator[tuple[str, str]]:
    """The id as it is, without its parameters, without its sub-tests."""
    yield id, ""
    if id.endswith("]"):
        cut = id.find("[", id.rfind("::", 0, id.find("[")) + 1)
        yield id[:cut], id[cut:]
    cut = id.rfind("/")
    while cut > max(0, id.find("::")):
        yield id[:cut], id[cut:]
        cut = id.rfind("/", 0, cut)


def _exact(tokens: Tokens, index: _Index) -> SourceTest | None:
    for length in range(min(index.longest, len(tokens)), 0, -1):
        found = index.whole.get(tokens[-length:]) or index.titles.get(tokens[-length:])
        if found:
            return _nearest(found, tokens[:-length])
    return None


def _begun(tokens: Tokens, index: _Index) -> SourceTest | None:
    """The flexible test whose known beginning stands in the id."""
    found: dict[str, SourceTest] = {}
    for at, token in enumerate(tokens):
        for test in index.flexible.get(token, ()):
            names = _tokens(" ".join(test.names))
            if tokens[at : at + len(names)] == names:
                found[test.id] = test
    longest = max((len(" ".join(it.names)) for it in found.values()), default=0)
    best = [it for it in found.values() if len(" ".join(it.names)) == longest]
    return _nearest(best, tokens)


def _nearest(found: Sequence[SourceTest], before: Tokens) -> SourceTest | None:
    """The only one, or the one whose file the id names best."""
    scores = [_shared(_module(test.file), before) for test in found]
    best = max(scores, default=0)
    nearest = [test for test, score in zip(found, scores, strict=True) if score == best]
    return nearest[0] if len(nearest) == 1 and (best or _unnamed(nearest[0], before)) else None


def _unnamed(test: SourceTest, before: Tokens) -> bool:
    """An id that says nothing about a file may mean any; Python's always say the module."""
    return not (before and test.file.endswith(".py"))


def _module(file: str) -> Tokens:
    """What an id can say about the file: in Go only its directory."""
    named = file.rpartition("/")[0] if file.endswith(".go") else _STEMS.sub("", file)
    return _tokens(named)


def _shared(file: Tokens, before: Tokens) -> int:
    """How many of the file's last parts stand in the id, in order and without a gap."""
    for length in range(len(file), 0, -1):
        tail = file[-length:]
        if any(before[at : at + length] == tail for at in range(len(before) - length + 1)):
            return length
    return 0


def _tokens(text: str) -> Tokens:
    return tuple(_TOKENS.findall(text))


# The rows.


class Kind(StrEnum):
    KEPT = "kept"
    RENAMED = "renamed"
    FIXED = "red on base, passes now"
    ALREADY_RED = "red on base"
    FLAKY = "flaky on base"
    REGRESSION = "regression"
    HIDDEN = "hidden"
    SET_ASIDE = "is not run any more, though it would pass"
    CONTRADICTED = "expectation changed"
    SUPPORTED = "passes only with changed test files"
    DELETED = "deleted"
    EMPTIED = "checks nothing any more"
    PROVES = "real fix"
    IDLE = "proves nothing about this change"
    NEW_RED = "new test fails"
    NEW_UNRUN = "new test does not run"


_PASSING = frozenset({Kind.KEPT, Kind.RENAMED})


class Row(Struct, frozen=True, kw_only=True):
    """One test. `now` are the ids that it has on the change."""

    id: str
    kind: Kind
    on_change: Outcome | None = None  # as the change has it
    of_base: Outcome | None = None  # as base has it, on the change's code
    now: tuple[str, ...] = ()
    before: SourceTest | None = None
    after: SourceTest | None = None


class Weight(StrEnum):
    """What follows from a change to the way tests are run, though every test passes."""

    NOTED = "noted"
    ASKED = "asked"
    REFUSED = "refused"


class HarnessChange(Struct, frozen=True):
    """One thing that a change did to the way tests are run, in words."""

    file: str
    what: str
    line: int | None = None
    weight: Weight = Weight.NOTED


class ChangedFiles(Struct, frozen=True, kw_only=True):
    """What a change touched: code, tests with all that belongs to them, how tests are run."""

    code: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    harness: tuple[HarnessChange, ...] = ()
    edits: tuple[tuple[str, str, str], ...] = ()  # of files beside tests: path, old and new lines
    marks: tuple[HarnessChange, ...] = ()  # lines of code that newly ask whether a test runs
    must_prove: bool = False  # the task says that some test has to tell the change from base


class _View(Struct, frozen=True, kw_only=True):
    seen: Seen
    before: Mapping[str, Place]
    after: Mapping[str, Place]
    became: Mapping[SourceTest, SourceTest]
    at: Mapping[SourceTest, tuple[str, ...]]  # the ids that a test has on the change
    changed: ChangedFiles


def rows(seen: Seen, base: Tests, candidate: Tests, changed: ChangedFiles) -> tuple[Row, ...]:
    """Every test of base, then every new one; in the order of their ids."""
    view = _view(seen, base, candidate, changed)
    old = tuple(_old(id, view) for id in sorted(seen.base))
    known = {id for row in old for id in (row.id, *row.now)}
    new = (_new(id, view) for id in sorted(seen.candidate) if id not in known)
    return (*old, *new)


def weakened(rows: Iterable[Row]) -> Iterator[Row]:
    """Tests that still pass in both versions and check less than before."""
    for row in rows:
        before, after = (row.before, row.after) if row.kind in _PASSING else (None, None)
        if before and after and after.checks < before.checks:
            yield row


def _view(seen: Seen, base: Tests, candidate: Tests, changed: ChangedFiles) -> _View:
    before, after = placed(seen.base, base), placed(seen.candidate, candidate)
    at: dict[SourceTest, tuple[str, ...]] = defaultdict(tuple)
    for id, place in after.items():
        at[place.test] = (*at[place.test], id)
    return _View(
        seen=seen,
        before=before,
        after=after,
        became=_became(base, candidate),
        at=at,
        changed=changed,
    )


def _became(base: Tests, candidate: Tests) -> dict[SourceTest, SourceTest]:
    """Each test of base with the one that has its place on the change."""
    there = {test.id: test for test in candidate}
    here = {test.id for test in base}
    same = {test: there[test.id] for test in base if test.id in there}
    gone = (test for test in base if test.id not in there)
    new = (test for test in candidate if test.id not in here)
    return {**same, **dict(paired(gone, new))}


def _old(id: str, view: _View) -> Row:
    place = view.before.get(id)
    before = place.test if place else None
    after = view.became.get(before) if before else None
    now = _heirs(id, place, after, view)
    row = Row(
        id=id,
        kind=Kind.KEPT,
        on_change=_together(view.seen.candidate[it] for it in now),
        of_base=view.seen.base_on_candidate.get(id),
        now=now,
        before=before,
        after=after,
    )
    return replace(row, kind=_kind(row, view))


def _heirs(id: str, place: Place | None, after: SourceTest | None, view: _View) -> tuple[str, ...]:
    """The ids on the change that stand for this one: itself, its new name, its new cases."""
    if id in view.seen.candidate:
        return (id,)
    if place is None or after is None:
        return ()
    ids = tuple(it for it in view.at.get(after, ()) if it not in view.seen.base)
    same = tuple(it for it in ids if view.after[it].case == place.case)
    one_has_none = not place.case or all(not view.after[it].case for it in ids)
    return same or (ids if one_has_none else _renamed_case(id, place.test, ids, view))


def _renamed_case(id: str, test: SourceTest, new: Sequence[str], view: _View) -> tuple[str, ...]:
    """The case in the same place of the list, where no case is gone and all have other ids."""
    own = [it for it, place in view.before.items() if place.test == test]
    left = [it for it in own if it in view.seen.candidate]
    return (new[own.index(id)],) if not left and len(new) >= len(own) else ()


def _kind(row: Row, view: _View) -> Kind:
    green = Outcome.PASSED
    again = view.seen.again
    was = view.seen.base[row.id]
    if again is not None and (again.get(row.id) is green) != (was is green):
        return Kind.FLAKY
    if was is not green:
        return Kind.FIXED if row.on_change is green else Kind.ALREADY_RED
    if row.on_change is green:
        return _passing(row) if row.of_base is green else _against_base(row, view.changed)
    if row.on_change is None:
        return _missing(row, view)
    return Kind.REGRESSION if row.on_change in FAILING else _aside(row, view.changed)


def _aside(row: Row, changed: ChangedFiles) -> Kind:
    """What the change's tests or settings take out, and would pass, is for a human to judge."""
    by_tests = bool(changed.tests or changed.harness)
    return Kind.SET_ASIDE if by_tests and row.of_base is Outcome.PASSED else Kind.HIDDEN


def _passing(row: Row) -> Kind:
    """Base's version and the change's both pass."""
    if row.before and row.after and row.before.checks and not row.after.checks:
        return Kind.EMPTIED
    return Kind.KEPT if row.now == (row.id,) else Kind.RENAMED


def _against_base(row: Row, changed: ChangedFiles) -> Kind:
    """The change's version passes and base's does not: what made the difference."""
    if row.before and row.after and row.before.body != row.after.body:
        return Kind.CONTRADICTED
    if row.of_base is None and (changed.tests or changed.harness):
        return Kind.SUPPORTED
    if changed.harness or not changed.tests:
        return Kind.REGRESSION
    return Kind.SUPPORTED


def _missing(row: Row, view: _View) -> Kind:
    """Not reported on the change: taken out of the tests, or kept from running."""
    if row.before is None:
        explained = view.changed.tests and not view.changed.harness
        return Kind.DELETED if explained else _aside(row, view.changed)
    if row.after is None:
        return Kind.DELETED
    others = view.at.get(row.after, ())
    rest_passes = bool(others) and all(view.seen.candidate[it] is Outcome.PASSED for it in others)
    fewer_cases = row.of_base is None or row.before.body != row.after.body
    return Kind.DELETED if rest_passes and fewer_cases else _aside(row, view.changed)


def _new(id: str, view: _View) -> Row:
    outcome = view.seen.candidate[id]
    if outcome is Outcome.PASSED:
        idle = view.seen.candidate_on_base.get(id) is Outcome.PASSED
        kind = Kind.IDLE if idle else Kind.PROVES
    else:
        kind = Kind.NEW_RED if outcome in FAILING else Kind.NEW_UNRUN
    place = view.after.get(id)
    return Row(id=id, kind=kind, on_change=outcome, now=(id,), after=place.test if place else None)


def _together(outcomes: Iterable[Outcome]) -> Outcome | None:
    """Passed only if all did; else one that did not."""
    every = tuple(outcomes)
    worse = tuple(it for it in every if it is not Outcome.PASSED)
    failing = tuple(it for it in worse if it in FAILING)
    return next(iter((*failing, *worse, *every)), None)
