"""The differential gate's decision: whether a change keeps what base's tests promise."""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from lockgate.core.differential.cases import with_steady_cases
from lockgate.core.differential.runs import (
    AnyRun,
    Runs,
    Seen,
    forgeries,
    listed,
    misled,
    outcomes_of,
    overtime,
    seen,
    trouble,
    unfinished,
)
from lockgate.core.differential.table import (
    ChangedFiles,
    Kind,
    Row,
    SourceTest,
    Tests,
    Weight,
    rows,
    weakened,
)
from lockgate.core.model.findings import Finding, Location, Priority, by_priority
from lockgate.core.model.results import (
    Broken,
    Failed,
    Outcome,
    Passed,
    Proof,
    SingleGateResult,
    Waiting,
)

LIKE = 0.4  # share of words that two tests must have in common to be called alike
SHOWN = 40  # tests that a question to a human names
CLIP = 160  # characters of one line of a test

FAILS = frozenset({Kind.REGRESSION, Kind.HIDDEN, Kind.NEW_RED})
ASKS = frozenset({Kind.CONTRADICTED, Kind.SUPPORTED, Kind.DELETED, Kind.EMPTIED, Kind.SET_ASIDE})
_WORDS = re.compile(r"[a-z]+|[0-9]+", re.IGNORECASE)
_ABSENT = {
    None: "is not run any more",
    Outcome.SKIPPED: "is skipped now",
    Outcome.XFAILED: "is expected to fail now",
    Outcome.XPASSED: "is expected to fail now",
}


_MARKED = (
    "The change newly asks whether a test runs or who calls it, renames a test in a report, or "
    "edits what a doctest expects."
)
_LOADED = "The change brings files that Python or the test runner loads by itself."


class Kept(Struct, frozen=True):
    """Whatever was green on base is green on the change."""

    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]


class Lost(Struct, frozen=True):
    """Something that was green is not, or the run cannot be believed because of the change."""

    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    final: bool = False  # no other run can take it back: forged, or ended by our time-out


class Asked(Struct, frozen=True):
    """The change took promises back or changed them, which a human has to want."""

    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    prompt: str
    doubted: bool = False  # only because no assertion was seen in a test; planted faults know more


class Unjudged(Struct, frozen=True):
    why: str


Verdict = Kept | Lost | Asked | Unjudged


def judge(runs: Runs, base: Tests, candidate: Tests, changed: ChangedFiles) -> Verdict:
    """Base's own runs must be good; then a loss outweighs a question, and that a pass."""
    runs = with_steady_cases(runs, base, candidate)
    why = trouble(runs)
    if why:
        return Unjudged(why)
    outcomes = seen(runs)
    if base and not outcomes.base:
        return Unjudged("no report names a test of base: the command must write one (JUnit)")
    if not outcomes.base and not outcomes.candidate:
        return Unjudged("no test ran, neither on base nor on the change")
    table = rows(outcomes, base, candidate, changed)
    harness = tuple(dict.fromkeys(it.file for it in changed.harness))
    forged = tuple(forgeries(runs, harness))
    lost = (*unfinished(runs), *forged, *_losses(table, outcomes))
    notes = by_priority((*lost, *_harness(table, changed), *_notes(table, outcomes, changed)))
    if lost or any(it.priority is Priority.P1_MAJOR for it in notes):
        return Lost(table, notes, final=bool(forged) or overtime(runs))
    why = misled(runs)
    if why:
        return Unjudged(why)
    questions = tuple(row for row in table if row.kind in ASKS)
    asks = questions or changed.marks or any(it.weight is Weight.ASKED for it in changed.harness)
    if not asks:
        return Kept(table, notes)
    new = tuple(it for it in candidate if it.id not in {old.id for old in base})
    other = changed.marks or any(it.weight is Weight.ASKED for it in changed.harness)
    doubted = not other and all(row.kind is Kind.EMPTIED for row in questions)
    return Asked(table, notes, _prompt(questions, changed, new), doubted)


def after_a_loss(verdict: Verdict, attempt: int) -> Verdict:
    """What a later attempt says counts; where it keeps everything, that it did not at first."""
    if not isinstance(verdict, Kept):
        return verdict
    flaky = Finding(Priority.P2_MINOR, f"FLAKY: nothing was lost only in attempt {attempt}")
    return Kept(verdict.rows, by_priority((flaky, *verdict.findings)))


