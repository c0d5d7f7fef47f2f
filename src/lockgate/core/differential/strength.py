"""Whether changed tests still notice what base's noticed: a ratchet, which asks and never refuses.

Faults are planted in the change's code, first in functions that base has too. One that base's
version of the changed tests notices twice, and the change's version misses twice, is a question.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.core.differential.faults import Fault
from lockgate.core.differential.runs import listed
from lockgate.core.differential.table import ChangedFiles, Kind, Row, SourceTest, Tests
from lockgate.core.differential.verdict import Asked, Kept, Lost, Unjudged, Verdict
from lockgate.core.model.findings import Finding, Priority
from lockgate.core.model.results import FAILING, Outcome, ReportRead, TestResult, Unreadable
from lockgate.core.model.statistics import MEASURED, UNMEASURED

ENOUGH = 10  # faults; fewer say nothing about how much a test notices
MOST = 30  # faults that are taken from base to the change
EXAMPLES = 3
CLIP = 160
_IDLE = frozenset({Kind.FIXED, Kind.ALREADY_RED, Kind.FLAKY})
_TROUBLE = "trouble"
_ALL = "all"
_TEST = "test "
_BY = " by "
_SUB_TEST = re.compile(r'\. ?Run ?\( ?"[^"]*"')
SOME = 3  # faults; with fewer, nothing is said of a test that has the assertions it had

Known = Mapping[str, tuple[str, ...]]  # by a fault's mark: passed or failed, by what, which tests

# By whether an expectation is lost: what the change does, and what is listed.
_WORDS = {
    True: (
        "edits or removes what tests expect",
        "What base's tests expect and the change's do not",
    ),
    False: ("edits tests or what they use", "What differs"),
}

Beside = Mapping[str, Mapping[str, str]]  # by file: what stands in it and is no test, by name
ACTS = "!"  # begins the name of what acts on tests that do not name it


class Side(Struct, frozen=True, kw_only=True):
    """One version of all tests: the tests, what stands beside them, files that are no tests."""

    tests: Tests
    beside: Beside = field(default_factory=dict[str, Mapping[str, str]])
    others: Mapping[str, str] = field(default_factory=dict[str, str])  # path → text
    used: Beside = field(default_factory=dict[str, Mapping[str, str]])  # what stands in these


class Subject(Struct, frozen=True, kw_only=True):
    """What a change did to its tests, by their ids and by files that they use."""

    before: tuple[str, ...]  # base's tests that were edited, moved or deleted
    after: tuple[str, ...]  # the change's tests that were edited or are new
    support: tuple[str, ...] = ()  # base's files that tests use
    lost: tuple[str, ...] = ()  # what base's tests expect, and the change's do not say
    altered: tuple[str, ...] = ()  # what else makes them other tests than base's


class Noticed(Struct, frozen=True):
    """A fault that base's tests notice: which test, and by which line."""

    fault: Fault
    by: str


class BaseSeen(Struct, frozen=True, kw_only=True):
    """What base's version of the changed tests notices, and which edits rightly not."""

    noticed: tuple[Noticed, ...] = ()
    unseen: tuple[Fault, ...] = ()  # edits that change nothing
    quiet: tuple[Fault, ...] = ()  # faults that were tried, and that it does not notice
    tests: tuple[str, ...] = ()
    each: tuple[tuple[Fault, str], ...] = ()  # every test that notices a fault, where it was asked
    every: bool = False  # there was time for all faults in what the tests run
    cut: bool = False  # it was begun and did not come to an end
    why: str = ""  # it could not be measured

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What the change's tests are tried on."""
        return (*self.unseen, *(it.fault for it in self.noticed))


class Strength(Struct, frozen=True, kw_only=True):
    measured: int = 0
    missed: tuple[Noticed, ...] = ()
    alarmed: tuple[Fault, ...] = ()  # edits that change nothing, and make the change's tests fail
    cut: bool = False  # there was no time for faults that there are
    why: str = ""  # why so few were measured

    @property
    def enough(self) -> bool:
        return self.measured >= ENOUGH

    @property
    def words(self) -> str:
        said = f"{self.measured - len(self.missed)} of {self.measured} planted faults still noticed"
        return f"{MEASURED if self.enough else UNMEASURED}: {said}"


def loading(folder: str, depth: int, name: str) -> str:
    """Lines for a conftest.py that lies so deep: they load a program from a folder at the top."""
    return (
        "import pathlib as _pathlib\nimport sys as _sys\n\n"
        f"_sys.path.append(str(_pathlib.Path(__file__).resolve().parents[{depth}] / {folder!r}))\n"
        f"import {name} as _probe\n\n"
        "pytest_collection_finish = _probe.pytest_collection_finish\n"
        "if 'pytest_configure' not in globals():\n"
        "    pytest_configure = _probe.pytest_configure\n"
    )


