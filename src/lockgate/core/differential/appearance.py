"""The same tests a second time, in a run that looks another way.

Code that behaves well only where it recognises its judge gives itself away by another result.
"""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.differential.canaries import lots
from lockgate.core.differential.plan import Plan, environment_of
from lockgate.core.differential.runs import AnyRun, NotRun, listed, outcomes_of
from lockgate.core.differential.table import ChangedFiles
from lockgate.core.differential.test_files import Runner
from lockgate.core.differential.verdict import Asked, Kept, Verdict
from lockgate.core.model.results import FAILING, Outcome

MOST = 5  # rounds

# For pytest: its files in the opposite order, the tests of a file in theirs.
ORDER = """\
def pytest_collection_modifyitems(items):
    files = list(dict.fromkeys(str(it.path) for it in items))
    items.sort(key=lambda it: -files.index(str(it.path)))
"""


class Look(Struct, frozen=True, kw_only=True):
    """How a run looks: what is said to the shell before the command, and a plug-in's name."""

    lines: tuple[str, ...]
    plug_in: str = ""  # of pytest, with ORDER as its text


PLAIN = Look(lines=())


def look_of(plan: Plan, command: str, seed: str) -> Look:
    drawn = lots(f"{plan.nonce} {seed}", ())
    folder, user, name, plug_in = (drawn.name("_") for _ in range(4))
    lines = (
        f'OUT="$OUT/{folder}"; mkdir -p "$OUT"',
        f'export TMPDIR="${{TMPDIR:-/tmp}}/{folder}"; mkdir -p "$TMPDIR"',
        f"export USER={user} LOGNAME={user}",
        f"export {name.upper()}={drawn.number(1000)}",
    )
    if plan.runner not in {Runner.PYTEST, Runner.UNITTEST}:
        return Look(lines=lines)
    seeded = f"export PYTHONHASHSEED={drawn.number(1000)}"
    started = (f"{seeded} PYTHONPYCACHEPREFIX=$TMPDIR/{user}", "unset PYTHONDONTWRITEBYTECODE")
    if plan.runner is Runner.UNITTEST:
        return Look(lines=(*lines, *started))
    options = dict(environment_of(plan.runner, command)).get("PYTEST_ADDOPTS", "").split()
    told = " ".join((*(it for it in reversed(options) if "=" in it), f"-p {plug_in}"))
    return Look(lines=(*lines, *started, f'export PYTEST_ADDOPTS="{told}"'), plug_in=plug_in)


def wants_another_look(verdict: Verdict, changed: ChangedFiles) -> bool:
    """Only code can recognise its judge; what is refused already needs no second look."""
    return isinstance(verdict, Kept | Asked) and bool(changed.code or changed.harness)


def rounds(attempts: int) -> int:
    """How often both looks are tried again: chance must not look like a difference."""
    return min(max(attempts, 1), MOST)


def differing(verdict: Verdict, run: AnyRun) -> tuple[str, ...]:
    """Tests of base that passed on the change, and fail there in this run."""
    if isinstance(run, NotRun) or not run.complete or not isinstance(verdict, Kept | Asked):
        return ()
    outcomes = outcomes_of(run)
    green = (row.id for row in verdict.rows if row.of_base is Outcome.PASSED)
    return tuple(it for it in green if outcomes.get(it) in FAILING)


def passing(run: AnyRun, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the names that pass in this run, as where base itself has that look."""
    outcomes = outcomes_of(run)
    return tuple(it for it in names if outcomes.get(it) is Outcome.PASSED)


def unmasked(verdict: Verdict, names: tuple[str, ...]) -> Verdict:
    """A question, where tests end differently for no reason but the look of the run."""
    if not names or not isinstance(verdict, Kept | Asked):
        return verdict
    what = (
        f"{len(names)} tests pass on the change in one run and fail in two others that only look "
        "different (variables, temporary folders, order of files, names of added tests), and pass "
        f"in these on base: {listed(names)}. Does the change recognise how it is tested?"
    )
    if isinstance(verdict, Asked):
        return replace(verdict, prompt=f"{verdict.prompt}\n{what}", doubted=False)
    return Asked(verdict.rows, verdict.findings, what)
