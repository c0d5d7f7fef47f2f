"""Reads a row and the JSON in it strictly: a value of another type is damage, never a default.

Such JSON are a task's phase, its pinned rules, an effect.
"""

import json
from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache
from typing import TypeVar, cast

from lockgate.core.lifecycle.decision import (
    DiscardTask,
    Effect,
    EndSessions,
    EvaluateGates,
    MirrorTask,
    NotifyHuman,
    PrepareWorkspace,
    PublishChange,
    ReleaseWorkspace,
    SpawnAgent,
)
from lockgate.core.model.commits import Author
from lockgate.core.model.facts import as_facts, canonical
from lockgate.core.model.findings import Finding, GateFeedback, Location, Priority
from lockgate.core.model.limits import Limits, RetryConfig, Strategy
from lockgate.core.model.task import (
    Approval,
    Budget,
    Evaluating,
    Failed,
    GateKind,
    GateRef,
    GatesPassed,
    IterationOutcome,
    IterationRecord,
    NeedsFixes,
    Pinned,
    Revert,
    Role,
    Seat,
    Size,
    Status,
    Stuck,
    TaskId,
    TaskPhase,
    Word,
    Working,
)
from lockgate.errors import Unavailable

Row = Mapping[str, object]
Member = TypeVar("Member", bound=Enum)


class Fields:
    """The fields of one thing; `where` names it in the message when one is damaged."""

    def __init__(self, where: str, values: Row) -> None:
        self.where = where
        self._values = values

    def text(self, name: str) -> str:
        value = self._values.get(name)
        if isinstance(value, str):
            return value
        raise damaged(self.where, f"{name} is {value!r}, not a text")

    def text_or_none(self, name: str) -> str | None:
        return None if self._is_none(name) else self.text(name)

    def whole(self, name: str) -> int:
        value = self._values.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise damaged(self.where, f"{name} is {value!r}, not a whole number")

    def whole_or_none(self, name: str) -> int | None:
        return None if self._is_none(name) else self.whole(name)

    def real(self, name: str) -> float:
        value = self._values.get(name)
        if isinstance(value, float):
            return value
        return float(self.whole(name))

    def real_or_none(self, name: str) -> float | None:
        return None if self._is_none(name) else self.real(name)

    def flag(self, name: str) -> bool:
        value = self._values.get(name)
        if value in (0, 1):
            return bool(value)
        raise damaged(self.where, f"{name} is {value!r}, neither true nor false")

    def choice(self, name: str, choices: type[Member]) -> Member:
        value = self.text(name)
        try:
            return choices(value)
        except ValueError:
            raise damaged(self.where, f"{name} is {value!r}, which is none of its words") from None

    def has(self, name: str) -> bool:
        """Whether it is there at all: a row written by an earlier version may lack it."""
        return name in self._values

    def inner(self, name: str) -> "Fields":
        return fields_of(f"{self.where}, {name}", self._values.get(name))

    def inner_or_none(self, name: str) -> "Fields | None":
        return None if self._is_none(name) else self.inner(name)

    def each(self, name: str) -> list["Fields"]:
        where = f"{self.where}, {name}"
        return [fields_of(where, it) for it in items_of(where, self._values.get(name))]

    def listed(self, name: str) -> list[object]:
        return items_of(f"{self.where}, {name}", self._values.get(name))

    def json(self, name: str) -> object:
        """What a column of JSON text says."""
        text = self.text(name)
        if text == "[]":  # most lists of a row are empty, and a board reads hundreds of rows
            return []
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise damaged(self.where, f"{name} is not JSON") from None

    def texts(self, name: str) -> list[str]:
        """What a column of JSON text says, when it must be a list of texts."""
        items = items_of(f"{self.where}, {name}", self.json(name))
        found = [it for it in items if isinstance(it, str)]
        if len(found) != len(items):
            raise damaged(self.where, f"{name} is not a list of texts")
        return found

    def _is_none(self, name: str) -> bool:
        if name not in self._values:
            raise damaged(self.where, f"{name} is missing")
        return self._values[name] is None


def fields_of(where: str, value: object) -> Fields:
    return Fields(where, object_of(where, value))