def worth(tests: Tests, rows: Iterable[Row]) -> Tests:
    """Those that said something on base: what was red or flaky there promised nothing."""
    idle = {row.before.id for row in rows if row.before and row.kind in _IDLE}
    return tuple(it for it in tests if it.id not in idle)


def subject_of(base: Side, change: Side, changed: ChangedFiles) -> Subject | None:
    """None where no test changed, nor anything that tests use."""
    stirred = _stirred(base, change)
    before = tuple(_changed(base.tests, change.tests, stirred))
    after = tuple(_changed(change.tests, base.tests, stirred))
    files = {it.file for it in (*base.tests, *change.tests)}
    support = tuple(it for it in changed.tests if it not in files and it in base.others)
    if not (before or after or support):
        return None
    gone = (
        *_gone(before, after),
        *_gone_beside(base, change),
        *_gone_others(base, change),
        *_newly_acting(base, change),
    )
    return Subject(
        before=tuple(it.id for it in before),
        after=tuple(it.id for it in after),
        support=support,
        lost=tuple(dict.fromkeys(gone)),
        altered=(
            *_altered(before, after),
            *_altered_beside(base, change),
            *(it for it in support if _edited(it, base, change)),
        ),
    )


def base_seen(
    faults: Sequence[Fault], nonce: str, read: ReportRead | Unreadable, said: str = ""
) -> BaseSeen:
    ours = _ours(nonce, read)
    if _TROUBLE in ours or not ours:
        told = ours[_TROUBLE].message if _TROUBLE in ours else said
        why = told or "the test command did not load what measures it"
        return BaseSeen(why=why, cut=bool(told))
    results = tuple(_by_fault(faults, ours))
    return BaseSeen(
        noticed=tuple(
            Noticed(fault, it.message)
            for fault, it in results
            if it.outcome in FAILING and not fault.neutral
        )[:MOST],
        unseen=tuple(f for f, it in results if it.outcome is Outcome.PASSED and f.neutral),
        quiet=tuple(f for f, it in results if it.outcome is Outcome.PASSED and not f.neutral),
        tests=tuple(it.removeprefix(_TEST) for it in ours if it.startswith(_TEST)),
        each=tuple(_noticing(faults, ours)),
        every=_ALL in ours and all(it.outcome is not Outcome.SKIPPED for _, it in results),
    )


def known_of(faults: Sequence[Fault], nonce: str, read: ReportRead | Unreadable) -> Known:
    """What base's tests came to on each fault, to be used again by another evaluation."""
    ours = _ours(nonce, read)
    by: dict[str, list[str]] = {}
    for fault, test in _noticing(faults, ours):
        by.setdefault(fault.mark, []).append(test)
    return {
        fault.mark: (_said(it), it.message, *by.get(fault.mark, ()))
        for fault, it in _by_fault(faults, ours)
        if it.outcome is not Outcome.SKIPPED
    }


def _said(it: TestResult) -> str:
    return Outcome.FAILED if it.outcome in FAILING else Outcome.PASSED


def measured_on(files: Mapping[str, str], subject: Subject) -> str:
    """One word for base's tests, the code they run on, and which of them are tried."""
    tree = (f"{path} {blob}" for path, blob in sorted(files.items()))
    whole = "\0".join((*tree, "", *subject.before, "", *subject.support))
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()


def strength_of(base: BaseSeen, nonce: str, read: ReportRead | Unreadable) -> Strength:
    if base.why:
        return Strength(why=base.why, cut=base.cut)
    if not base.noticed:
        none = "base's tests notice none of the planted faults"
        return Strength(why=none if base.every else "there was no time", cut=not base.every)
    ours = _ours(nonce, read)
    if _TROUBLE in ours or not ours:
        why = ours[_TROUBLE].message if _TROUBLE in ours else "its tests could not be loaded"
        return Strength(why=f"on the change: {why}", cut=True)
    by = {it.fault: it for it in base.noticed}
    results = tuple(_by_fault(base.faults, ours))
    told = tuple((f, it) for f, it in results if it.outcome is not Outcome.SKIPPED)
    return Strength(
        measured=sum(not f.neutral for f, _ in told),
        missed=(
            *(by[f] for f, it in told if it.outcome is Outcome.PASSED and not f.neutral),
            *_blinded(base, ours, frozenset(f for f, _ in told)),
        ),
        alarmed=tuple(f for f, it in told if it.outcome in FAILING and f.neutral),
        cut=not (base.every and _ALL in ours and len(told) == len(base.faults)),
        why="there was no time, or no more faults, for more",
    )


