"""A verdict by hand, S2's way: PASS or FAIL in `## Review`, from a reviewer or a human."""

import json
from dataclasses import replace

from lockgate.core.artifacts import Verdict
from lockgate.core.decision import Decision, Evidence
from lockgate.core.effects import EndSessions
from lockgate.core.evaluation_ends import evaluation_failed
from lockgate.core.findings import Finding, GateFeedback, Priority
from lockgate.core.gate_events import GateCompleted
from lockgate.core.judging import goes_on, passing
from lockgate.core.model import REVIEWS, Role
from lockgate.core.review_turns import filled
from lockgate.core.seating import seat_of


def verdict_given(seen: Evidence, verdict: Verdict) -> Decision:
    """A reviewer's is its seat's own; a human's, who has none, stands for all reviews."""
    seat = seat_of(seen)
    if seat is None:
        return _passed(seen) if verdict is Verdict.PASS else _failed(seen)
    summary = (seen.found.review or "").strip()
    text = json.dumps({"verdict": verdict.name, "summary": summary})
    decision = filled(seen, seat.name, text)
    alone = len(seen.task.seats) == 1
    return replace(decision, review=None) if alone else decision


def _passed(seen: Evidence) -> Decision:
    """The reviewers' own gates passed; those behind them are judged now."""
    reviews = _reviews(seen)
    completed = tuple(GateCompleted(seen.task.id, gate, "passed") for gate in reviews)
    decision = goes_on(passing(seen, reviews))
    return _alone(seen, replace(decision, events=(*completed, *decision.events)))


def _failed(seen: Evidence) -> Decision:
    """A reviewer's FAIL, in its own words, is the feedback."""
    decision = evaluation_failed(seen, _as_feedback(seen.found.review or ""), review=True)
    failed = tuple(
        GateCompleted(seen.task.id, gate, "failed", "the review's verdict is FAIL")
        for gate in _reviews(seen)
    )
    return _alone(seen, replace(decision, events=(*failed, *decision.events)))


def _alone(seen: Evidence, decision: Decision) -> Decision:
    """A human has spoken for the reviewers: whoever still sits is sent home."""
    if all(seat.said for seat in seen.task.seats):
        return decision
    end = EndSessions(seen.task.rev, Role.REVIEWER)
    return replace(decision, effects=(*decision.effects, end))


def _reviews(seen: Evidence) -> list[str]:
    return [gate.name for gate in seen.rules.gates if gate.kind in REVIEWS]


def _as_feedback(review: str) -> GateFeedback:
    """A reviewer's prose, as the next worker gets it."""
    return GateFeedback(
        gate_name="review",
        findings=(Finding(Priority.P1_MAJOR, review.strip()),),
        summary="the review's verdict is FAIL",
        suggested_action="read '## Review' in TASK.md and fix each issue it raises",
    )
