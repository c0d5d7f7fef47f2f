"""A task and its row, in both directions."""

from dataclasses import replace
from functools import lru_cache

from lockgate.adapters.store.fields import Fields, Row, damaged
from lockgate.adapters.store.json_forms import (
    approvals_from_json,
    approvals_to_json,
    history_from_json,
    history_to_json,
    phase_from_json,
    phase_to_json,
    pinned_from_json,
    pinned_to_json,
    seats_from_json,
    seats_to_json,
    size_from_json,
    size_to_json,
)
from lockgate.adapters.store.rows import Values, inside, storable
from lockgate.core.model.event_log import canonical
from lockgate.core.model.task import Cause, Pinned, ProjectId, Status, Task, TaskId


def task_to_row(task: Task) -> Values:
    return storable(
        {
            "id": task.id,
            "project": task.project,
            "summary": task.summary,
            "goal": task.goal,
            "branch": task.branch,
            "agent": task.agent,
            "created": float(task.created),
            "updated": float(task.updated),
            "rev": task.rev,
            "status": task.status.name,
            "phase": None if task.phase is None else phase_to_json(task.phase),
            "priority": task.priority,
            "auto_start": int(task.auto_start),
            "depends_on": canonical(task.depends_on),
            "iteration": task.iteration,
            "review_round": task.review_round,
            "crash_count": task.crash_count,
            "failed_attempts": task.failed_attempts,
            "generation": task.generation,
            "since": task.since,
            "dead": int(task.dead),
            "taken_over": int(task.taken_over),
            "not_before": float(task.not_before),
            "exhausted": int(task.exhausted),
            "usd": float(task.usd),
            "tokens": task.tokens,
            "seconds": float(task.seconds),
            "candidate": task.candidate,
            "patch": task.patch,
            "protected": canonical(task.protected),
            "passed": canonical(task.passed),
            "waiting": task.waiting,
            "approvals": approvals_to_json(task.approvals),
            **_of_evaluation(task),
            "cause": None if task.cause is None else task.cause.value,
            "directive": task.directive,
            "history": history_to_json(task.history),
            "spent": canonical(sorted(task.spent)),
            "pinned": None if task.pinned is None else pinned_to_json(task.pinned),
        }
    )


def _of_evaluation(task: Task) -> Values:
    return {
        "seats": seats_to_json(task.seats),
        "steps_passed": canonical(task.steps_passed),
        "step_failures": task.step_failures,
        "escalated": task.escalated,
        "troubled": task.troubled,
        "to_land": int(task.to_land),
        "held": task.held,
        "landed": task.landed,
        "size": size_to_json(task.size),
    }


def task_from_row(row: Row) -> Task:
    it = Fields(f"task {row.get('id')!r}", row)
    task = Task(
        id=TaskId(it.text("id")),
        project=ProjectId(it.text("project")),
        summary=it.text("summary"),
        goal=it.text("goal"),
        branch=it.text("branch"),
        agent=it.text("agent"),
        created=it.real("created"),
        updated=it.real("updated"),
        rev=it.whole("rev"),
        status=_status(it),
        phase=None if it.text_or_none("phase") is None else phase_from_json(inside(it, "phase")),
        priority=it.whole("priority"),
        auto_start=it.flag("auto_start"),
        depends_on=tuple(TaskId(id) for id in it.texts("depends_on")),
        iteration=it.whole("iteration"),
        review_round=it.whole("review_round"),
        crash_count=it.whole("crash_count"),
        failed_attempts=it.whole("failed_attempts"),
        generation=it.whole("generation"),
        since=it.whole("since"),
        dead=it.flag("dead"),
        taken_over=it.flag("taken_over"),
        not_before=it.real("not_before"),
        exhausted=it.flag("exhausted"),
        usd=it.real("usd"),
        tokens=it.whole("tokens"),
        seconds=it.real("seconds"),
        candidate=it.text("candidate"),
        patch=it.text("patch"),
        protected=tuple(it.texts("protected")),
        passed=tuple(it.texts("passed")),
        waiting=it.text("waiting"),
        approvals=approvals_from_json(f"{it.where}, approvals", it.json("approvals")),
        cause=None if it.text_or_none("cause") is None else it.choice("cause", Cause),
        directive=it.text("directive"),
        history=history_from_json(f"{it.where}, history", it.json("history")),
        spent=frozenset(it.texts("spent")),
        pinned=_pinned(it),
    )
    return _with_evaluation(task, it)


def _pinned(it: Fields) -> Pinned | None:
    text = it.text_or_none("pinned")
    return None if text is None else _pinned_in(it.where, text)


@lru_cache
def _pinned_in(where: str, text: str) -> Pinned:
    """A task's rules do not move while it runs, and its row is read again and again."""
    return pinned_from_json(inside(Fields(where, {"pinned": text}), "pinned"))


def _with_evaluation(task: Task, it: Fields) -> Task:
    return replace(
        task,
        seats=seats_from_json(f"{it.where}, seats", it.json("seats")),
        steps_passed=tuple(it.texts("steps_passed")),
        step_failures=it.whole("step_failures"),
        escalated=it.text("escalated"),
        troubled=it.text("troubled"),
        to_land=it.flag("to_land"),
        held=it.text("held"),
        landed=it.text("landed"),
        size=size_from_json(inside(it, "size")),
    )


def _status(it: Fields) -> Status:
    """Stored by name, shown by value."""
    name = it.text("status")
    if name in Status.__members__:
        return Status[name]
    raise damaged(it.where, f"there is no status {name!r}")