def _noticing(
    faults: Sequence[Fault], ours: Mapping[str, TestResult]
) -> Iterator[tuple[Fault, str]]:
    for name in ours:
        number, by, test = name.partition(_BY)
        if by and number.isdigit() and int(number) < len(faults):
            yield faults[int(number)], test


def _blinded(
    base: BaseSeen, ours: Mapping[str, TestResult], told: frozenset[Fault]
) -> Iterator[Noticed]:
    """Faults of tests that noticed some and notice none of them now, though others still do.

    One that raises is noticed by a test that asserts nothing, too, and says nothing of it.
    """
    now = {test for fault, test in _noticing(base.faults, ours) if not fault.raises}
    known = {it.removeprefix(_TEST) for it in ours if it.startswith(_TEST)}
    for test in dict.fromkeys(it for _, it in base.each):
        its = (f for f, it in base.each if it == test and f in told)
        faults = [it for it in its if not it.neutral and not it.raises]
        if len(faults) >= SOME and test in known - now:
            why = f"{test} | it noticed {len(faults)} faults, and notices none of them now"
            yield from (Noticed(it, why) for it in faults[:EXAMPLES])


def confirmed(strength: Strength, again: BaseSeen) -> Strength:
    """Without what base's tests noticed only once; where there was no time to see, it stays."""
    missed = (it for it in strength.missed if it.fault not in again.quiet)
    return replace(strength, missed=tuple(missed))


def weighed(verdict: Verdict, subject: Subject, strength: Strength, seed: str) -> Verdict:
    """A question for what was lost; who is asked anyway is asked once. With what was measured."""
    said = f"{strength.words} (seed {seed})"
    match _asked(verdict, subject, strength, seed):
        case Kept(rows, findings):
            return Kept(rows, (*findings, Finding(Priority.P3_SUGGESTION, said)))
        case Asked() as asked:
            return replace(asked, prompt=f"{asked.prompt}\n{said}")
        case Lost() | Unjudged() as other:
            return other


def _asked(verdict: Verdict, subject: Subject, strength: Strength, seed: str) -> Verdict:
    match verdict:
        case Kept(rows, findings):
            prompt = _question(subject, strength, seed)
            return Asked(rows, findings, prompt) if prompt else verdict
        case Asked(rows, findings, prompt, doubted):
            more = _missed(strength, seed)
            if doubted and strength.enough and not more:
                return Kept(rows, findings)
            return replace(verdict, prompt=f"{prompt}\n{more}") if more else verdict
        case Lost() | Unjudged():
            return verdict


def _question(subject: Subject, strength: Strength, seed: str) -> str:
    missed = _missed(strength, seed)
    if missed:
        return missed
    hasty = strength.cut and strength.measured < SOME
    told = subject.lost or (subject.altered if hasty else ())
    if strength.enough or not told:
        return ""
    what, which = _WORDS[bool(subject.lost)]
    head = (
        f"The change {what}, and only {strength.measured} faults could be planted to see whether "
        f"the tests still notice them ({_clipped(strength.why)}; seed {seed}). Is that wanted? "
        f"{which}:"
    )
    more = len(told) - EXAMPLES
    lines = (*told[:EXAMPLES], *((f"… and {more} more",) if more > 0 else ()))
    return "\n".join((head, *(f"- {_clipped(it)}" for it in lines)))


def _missed(strength: Strength, seed: str) -> str:
    if strength.alarmed:
        return (
            "The changed tests fail where the code's text changed and its behaviour did not: they "
            f"may look for planted faults (seed {seed}). Is that wanted?\n"
            f"- {listed(it.words for it in strength.alarmed[:EXAMPLES])}"
        )
    if not strength.missed:
        return ""
    head = (
        "The changed tests notice less than base's: "
        f"{len(strength.missed)} of {strength.measured} faults, planted in the same code for both, "
        f"are noticed by base's tests and not by the change's (seed {seed}). Is that wanted?"
    )
    return "\n".join((head, *(f"- {_example(it)}" for it in strength.missed[:EXAMPLES])))


def _example(it: Noticed) -> str:
    test, _, line = it.by.partition(" | ")
    return f"planted in {it.fault.words}; base's {test} notices it: {_clipped(line)}"


