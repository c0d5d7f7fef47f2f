"""Configured gates: their kinds, how a list goes over a formula, and the waves they run in."""

import json
from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.model.task import REVIEWS, GateKind, GateRef

PROTECTED = "protected-files"
CHANGE_CHECK = "change-check"  # what Lockgate itself finds in work that it takes as a change
APPROVE = "Review and approve this change"
NO_REVIEWER = "No agent is there to review this change: review it and approve it"
ATTEMPTS = 1  # of a gate's command; S1's three are what a step's call gets
TIMEOUT_SECONDS = 600


class Dimension(StrEnum):
    """What one reviewer looks for. `general` is S2's single reviewer."""

    CORRECTNESS = "correctness"
    PERFORMANCE = "performance"
    SECURITY = "security"
    ELEGANCE = "elegance"
    RESILIENCE = "resilience"
    STYLE = "style"
    SMELLS = "smells"
    GENERAL = "general"


DIMENSIONS = tuple(it for it in Dimension if it is not Dimension.GENERAL)


class Where(StrEnum):
    """What a gate judges: a task's change, or a candidate of the train."""

    CHANGE = "change"
    TRAIN = "train"


class Report(StrEnum):
    """The format a command reports in."""

    JUNIT = "junit"
    SARIF = "sarif"
    TAP = "tap"
    PYTEST = "pytest"
    RUFF = "ruff"
    MYPY = "mypy"
    TSC = "tsc"
    ESLINT = "eslint"
    GO = "go"
    GENERIC = "generic"


class Placement(Struct, frozen=True, kw_only=True):
    """When and beside what a gate runs; the same for every kind."""

    serial: bool
    on: tuple[Where, ...]
    fail_fast: bool = False
    exclusive: str = ""
    when: str = ""
    paths: tuple[str, ...] = ()

    @property
    def conditional(self) -> bool:
        """Whether there are changes that it does not judge."""
        return bool(self.when or self.paths)


class CommandGate(Struct, frozen=True, kw_only=True):
    """A shell command whose exit decides. An empty command is a problem, never a pass."""

    name: str
    place: Placement
    command: str
    attempts: int = ATTEMPTS
    timeout: int = TIMEOUT_SECONDS
    report: Report | None = None
    needs: tuple[str, ...] = ()  # labels of the hosts that may run it, where there are several


class DifferentialGate(Struct, frozen=True, kw_only=True):
    """The test command over {base tests, candidate tests} x {base code, candidate code}."""

    name: str
    place: Placement
    command: str
    attempts: int = ATTEMPTS
    timeout: int = TIMEOUT_SECONDS
    report: Report | None = None
    needs: tuple[str, ...] = ()  # labels of the hosts that may run it, where there are several


class ParallelReviewGate(Struct, frozen=True, kw_only=True):
    """One reviewer a dimension, then synthesis. What an advisory one finds never blocks."""

    name: str
    place: Placement
    dimensions: tuple[Dimension, ...] = DIMENSIONS
    advisory: tuple[Dimension, ...] = ()
    reviewer: str = ""

    @property
    def reviewers(self) -> tuple[Dimension, ...]:
        return tuple(dict.fromkeys((*self.dimensions, *self.advisory)))

    @property
    def blocking(self) -> tuple[Dimension, ...]:
        return tuple(it for it in self.reviewers if it not in self.advisory)


class MultipassReviewGate(Struct, frozen=True):
    """One reviewer, pass after pass, until it says that it has converged."""

    name: str
    place: Placement
    reviewer: str = ""


class HumanGate(Struct, frozen=True):
    name: str
    place: Placement
    prompt: str = APPROVE
    approvers: tuple[str, ...] = ()  # whose yes it takes; anybody's who may land where empty


Gate = CommandGate | DifferentialGate | ParallelReviewGate | MultipassReviewGate | HumanGate