def reproduced(verdict: Verdict, how: str) -> Verdict:
    """What blocks, with a command that shows it."""
    match verdict:
        case Lost(rows, findings, final):
            shown = Finding(Priority.P3_SUGGESTION, f"to see it: {how}")
            return Lost(rows, (*findings, shown), final)
        case Asked(rows, findings, prompt, doubted):
            return Asked(rows, findings, f"{prompt}\nTo see it: {how}", doubted)
        case Kept() | Unjudged():
            return verdict


def as_result(gate: str, verdict: Verdict, proof: Proof) -> SingleGateResult:
    match verdict:
        case Kept(_, findings):
            return Passed(gate, proof, findings)
        case Lost(_, findings):
            return Failed(gate, findings)
        case Asked(prompt=prompt):
            return Waiting(gate, prompt)
        case Unjudged(why):
            return Broken(gate, why)


def _losses(table: Sequence[Row], outcomes: Seen) -> Iterator[Finding]:
    for row in table:
        if row.kind in FAILS:
            said = outcomes.said.get(row.id)
            known = row.after or row.before
            place = said.location if said and said.location else _location(known)
            priority = Priority.P1_MAJOR if row.kind is Kind.NEW_RED else Priority.P0_CRITICAL
            yield Finding(priority, _loss(row, outcomes), place, _remedy(row))


def _loss(row: Row, outcomes: Seen) -> str:
    said = outcomes.said.get(row.id)
    because = f": {said.message}" if said and said.message else ""
    if row.kind is Kind.NEW_RED:
        return f"{row.id} is new and fails{because}"
    if row.kind is Kind.HIDDEN:
        return f"{row.id} passed on base and {_ABSENT[row.on_change]}"
    if row.on_change is Outcome.PASSED:
        how = "fails" if row.of_base else "is not run"
        return f"{row.id} passed on base and {how} on the change, as base has it{because}"
    return f"{row.id} passed on base and fails on the change{because}"


def _remedy(row: Row) -> str:
    if row.kind is Kind.NEW_RED:
        return "make the code or the new test right"
    if row.kind is Kind.HIDDEN:
        return "let the test run and pass again, or take it out so that a human can decide"
    return "keep what the test promises; if that is no longer wanted, change the test itself"


def _harness(table: Sequence[Row], changed: ChangedFiles) -> Iterator[Finding]:
    """How tests are run: it matters when base's tests end differently with and without it."""
    acted = any(
        row.kind in {Kind.REGRESSION, Kind.HIDDEN} and row.on_change is not row.of_base
        for row in table
    )
    for it in changed.harness:
        refused = it.weight is Weight.REFUSED
        yield Finding(
            Priority.P1_MAJOR if acted or refused else Priority.P3_SUGGESTION,
            f"the change alters how tests are run: {it.what}",
            Location(it.file, it.line),
            "take it out of the change: tests are run from source" if refused else None,
        )


def _notes(table: Sequence[Row], outcomes: Seen, changed: ChangedFiles) -> Iterator[Finding]:
    idle = [row for row in table if row.kind is Kind.IDLE]
    unproved = changed.must_prove and bool(changed.code) and not _proven(outcomes)
    priority = Priority.P1_MAJOR if unproved else Priority.P2_MINOR
    for row in idle:
        yield Finding(
            priority,
            f"{row.id} passes on base's code too: it proves nothing about this change",
            _location(row.after),
        )
    for row in weakened(table):
        yield Finding(Priority.P2_MINOR, f"{row.id} checks less than on base", _location(row.after))
    for row in table:
        if row.kind is Kind.SET_ASIDE:
            what = f"{row.id} passed on base and {_ABSENT[row.on_change]}"
            yield Finding(Priority.P2_MINOR, what, _location(row.before))
        if row.kind in {Kind.FLAKY, Kind.NEW_UNRUN}:
            yield Finding(Priority.P3_SUGGESTION, f"{row.id}: {row.kind}", _location(row.after))


def _proven(outcomes: Seen) -> bool:
    """Some test passes on the change and not on base's code."""
    green = (id for id, it in outcomes.candidate.items() if it is Outcome.PASSED)
    return any(outcomes.candidate_on_base.get(id) is not Outcome.PASSED for id in green)