def _ours(nonce: str, read: ReportRead | Unreadable) -> dict[str, TestResult]:
    tests = read.tests or () if isinstance(read, ReportRead) else ()
    start = f"{nonce}::"
    return {it.id.removeprefix(start): it for it in tests if it.id.startswith(start)}


def _by_fault(
    faults: Sequence[Fault], ours: Mapping[str, TestResult]
) -> Iterator[tuple[Fault, TestResult]]:
    for number, fault in enumerate(faults):
        if str(number) in ours:
            yield fault, ours[str(number)]


def _stirred(base: Side, change: Side) -> frozenset[str]:
    """Files with tests in which something beside the tests is not as it was."""
    both = {*base.beside} & {*change.beside}
    return frozenset(it for it in both if _acts(base.beside[it], change.beside[it]))


def _acts(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Tests that stay as they are cannot name what is only new."""
    edited = any(new.get(name) != text for name, text in old.items())
    return edited or any(name.startswith(ACTS) for name in new.keys() - old.keys())


def _changed(mine: Tests, others: Tests, stirred: frozenset[str]) -> Iterator[SourceTest]:
    bodies = {it.id: it.body for it in others}
    for it in mine:
        if bodies.get(it.id) != it.body or it.file in stirred:
            yield it


def _gone(before: Iterable[SourceTest], after: Iterable[SourceTest]) -> Iterator[str]:
    said = {it for test in after for it in _expected(test)}
    for test in before:
        yield from (f"{test.id}: {it}" for it in _expected(test) if it not in said)


def _expected(test: SourceTest) -> tuple[str, ...]:
    """Where it is not known which lines assert something, each may; not the names of sub-tests."""
    lines = (line.strip() for line in test.body.splitlines()[1:])
    return test.asserts or tuple(_SUB_TEST.sub(".Run(", it) for it in lines)


def _altered(before: Iterable[SourceTest], after: Sequence[SourceTest]) -> Iterator[str]:
    """Tests that are edited by more than new assertions, or joined with others."""
    bodies = frozenset(it.body for it in after)
    now = {it.id: it for it in after}
    for test in before:
        if test.body not in bodies:
            new = now.get(test.id)
            said = _difference(test, new) if new else "it is gone"
            yield from (f"{test.id}: {it}" for it in (said,) if it)


def _difference(old: SourceTest, new: SourceTest) -> str:
    """One line that is gone or is new and asserts nothing; empty where there is none."""
    before, after = ([line.strip() for line in it.body.splitlines()] for it in (old, new))
    fresh = (it for it in after if it not in before and it not in new.asserts)
    gone = (it for it in before if it not in after)
    moved = () if [it for it in after if it in before] == before else ("the order of its lines",)
    return next(iter((*gone, *fresh, *moved)), "")


def _altered_beside(base: Side, change: Side) -> Iterator[str]:
    for file in sorted({*base.beside} & {*change.beside}):
        new = change.beside[file]
        edited = (it for name, it in base.beside[file].items() if new.get(name) != it)
        yield from (f"{file}: {it}" for it in edited)


def _edited(path: str, base: Side, change: Side) -> bool:
    """A file that tests use, by more than what they cannot name, and not only moved."""
    old, new = base.used.get(path), change.used.get(path)
    if old is not None and new is not None:
        return _acts(old, new)
    return base.others[path] not in change.others.values()


def _gone_beside(base: Side, change: Side) -> Iterator[str]:
    said = {it for texts in change.beside.values() for it in texts.values()}
    for file, texts in base.beside.items():
        for text in texts.values():
            if "assert" in text and text not in said:
                yield f"{file}: {text}"


def _gone_others(base: Side, change: Side) -> Iterator[str]:
    """Of files that are no tests: which were removed, or have lost a line."""
    kept = frozenset(change.others.values())
    for path, text in base.others.items():
        now = frozenset(change.others.get(path, "").splitlines())
        says = "assert" if path.endswith(".py") else ""
        lost = next((it for it in text.splitlines() if it not in now and says in it), None)
        if text not in kept and lost is not None:
            yield f"{path}: {lost.strip()}"


def _newly_acting(base: Side, change: Side) -> Iterator[str]:
    """What acts on tests that do not name it may take away what they expect."""
    for file, texts in change.beside.items():
        old = base.beside.get(file, texts)
        new = (it for name, it in texts.items() if name.startswith(ACTS) and name not in old)
        yield from (f"{file}: it newly acts on every test: {it}" for it in new)
    for path, text in change.others.items():
        if text.count("autouse") > base.others.get(path, "").count("autouse"):
            yield f"{path}: a fixture newly acts on every test"


def _clipped(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= CLIP else flat[: CLIP - 1] + "…"
