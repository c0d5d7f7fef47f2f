"""The map: which status follows which, who may ask, what it needs and what it sets off.

This file alone decides whether a task may move. Without the arrows that only the orchestrator
takes, and the rows of `paused-for-intervention`, it is S2's map, pair by pair.
"""

from collections.abc import Callable
from itertools import takewhile

from msgspec import Struct

from lockgate.core.lifecycle.decision import (
    Declined,
    Effects,
    Evidence,
    Refusal,
    end,
    human,
    judges,
    prepare,
    publish,
    release,
    worker,
)
from lockgate.core.model.commits import SIGN, unsigned
from lockgate.core.model.gates import PROTECTED
from lockgate.core.model.limits import Limits
from lockgate.core.model.task import REVIEWS, Actor, GateKind, GateRef, Role, Status, Task
from lockgate.core.text.steering import asked_of
from lockgate.core.text.task_file import VERDICT_RULE, Verdict

# Needs: what an arrow asks of the evidence, answered in words for the caller.


class Missing(Struct, frozen=True):
    """What an arrow still wants, and what to do about it."""

    why: str
    fix: str = ""


# A need answers what is missing; None means nothing is.
Need = Callable[[Evidence], Missing | None]


def configured(seen: Evidence) -> Missing | None:
    """Its agent is there and logged in, commits can be signed where they must be, and base's
    configuration can be taken and is agreed to.
    """
    if seen.misconfigured is not None:
        fix = "fix .lockgate/config.toml on the base branch, and commit it"
        return Missing(seen.misconfigured, fix)
    if seen.untrusted is not None:
        return Missing(seen.untrusted, "lockgate trust, in its repository")
    if seen.unsigned is not None:
        return Missing(unsigned(seen.unsigned), SIGN)
    return None if seen.hosts_have_agents else _agents_are_there(seen)


def _agents_are_there(seen: Evidence) -> Missing | None:
    if seen.agent_missing is not None:
        return Missing(f"agent {seen.task.agent} is not installed", seen.agent_missing)
    if seen.login_missing is not None:
        return Missing(seen.login_missing.why, seen.login_missing.fix)
    return None


def handoff(seen: Evidence) -> Missing | None:
    """`## Handoff` exists, is not empty and has not moved this task before."""
    return _section(seen, "Handoff", seen.found.handoff_digest)


def passed(seen: Evidence) -> Missing | None:
    """`## Review` begins with the verdict PASS."""
    return _verdict(seen, Verdict.PASS)


def failed_early(seen: Evidence) -> Missing | None:
    """`## Review` begins with the verdict FAIL, and a review round is left."""
    return _verdict(seen, Verdict.FAIL) or _round_is(seen, last=False)


def failed_last(seen: Evidence) -> Missing | None:
    """`## Review` begins with the verdict FAIL, and this was the last review round."""
    return _verdict(seen, Verdict.FAIL) or _round_is(seen, last=True)


def landed(seen: Evidence) -> Missing | None:
    """The change is in the target branch."""
    if seen.landed:
        return None
    return Missing(
        f"branch {seen.task.branch} is not in the target branch",
        f"the queue brings it there: lockgate approve {seen.task.id}",
    )


def not_landing(seen: Evidence) -> Missing | None:
    """The target is not being moved to the change at this moment."""
    if not seen.task.landed:
        return None
    why = f"it is landing at this moment, as {seen.task.landed[:12]}"
    return Missing(why, f"see what became of it: lockgate task show {seen.task.id}")


def gates_passed(seen: Evidence) -> Missing | None:
    """Every gate but the review has passed on this candidate. No flag skips this one.

    A reviewer answers for its own gate: what comes after it is judged once it has spoken.
    """
    gates = gates_of(seen)
    if seen.actor is not Actor.HUMAN:
        gates = tuple(takewhile(lambda gate: gate.kind not in REVIEWS, gates))
    waiting = [it.name for it in gates if it.kind not in REVIEWS and it.name not in passed_by(seen)]
    if not waiting:
        return None
    return Missing(
        f"these gates have not passed: {', '.join(waiting)}",
        f"see what is judged and how: lockgate task why {seen.task.id}",
    )


def stepped_through(seen: Evidence) -> Missing | None:
    """Every step of it has passed, where it has any. No flag skips this one."""
    left = steps_left(seen.task)
    if not left:
        return None
    return Missing(
        f"these steps have not passed: {', '.join(left)}",
        f"run the next one: lockgate step run {left[0]} {seen.task.id}",
    )


def steps_left(task: Task) -> tuple[str, ...]:
    """The steps that have yet to pass, the next one first."""
    names = task.pinned.steps if task.pinned else ()
    return tuple(name for name in names if name not in task.steps_passed)


ADDED = GateRef(PROTECTED, GateKind.HUMAN)