def _prompt(questions: Sequence[Row], changed: ChangedFiles, new: Tests) -> str:
    kept = f"{len(questions)} tests that pass on base are not kept as they were. Is that wanted?"
    brings = _MARKED if changed.marks else _LOADED
    head = kept if questions else f"{brings} Is that wanted?"
    lines = [_question(row, changed, new) for row in questions[:SHOWN]]
    more = [f"… and {len(questions) - SHOWN} more"] if len(questions) > SHOWN else []
    harness = [f"how tests are run: {it.file}: {it.what}" for it in changed.harness[:SHOWN]]
    marks = [f"{it.file}:{it.line}: {it.what}" for it in changed.marks[:SHOWN]]
    edits = [f"{path}: {old} → {now}" for path, old, now in changed.edits[:SHOWN]]
    shown = edits if any(row.kind is Kind.SUPPORTED for row in questions) else []
    return "\n".join((head, *(f"- {line}" for line in (*lines, *more, *shown, *marks, *harness))))


def _question(row: Row, changed: ChangedFiles, new: Tests) -> str:
    where = f" ({row.before.file}:{row.before.line})" if row.before else ""
    fate = "" if row.of_base is Outcome.PASSED else "; as base has it, it fails on the change"
    if row.kind is Kind.DELETED:
        return f"deleted: {row.id}{where}{fate}{_successor(row.before, new)}"
    if row.kind is Kind.SET_ASIDE:
        return f"{row.id}{where} {_ABSENT[row.on_change]}; as base has it, it passes on the change"
    if row.kind is Kind.SUPPORTED:
        return f"{row.kind}: {row.id}{where}: {', '.join(changed.tests[:SHOWN])}"
    return f"{row.kind}: {row.id}{where}: {_difference(row.before, row.after)}"


def _successor(gone: SourceTest | None, new: Tests) -> str:
    """The new test that is most like it, in words; empty where none is."""
    if gone is None or not new:
        return ""
    best = max(new, key=lambda it: (_likeness(gone, it), it.id))
    if _likeness(gone, best) < LIKE:
        return ""
    same = sum(it in best.asserts for it in gone.asserts)
    kept = f", {same} of {len(gone.asserts)} assertions are the same" if gone.asserts else ""
    return f"; {best.id} looks like its successor{kept}: {_difference(gone, best)}"


def _likeness(one: SourceTest, other: SourceTest) -> float:
    """How many of the words of both are the same, name and all."""
    mine, theirs = (frozenset(_WORDS.findall(f"{it.names} {it.body}")) for it in (one, other))
    return len(mine & theirs) / (len(mine | theirs) or 1)


def _difference(before: SourceTest | None, after: SourceTest | None) -> str:
    """The lines that only one of both has, old → new."""
    old = before.body.splitlines() if before else []
    new = after.body.splitlines() if after else []
    return f"{_only(old, new)} → {_only(new, old)}"


def _only(lines: Iterable[str], others: Sequence[str]) -> str:
    known = frozenset(others)
    found = "; ".join(line.strip() for line in lines if line not in known) or "(nothing)"
    return found if len(found) <= CLIP else found[: CLIP - 1] + "…"


def _location(test: SourceTest | None) -> Location | None:
    return Location(test.file, test.line) if test else None


# Base's own tests with a failure planted in each: one that is still reported green is forged.
# Canaries have names that no change can know; this finds a runner that was patched by test names.


def to_break(verdict: Verdict, changed: ChangedFiles) -> Tests:
    """The tests of Python that pass on the change as base has them; none where nothing can act."""
    acts = bool(changed.code or changed.harness or changed.tests)
    if not acts or not isinstance(verdict, Kept | Asked):
        return ()
    green = (it.before for it in verdict.rows if _was_green(it))
    return tuple(dict.fromkeys(it for it in green if it and it.file.endswith(".py")))


def unbelieved(verdict: Verdict, run: AnyRun, broken: Tests) -> Verdict:
    """A loss, where a test that cannot pass was reported as passed."""
    if not isinstance(verdict, Kept | Asked):
        return verdict
    outcomes, planted = outcomes_of(run), frozenset(broken)
    hit = (row.id for row in verdict.rows if row.before in planted and _was_green(row))
    names = tuple(id for id in hit if outcomes.get(id) is Outcome.PASSED)
    if not names:
        return verdict
    what = (
        f"the run can be forged: a failure was planted in {len(names)} tests of base, and they are "
        f"reported as passed ({listed(names)}); the change's own code runs in it"
    )
    found = by_priority((Finding(Priority.P0_CRITICAL, what), *verdict.findings))
    return Lost(verdict.rows, found, final=True)


def _was_green(row: Row) -> bool:
    """Without the planted failure it passes, so that only this can make it fail."""
    return row.of_base is Outcome.PASSED
