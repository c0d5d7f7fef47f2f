"""Base's own tests with a failure planted in each: one that is still reported green is forged.

Canaries have names that no change can know; this finds a runner that was patched by test names.
"""

from lockgate.core.differential.runs import AnyRun, listed, outcomes_of
from lockgate.core.differential.table import ChangedFiles, Row, Tests
from lockgate.core.differential.verdict import Asked, Kept, Lost, Verdict
from lockgate.core.model.findings import Finding, Priority, by_priority
from lockgate.core.model.results import Outcome


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