class WrittenGate(Struct, frozen=True, kw_only=True):
    """One `[[gates.list]]` entry as it stands in a file; None is a key that was not written."""

    name: str
    type: GateKind | None = None
    command: str | None = None
    serial: bool | None = None
    fail_fast: bool | None = None
    attempts: int | None = None
    timeout: int | None = None
    report: Report | None = None
    needs: tuple[str, ...] | None = None
    exclusive: str | None = None
    on: tuple[Where, ...] | None = None
    when: str | None = None
    paths: tuple[str, ...] | None = None
    dimensions: tuple[Dimension, ...] | None = None
    advisory: tuple[Dimension, ...] | None = None
    reviewer: str | None = None
    prompt: str | None = None
    approvers: tuple[str, ...] | None = None


_RUNS_COMMAND = frozenset({"command", "attempts", "timeout", "report", "needs"})

# The keys that only some kinds know; all others belong to every kind.
OWN_KEYS = {
    GateKind.COMMAND: _RUNS_COMMAND,
    GateKind.DIFFERENTIAL: _RUNS_COMMAND,
    GateKind.PARALLEL_REVIEW: frozenset({"dimensions", "advisory", "reviewer"}),
    GateKind.MULTIPASS_REVIEW: frozenset({"reviewer"}),
    GateKind.HUMAN: frozenset({"prompt", "approvers"}),
}

# A human is asked when everything before has passed; reviews may run beside each other.
_SERIAL = frozenset({GateKind.COMMAND, GateKind.HUMAN})

_ON = {GateKind.COMMAND: (Where.CHANGE, Where.TRAIN)}


def merge_gates(
    formula: Sequence[WrittenGate], listed: Sequence[WrittenGate]
) -> tuple[WrittenGate, ...]:
    """A listed gate overrides the formula's of its name key by key, or is added behind them.

    A formula's human gate stays last, unless the list names it: then the list says where it is.
    """
    own = {gate.name: gate for gate in formula}
    written = {gate.name: gate for gate in listed}
    head = [_over(gate, written) for gate in formula if gate.type is not GateKind.HUMAN]
    placed = {gate.name for gate in head}
    added = [_over(own.get(it.name, it), written) for it in listed if it.name not in placed]
    placed.update(gate.name for gate in added)
    return (*head, *added, *(gate for gate in formula if gate.name not in placed))


def skipping(gates: Sequence[WrittenGate], skip: Sequence[str]) -> tuple[WrittenGate, ...]:
    """Without those that `[gates] skip` names."""
    return tuple(gate for gate in gates if gate.name not in skip)


def misfits(gate: WrittenGate) -> tuple[str, ...]:
    """The keys that mean nothing for the gate's type."""
    known = OWN_KEYS[gate.type] if gate.type else frozenset[str]()
    special = frozenset[str]().union(*OWN_KEYS.values())
    return tuple(key for key in sorted(special - known) if _is_written(gate, key))


def configured(gate: WrittenGate, kind: GateKind, command: str) -> Gate:
    """The gate with every default filled in; `command` is what `[commands]` has for it."""
    place = _placement(gate, kind)
    match kind:
        case GateKind.COMMAND | GateKind.DIFFERENTIAL:
            runs = CommandGate if kind is GateKind.COMMAND else DifferentialGate
            return runs(
                name=gate.name,
                place=place,
                command=gate.command if gate.command is not None else command,
                attempts=gate.attempts or ATTEMPTS,
                timeout=gate.timeout or TIMEOUT_SECONDS,
                report=gate.report,
                needs=gate.needs or (),
            )
        case GateKind.PARALLEL_REVIEW:
            return ParallelReviewGate(
                name=gate.name,
                place=place,
                dimensions=DIMENSIONS if gate.dimensions is None else gate.dimensions,
                advisory=gate.advisory or (),
                reviewer=gate.reviewer or "",
            )
        case GateKind.MULTIPASS_REVIEW:
            return MultipassReviewGate(gate.name, place, gate.reviewer or "")
        case GateKind.HUMAN:
            return HumanGate(gate.name, place, gate.prompt or APPROVE, gate.approvers or ())


