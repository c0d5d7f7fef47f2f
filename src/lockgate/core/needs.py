"""Needs: what an arrow asks of the evidence, answered in words for whoever asked."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile

from lockgate.core.artifacts import VERDICT_RULE, Verdict
from lockgate.core.decision import Evidence
from lockgate.core.gates import PROTECTED
from lockgate.core.limits import Limits
from lockgate.core.model import REVIEWS, Actor, GateKind, GateRef, Status, Task
from lockgate.core.steering import asked_of


@dataclass(frozen=True, slots=True)
class Missing:
    """What an arrow still wants, and what to do about it."""

    why: str
    fix: str = ""


# A need answers what is missing; None means nothing is.
Need = Callable[[Evidence], Missing | None]


def configured(seen: Evidence) -> Missing | None:
    """Its agent is there, and base's configuration can be taken and asks for nothing unagreed."""
    if seen.misconfigured is not None:
        fix = "mend .lockgate/config.toml on the base branch, and commit it"
        return Missing(seen.misconfigured, fix)
    if seen.untrusted is not None:
        return Missing(seen.untrusted, "lockgate trust, in its repository")
    if seen.agent_missing is not None:
        return Missing(f"agent {seen.task.agent} is not installed", seen.agent_missing)
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
        f"merge it, then run again: lockgate task update {seen.task.id} --status done",
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
