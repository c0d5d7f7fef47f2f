"""What a change's own set-up brought, and what a gate says of it."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.results import Failed, Passed, SingleGateResult

REMEDY = "run the set-up in your workspace until it ends well, then commit what it needs"
SHOWN = 12  # differences that a text names


class Brought(Struct, frozen=True):
    """What the change's own set-up brought, in words for people, and how its layer is laid.

    Of `bases` base's own copies are used; `drop` is never laid.
    """

    inputs: tuple[str, ...]  # the files of the change that asked for it
    judging: tuple[str, ...]
    libraries: tuple[str, ...]
    bases: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class SetUpFailed(Struct, frozen=True):
    """The change's own set-up did not get through; `why` has the end of what it said."""

    inputs: tuple[str, ...]
    why: str


def question(it: Brought | SetUpFailed | None) -> str:
    """What a human reads; empty where nobody is asked."""
    if not isinstance(it, Brought) or not it.judging:
        return ""
    return f"the change's own set-up differs in what judges it: {_listed(it.judging)}"


def judged_with(it: Brought | None, result: SingleGateResult) -> SingleGateResult:
    """A pass tells what the change brought, and asks a human where that is what judges."""
    if it is None or not isinstance(result, Passed):
        return result
    told = Finding(Priority.P2_MINOR, _note(it), Location(it.inputs[0]))
    asks = dict.fromkeys((*result.asks, *(it.inputs if it.judging else ())))
    return replace(result, findings=(*result.findings, told), asks=tuple(asks))


def unprepared(gate: str, it: SetUpFailed) -> Failed:
    """The change edits what its set-up reads, so it is the change's to mend."""
    issue = f"the set-up failed with the change's own {', '.join(it.inputs)}: {it.why}"
    return Failed(gate, (Finding(Priority.P1_MAJOR, issue, Location(it.inputs[0]), REMEDY),))


def _note(it: Brought) -> str:
    said = _listed(it.libraries) if it.libraries else "the same libraries"
    which = question(it) or "what judges is as on base"
    return f"judged with the change's own set-up ({', '.join(it.inputs)}): {said}; {which}"


def _listed(said: Sequence[str]) -> str:
    more = f" and {len(said) - SHOWN} more" if len(said) > SHOWN else ""
    return "; ".join(said[:SHOWN]) + more
