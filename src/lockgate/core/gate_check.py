"""What a configuration's gates come to together: whom they hold, and where one could slip past."""

from collections.abc import Sequence
from dataclasses import dataclass

from lockgate.core.gates import (
    CommandGate,
    DifferentialGate,
    Gate,
    HumanGate,
    MultipassReviewGate,
    ParallelReviewGate,
    Where,
)
from lockgate.core.settings import MergeMode, Settings
from lockgate.core.shell_masks import masked

Commanding = CommandGate | DifferentialGate


@dataclass(frozen=True, slots=True)
class Masked:
    """A gate whose command cannot fail, and why."""

    gate: str
    command: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Gates that judge every change, those that judge some, those that judge none by themselves.

    `hole` says how a change could land past every command gate; empty where none could.
    """

    always: tuple[Gate, ...]
    sometimes: tuple[Gate, ...]
    never: tuple[Gate, ...]
    masked: tuple[Masked, ...]
    hole: str


def coverage(settings: Settings) -> Coverage:
    reached = [it for it in settings.gates if _reached(it, settings)]
    soft = tuple(it for gate in _commands(settings.gates) for it in _masked(gate))
    return Coverage(
        always=tuple(it for it in reached if not it.place.when),
        sometimes=tuple(it for it in reached if it.place.when),
        never=tuple(it for it in settings.gates if it not in reached),
        masked=soft,
        hole=_hole(settings, reached, {it.gate for it in soft}),
    )


def why_unjudged(gate: Gate, *, compared: bool) -> str:
    """Why a commit alone, without a task, is not judged by it; empty where it is."""
    match gate:
        case ParallelReviewGate() | MultipassReviewGate():
            return "a review needs a task and its reviewers"
        case HumanGate():
            return "a human is asked in a task"
        case DifferentialGate() if not compared:
            return "there is nothing to compare with; name an earlier commit: --base REV"
        case CommandGate() | DifferentialGate():
            return "" if Where.CHANGE in gate.place.on else "it runs in the train only"


def _reached(gate: Gate, settings: Settings) -> bool:
    """What runs only in the train judges nothing where a human merges."""
    return Where.CHANGE in gate.place.on or settings.merge.mode is MergeMode.AUTO


def _commands(gates: Sequence[Gate]) -> tuple[Commanding, ...]:
    return tuple(it for it in gates if isinstance(it, Commanding))


def _masked(gate: Commanding) -> tuple[Masked, ...]:
    """The exit alone decides of a command; a differential gate wants the tests by their names."""
    why = masked(gate.command) if isinstance(gate, CommandGate) else ""
    return (Masked(gate.name, gate.command, why),) if why else ()


def _hole(settings: Settings, reached: Sequence[Gate], soft: set[str]) -> str:
    every, there = _commands(settings.gates), _commands(reached)
    if not every:
        return f"formula {settings.formula} and the list have no gate that runs a command"
    if not there:
        return f"{_named(every)} would run in the train only, and [merge] mode is manual"
    if all(it.place.when for it in there):
        return f"{_named(there)}: each has a `when`, and a change for which none holds is not run"
    if all(it.place.when or it.name in soft for it in there):
        return f"{_named([it for it in there if it.name in soft])} cannot fail"
    return ""


def _named(gates: Sequence[Gate]) -> str:
    names = ", ".join(it.name for it in gates)
    return f"gate {names}" if len(gates) == 1 else f"gates {names}"