def gates_of(seen: Evidence) -> tuple[GateRef, ...]:
    """The configured gates, and a human's where the change touches what is protected."""
    gates = seen.rules.gates
    asked = any(gate.kind is GateKind.HUMAN for gate in gates)
    touched = asked_of(seen.task.protected, seen.rules)
    return (*gates, ADDED) if touched and not asked else gates


def passed_by(seen: Evidence) -> frozenset[str]:
    """The gates that have passed on the commit that is judged."""
    return frozenset(seen.task.passed)


def last_round(task: Task, limits: Limits) -> bool:
    return task.review_round >= limits.review_rounds


_WRITE = "write it into TASK.md (lockgate task show says where that is), then run this again"


def _section(seen: Evidence, title: str, digest: str | None) -> Missing | None:
    if digest is None:
        about = [it for it in seen.found.problems if f"## {title}" in it or "## " not in it]
        return Missing(about[0] if about else f"TASK.md has no '## {title}' section", _WRITE)
    if digest in seen.task.spent:
        return Missing(f"'## {title}' has not changed since it last moved this task", _WRITE)
    return None


def _verdict(seen: Evidence, wanted: Verdict) -> Missing | None:
    missing = _section(seen, "Review", seen.found.review_digest)
    if missing:
        return missing
    if seen.found.verdict is None:
        return Missing(f"'## Review' has no verdict: {VERDICT_RULE}", _WRITE)
    if seen.found.verdict is not wanted:
        return Missing(
            f"the verdict in '## Review' is {seen.found.verdict.name}, not {wanted.name}"
        )
    return None


def _round_is(seen: Evidence, *, last: bool) -> Missing | None:
    if last_round(seen.task, seen.rules.limits) is last:
        return None
    target = Status.WORKING if last else Status.STUCK
    return Missing(
        f"after review round {seen.task.review_round} of {seen.rules.limits.review_rounds}"
        f" a FAIL goes to {target}",
        f"lockgate task update {seen.task.id} --status {target}",
    )


S = Status
HUMAN = frozenset({Actor.HUMAN})
WORKER = HUMAN | {Actor.WORKER}
REVIEWER = HUMAN | {Actor.REVIEWER}
ORCHESTRATOR: frozenset[Actor] = frozenset()


class Rule(Struct, frozen=True):
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
    Rule(S.PENDING, S.WORKING, HUMAN, (prepare, worker), proof=configured),
    Rule(S.PENDING, S.CLARIFICATION, HUMAN, (prepare, worker), proof=configured),
    Rule(S.PENDING, S.CANCELLED, HUMAN, (end, release)),
    Rule(S.CLARIFICATION, S.WORKING, WORKER, (worker,)),
    Rule(S.CLARIFICATION, S.CANCELLED, HUMAN, (end, release)),
    Rule(S.WORKING, S.AGENT_REVIEW, WORKER, (judges,), handoff, stepped_through),
    Rule(S.WORKING, S.CLARIFICATION, WORKER, (human,)),
    Rule(S.WORKING, S.STUCK, HUMAN, (end, human)),
    Rule(S.WORKING, S.CANCELLED, HUMAN, (end, release)),
    Rule(S.WORKING, S.PAUSED_FOR_INTERVENTION, ORCHESTRATOR, (end, human)),
    Rule(S.AGENT_REVIEW, S.REVIEWING, REVIEWER, (publish, human), passed, gates_passed),
    Rule(S.AGENT_REVIEW, S.WORKING, REVIEWER, (worker,), failed_early),
    Rule(S.AGENT_REVIEW, S.STUCK, REVIEWER, (end, human), failed_last),
    Rule(S.AGENT_REVIEW, S.CANCELLED, HUMAN, (end, release)),
    Rule(S.AGENT_REVIEW, S.PAUSED_FOR_INTERVENTION, ORCHESTRATOR, (end, human)),
    Rule(S.REVIEWING, S.DONE, HUMAN, (end, release), proof=landed),
    Rule(S.REVIEWING, S.CANCELLED, HUMAN, (end, release), proof=not_landing),
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
        return Missing(f"a task that is {status} cannot be moved", f"lockgate task why {id}")
    return Missing(
        f"a task that is {status} can only become {' or '.join(there)}",
        f"lockgate task update {id} --status {there[0]}",
    )


def _not_theirs(seen: Evidence, rule: Rule) -> Missing:
    asker = f"a {seen.actor}"
    there = exits(rule.source, seen.actor)
    why = f"{asker} may not ask for it" if rule.by else "only the orchestrator makes this move"
    if there:
        return Missing(f"{why}; from {rule.source} {asker} may go to {', '.join(there)}")
    return Missing(f"{why}; {asker} has no move from {rule.source}", "leave the status as it is")