def object_of(where: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise damaged(where, "it is not a JSON object")
    return cast("dict[str, object]", value)  # the keys of a JSON object are texts


def items_of(where: str, value: object) -> list[object]:
    if not isinstance(value, list):
        raise damaged(where, "it is not a JSON list")
    return cast("list[object]", value)  # isinstance cannot say what is in it


def damaged(where: str, why: str) -> Unavailable:
    return Unavailable(
        f"{where} was not read",
        why=f"the database is damaged: {why}",
        fix="restore the database from a backup; what happened stands in its events",
    )


# The values inside a row that are JSON.


# How each kind of effect is read back; a test holds it against the union.
EFFECTS: dict[str, Callable[[Fields], Effect]] = {
    "MirrorTask": lambda it: MirrorTask(it.flag("accepted")),
    "PrepareWorkspace": lambda _: PrepareWorkspace(),
    "SpawnAgent": lambda it: SpawnAgent(
        it.choice("role", Role),
        it.whole("generation"),
        it.flag("fresh"),
        it.has("interactive") and it.flag("interactive"),
        it.text("seat") if it.has("seat") else "",
        it.text("agent") if it.has("agent") else "",
        it.has("asks") and it.flag("asks"),
        it.has("insists") and it.flag("insists"),
        it.text("instead_of") if it.has("instead_of") else "",
    ),
    "EvaluateGates": lambda it: EvaluateGates(it.whole("iteration")),
    "NotifyHuman": lambda it: NotifyHuman(it.choice("status", Status), it.text("why")),
    "EndSessions": lambda it: EndSessions(
        it.whole("upto") if it.has("upto") else 0,
        it.choice("role", Role) if it.has("role") and it.text_or_none("role") else None,
    ),
    "PublishChange": lambda _: PublishChange(),
    "ReleaseWorkspace": lambda _: ReleaseWorkspace(),
    "DiscardTask": lambda _: DiscardTask(),
}


def phase_to_json(phase: TaskPhase) -> str:
    return canonical({"is": _phase_tag(phase), **as_facts(phase)})


def phase_from_json(it: Fields) -> TaskPhase:
    match it.text("is"):
        case "working":
            return Working(it.text("agent_id"), it.whole("iteration"))
        case "evaluating":
            return Evaluating(it.text("agent_id"), it.whole("iteration"), it.whole("gate_index"))
        case "needs-fixes":
            feedback = _feedback(it.inner("feedback"))
            return NeedsFixes(it.text("agent_id"), it.whole("iteration"), feedback)
        case "gates-passed":
            return GatesPassed(it.text("agent_id"), it.real("completed_at"))
        case "stuck":
            feedback = _feedback(it.inner("last_feedback"))
            return Stuck(it.text("agent_id"), it.whole("iterations"), feedback)
        case "failed":
            return Failed(it.text("reason"))
        case unknown:
            raise damaged(it.where, f"there is no phase {unknown!r}")


def history_to_json(history: tuple[IterationRecord, ...]) -> str:
    return canonical([as_facts(it) for it in history])


def history_from_json(where: str, value: object) -> tuple[IterationRecord, ...]:
    return tuple(_record(fields_of(where, it)) for it in items_of(where, value))


def approvals_to_json(approvals: tuple[Approval, ...]) -> str:
    return canonical([as_facts(it) for it in approvals])


def approvals_from_json(where: str, value: object) -> tuple[Approval, ...]:
    found = [fields_of(where, it) for it in items_of(where, value)]
    return tuple(_approval(it) for it in found)


def _approval(it: Fields) -> Approval:
    by, how = (it.text(name) if it.has(name) else "" for name in ("by", "how"))
    return Approval(it.text("gate"), it.text("patch"), it.text("comment"), by, how)


@lru_cache
def pinned_to_json(pinned: Pinned) -> str:
    return canonical(as_facts(pinned))


def pinned_from_json(it: Fields) -> Pinned:
    return Pinned(
        base_commit=it.text("base_commit"),
        config_hash=it.text("config_hash"),
        base=it.text("base"),
        limits=_limits(it.inner("limits")),
        retry=_retry(it.inner("retry")),
        gates=tuple(_gate(at) for at in it.each("gates")),
        respawn=it.flag("respawn"),
        resume=it.flag("resume") if it.has("resume") else True,
        protect=_texts(it, "protect"),
        lands_alone=it.flag("lands_alone") if it.has("lands_alone") else False,
        author=Author(it.text("author")) if it.has("author") else Author.USER,
        steps=_texts(it, "steps"),
        sandboxed=it.flag("sandboxed") if it.has("sandboxed") else True,
        budget=_budget(it.inner("budget")) if it.has("budget") else Budget(),
    )


def words_to_json(words: tuple[Word, ...]) -> str:
    return canonical([as_facts(it) for it in words])


def words_from_json(where: str, value: object) -> tuple[Word, ...]:
    found = [fields_of(where, it) for it in items_of(where, value)]
    return tuple(Word(it.whole("number"), it.text("text"), it.real("said")) for it in found)


def revert_to_json(revert: Revert | None) -> str:
    return canonical(as_facts(revert) if revert else {})


def revert_from_json(it: Fields) -> Revert | None:
    if not it.has("task"):
        return None
    return Revert(
        task=TaskId(it.text("task")),
        landed=it.text("landed"),
        commit=it.text("commit"),
        unjudged=it.text("unjudged"),
    )


def seats_to_json(seats: tuple[Seat, ...]) -> str:
    return canonical([as_facts(it) for it in seats])


def seats_from_json(where: str, value: object) -> tuple[Seat, ...]:
    found = [fields_of(where, it) for it in items_of(where, value)]
    return tuple(
        Seat(
            gate=it.text("gate"),
            dimension=it.text("dimension"),
            generation=it.whole("generation"),
            agent=it.text("agent"),
            said=it.text("said"),
            lost=it.flag("lost"),
        )
        for it in found
    )


def size_to_json(size: Size) -> str:
    return canonical(as_facts(size))


def size_from_json(it: Fields) -> Size:
    lines = ("commits", "lines_added", "lines_removed")
    return Size(
        it.whole("files"), it.whole("added"), *(it.whole(n) if it.has(n) else 0 for n in lines)
    )


def effect_kind(effect: Effect) -> str:
    return type(effect).__name__


def effect_to_json(effect: Effect) -> str:
    return canonical(as_facts(effect))


def effect_from_json(kind: str, it: Fields) -> Effect:
    if kind not in EFFECTS:
        raise damaged(it.where, f"there is no effect {kind!r}")
    return EFFECTS[kind](it)


def _phase_tag(phase: TaskPhase) -> str:
    match phase:
        case Working():
            return "working"
        case Evaluating():
            return "evaluating"
        case NeedsFixes():
            return "needs-fixes"
        case GatesPassed():
            return "gates-passed"
        case Stuck():
            return "stuck"
        case Failed():
            return "failed"


def _record(it: Fields) -> IterationRecord:
    feedback = it.inner_or_none("feedback")
    return IterationRecord(
        iteration=it.whole("iteration"),
        agent_id=it.text("agent_id"),
        outcome=it.choice("outcome", IterationOutcome),
        feedback=None if feedback is None else _feedback(feedback),
    )


def _feedback(it: Fields) -> GateFeedback:
    return GateFeedback(
        gate_name=it.text("gate_name"),
        findings=tuple(_finding(at) for at in it.each("findings")),
        summary=it.text("summary"),
        suggested_action=it.text("suggested_action"),
    )


def _finding(it: Fields) -> Finding:
    place = it.inner_or_none("location")
    return Finding(
        priority=it.choice("priority", Priority),
        issue=it.text("issue"),
        location=None if place is None else _location(place),
        suggestion=it.text_or_none("suggestion"),
        quote=it.text("quote") if it.has("quote") else "",
    )


def _location(it: Fields) -> Location:
    return Location(it.text("file"), it.whole_or_none("line"), it.whole_or_none("column"))


def _gate(it: Fields) -> GateRef:
    return GateRef(
        it.text("name"),
        it.choice("kind", GateKind),
        it.has("fail_fast") and it.flag("fail_fast"),
        it.has("serial") and it.flag("serial"),
        it.has("conditional") and it.flag("conditional"),
        _texts(it, "reviewers"),
        _texts(it, "advisory"),
        it.text("agent") if it.has("agent") else "",
        _texts(it, "approvers"),
    )


def _texts(it: Fields, name: str) -> tuple[str, ...]:
    """None where the row is older than the name."""
    return tuple(str(at) for at in it.listed(name)) if it.has(name) else ()


def _limits(it: Fields) -> Limits:
    return Limits(
        step_failures=it.whole("step_failures"),
        call_attempts=it.whole("call_attempts"),
        call_base_delay_ms=it.whole("call_base_delay_ms"),
        call_backoff=it.real("call_backoff"),
        crashes=it.whole("crashes"),
        review_rounds=it.whole("review_rounds"),
        escalation_threshold=it.whole("escalation_threshold"),
    )


def _budget(it: Fields) -> Budget:
    return Budget(it.real("usd"), it.whole("tokens"), it.whole("minutes"))


def _retry(it: Fields) -> RetryConfig:
    return RetryConfig(
        strategy=it.choice("strategy", Strategy),
        fresh_after_failures=it.whole("fresh_after_failures"),
        max_iterations=it.whole("max_iterations"),
    )