def kind_of(gate: Gate) -> GateKind:
    match gate:
        case CommandGate():
            return GateKind.COMMAND
        case DifferentialGate():
            return GateKind.DIFFERENTIAL
        case ParallelReviewGate():
            return GateKind.PARALLEL_REVIEW
        case MultipassReviewGate():
            return GateKind.MULTIPASS_REVIEW
        case HumanGate():
            return GateKind.HUMAN


def with_protected(gates: Sequence[Gate], protected: Sequence[str]) -> tuple[Gate, ...]:
    """A human is asked of what is protected: by the list's own gate, whatever its condition, or by
    one more at its end.
    """
    humans = [it for it in gates if isinstance(it, HumanGate) and Where.CHANGE in it.place.on]
    if not protected or any(not gate.place.conditional for gate in humans):
        return tuple(gates)
    if humans:
        always = replace(humans[-1], place=replace(humans[-1].place, when="", paths=()))
        return tuple(always if gate is humans[-1] else gate for gate in gates)
    place = Placement(serial=True, on=(Where.CHANGE,))
    return (*gates, HumanGate(PROTECTED, place, "This change touches protected files"))


def as_pinned(gates: Sequence[Gate], pinned: Sequence[GateRef]) -> tuple[Gate, ...]:
    """The gates, with a human's gate in place of each review that the task pinned as a human's."""
    asked = {it.name for it in pinned if it.kind is GateKind.HUMAN}
    return tuple(
        HumanGate(gate.name, replace(gate.place, serial=True), NO_REVIEWER)
        if kind_of(gate) in REVIEWS and gate.name in asked
        else gate
        for gate in gates
    )


def condition(gate: Gate) -> str:
    """When it judges, in the configuration's words; empty where it judges every change."""
    paths = f"paths = {json.dumps(gate.place.paths)}" if gate.place.paths else ""
    return " and ".join(filter(None, (paths, gate.place.when)))


def waves(gates: Iterable[Gate]) -> tuple[tuple[Gate, ...], ...]:
    """A serial gate is a wave alone; neighbours that are not serial run together."""
    found: list[tuple[Gate, ...]] = []
    open_wave = False
    for gate in gates:
        if open_wave and not gate.place.serial:
            found[-1] = (*found[-1], gate)
        else:
            found.append((gate,))
        open_wave = not gate.place.serial
    return tuple(found)


def _placement(gate: WrittenGate, kind: GateKind) -> Placement:
    return Placement(
        serial=kind in _SERIAL if gate.serial is None else gate.serial,
        on=_ON.get(kind, (Where.CHANGE,)) if gate.on is None else gate.on,
        fail_fast=gate.fail_fast or False,
        exclusive=gate.exclusive or "",
        when=gate.when or "",
        paths=gate.paths or (),
    )


def _over(gate: WrittenGate, written: dict[str, WrittenGate]) -> WrittenGate:
    """The user's keys before the formula's; another type keeps none of the formula's keys."""
    user = written.get(gate.name)
    if user is None or user is gate or user.type not in {None, gate.type}:
        return user or gate
    return WrittenGate(
        name=gate.name,
        type=gate.type,
        command=gate.command if user.command is None else user.command,
        serial=gate.serial if user.serial is None else user.serial,
        fail_fast=gate.fail_fast if user.fail_fast is None else user.fail_fast,
        attempts=gate.attempts if user.attempts is None else user.attempts,
        timeout=gate.timeout if user.timeout is None else user.timeout,
        report=gate.report if user.report is None else user.report,
        needs=gate.needs if user.needs is None else user.needs,
        exclusive=gate.exclusive if user.exclusive is None else user.exclusive,
        on=gate.on if user.on is None else user.on,
        when=gate.when if user.when is None else user.when,
        paths=gate.paths if user.paths is None else user.paths,
        dimensions=gate.dimensions if user.dimensions is None else user.dimensions,
        advisory=gate.advisory if user.advisory is None else user.advisory,
        reviewer=gate.reviewer if user.reviewer is None else user.reviewer,
        prompt=gate.prompt if user.prompt is None else user.prompt,
        approvers=gate.approvers if user.approvers is None else user.approvers,
    )


def _is_written(gate: WrittenGate, key: str) -> bool:
    return getattr(gate, key) is not None
