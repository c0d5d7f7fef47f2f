"""The map: which status follows which, who may ask, what it needs and what it sets off.

This file alone decides whether a task may move. Without the arrows that only the orchestrator
takes, and the rows of `paused-for-intervention`, it is S2's map, pair by pair.
"""

from collections.abc import Callable
from dataclasses import dataclass

from lockgate.core import needs
from lockgate.core.decision import Declined, Evidence, Refusal
from lockgate.core.effects import Effects, end, human, judges, prepare, publish, release, worker
from lockgate.core.model import Actor, Role, Status, Task
from lockgate.core.needs import Missing, Need

S = Status
HUMAN = frozenset({Actor.HUMAN})
WORKER = HUMAN | {Actor.WORKER}
REVIEWER = HUMAN | {Actor.REVIEWER}
ORCHESTRATOR: frozenset[Actor] = frozenset()


@dataclass(frozen=True, slots=True)
class Rule:
    """One arrow. The orchestrator may take each of them; `by` says who else may.

    `need` is an artifact, which a human may skip by force; `proof` is never skipped.
    """

    source: Status
    target: Status
    by: frozenset[Actor]
    sets_off: tuple[Callable[[Task], Effects], ...] = ()
    need: Need | None = None
    proof: Need | None = None


RULES = (
    Rule(S.PENDING, S.WORKING, HUMAN, (prepare, worker), proof=needs.configured),
    Rule(S.PENDING, S.CLARIFICATION, HUMAN, (prepare, worker), proof=needs.configured),
    Rule(S.PENDING, S.CANCELLED, HUMAN, (end, release)),
    Rule(S.CLARIFICATION, S.WORKING, WORKER, (worker,)),
    Rule(S.CLARIFICATION, S.CANCELLED, HUMAN, (end, release)),
    Rule(S.WORKING, S.AGENT_REVIEW, WORKER, (judges,), needs.handoff, needs.stepped_through),
    Rule(S.WORKING, S.CLARIFICATION, WORKER, (human,)),
    Rule(S.WORKING, S.STUCK, HUMAN, (end, human)),
    Rule(S.WORKING, S.CANCELLED, HUMAN, (end, release)),
    Rule(S.WORKING, S.PAUSED_FOR_INTERVENTION, ORCHESTRATOR, (end, human)),
    Rule(S.AGENT_REVIEW, S.REVIEWING, REVIEWER, (publish, human), needs.passed, needs.gates_passed),
    Rule(S.AGENT_REVIEW, S.WORKING, REVIEWER, (worker,), needs.failed_early),
    Rule(S.AGENT_REVIEW, S.STUCK, REVIEWER, (end, human), needs.failed_last),
    Rule(S.AGENT_REVIEW, S.CANCELLED, HUMAN, (end, release)),
    Rule(S.AGENT_REVIEW, S.PAUSED_FOR_INTERVENTION, ORCHESTRATOR, (end, human)),
    Rule(S.REVIEWING, S.DONE, HUMAN, (end, release), proof=needs.landed),
    Rule(S.REVIEWING, S.CANCELLED, HUMAN, (end, release), proof=needs.not_landing),
    Rule(S.REVIEWING, S.WORKING, ORCHESTRATOR, (worker,)),
    Rule(S.STUCK, S.WORKING, HUMAN, (worker,)),
    Rule(S.STUCK, S.AGENT_REVIEW, WORKER, (judges,)),
    Rule(S.STUCK, S.CANCELLED, HUMAN, (end, release)),
    Rule(S.PAUSED_FOR_INTERVENTION, S.PENDING, HUMAN),
    Rule(S.PAUSED_FOR_INTERVENTION, S.CANCELLED, HUMAN, (end, release)),
)

ARROWS = {(rule.source, rule.target): rule for rule in RULES}
OWNERS = {S.WORKING: Role.WORKER, S.AGENT_REVIEW: Role.REVIEWER}


def exits(status: Status, actor: Actor = Actor.HUMAN) -> tuple[Status, ...]:
    """Where this actor may ask to go from here."""
    return tuple(rule.target for rule in RULES if rule.source is status and actor in rule.by)


def validate_transition(
    seen: Evidence, target: Status, *, force: bool = False
) -> Refusal | Declined | None:
    """Whether the arrow may be taken: the map first, then who asks, then what it needs."""
    if seen.task.status is target:
        return Declined(f"it is {target} already", f"lockgate task show {seen.task.id}")
    rule = ARROWS.get((seen.task.status, target))
    if rule is None:
        missing: Missing | None = _off_the_map(seen)
    elif seen.actor is not Actor.ORCHESTRATOR and seen.actor not in rule.by:
        missing = _not_theirs(seen, rule)
    else:
        missing = unheard(seen) or unmet(seen, rule, force=force)
    if missing is None:
        return None
    return Refusal(source=seen.task.status, target=target, why=missing.why, fix=missing.fix)


def unmet(seen: Evidence, rule: Rule, *, force: bool = False) -> Missing | None:
    """What the arrow still wants. Force is an artifact's substitute, never a proof's."""
    missing = rule.need(seen) if rule.need and not force else None
    return missing or (rule.proof(seen) if rule.proof else None)


def unheard(seen: Evidence) -> Missing | None:
    """Why the session that asks has no say any more; None where it has, or where none asks."""
    session, seats = seen.session, seen.task.seats
    if session is None:
        return None
    if session.ended is not None:
        return Missing("this session has ended", f"lockgate task show {seen.task.id}")
    if session.role is Role.WORKER and session.generation != seen.task.generation:
        return Missing("a newer session works on this task", f"lockgate task show {seen.task.id}")
    if session.role is Role.REVIEWER and session.generation < seen.task.since:
        return Missing(
            "this session reviewed an earlier evaluation", f"lockgate task show {seen.task.id}"
        )
    if session.role is Role.REVIEWER and session.round != seen.task.review_round:
        return Missing(
            f"this session reviewed round {session.round}, the task is in {seen.task.review_round}",
            f"lockgate task show {seen.task.id}",
        )
    if any(it.name == session.seat != "" and it.generation > session.generation for it in seats):
        return Missing("another reviewer has its seat", f"lockgate task show {seen.task.id}")
    return None


def _off_the_map(seen: Evidence) -> Missing:
    status, id = seen.task.status, seen.task.id
    there = exits(status, seen.actor)
    if not there:
        return Missing(f"from {status} no move is yours to ask for", f"lockgate task why {id}")
    return Missing(
        f"the map has no such arrow: from {status} you may go to {', '.join(there)}",
        f"lockgate task update {id} --status {there[0]}",
    )


def _not_theirs(seen: Evidence, rule: Rule) -> Missing:
    asker = f"a {seen.actor}"
    there = exits(rule.source, seen.actor)
    why = f"{asker} may not ask for it" if rule.by else "only the orchestrator takes this arrow"
    if there:
        return Missing(f"{why}; from {rule.source} {asker} may go to {', '.join(there)}")
    return Missing(f"{why}; {asker} has no move from {rule.source}", "leave the status as it is")
