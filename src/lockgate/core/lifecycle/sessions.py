"""The turns of a session: it begins, it ends, a human asks for another or sits down itself."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import (
    Decision,
    Declined,
    EndSessions,
    Evidence,
    Refusal,
    SpawnAgent,
    overtaken,
    wants_fresh,
)
from lockgate.core.lifecycle.map import OWNERS, RULES, Rule, handoff, unheard, unmet
from lockgate.core.lifecycle.moves import Move, move, take, with_a_worker
from lockgate.core.lifecycle.reviews import has_spoken, left_without_verdict, wanted_again
from lockgate.core.lifecycle.transition import (
    Arrival,
    also,
    arrive,
    charge,
    crashed,
    new_question,
    session_id,
    stay,
    within_budget,
)
from lockgate.core.lifecycle.words import ENDED, after_hearing, waiting_words
from lockgate.core.model.agents import USED_UP, End, Ending, Exit, refused_login
from lockgate.core.model.events import (
    AgentAsked,
    AgentCrashed,
    AgentReplaced,
    AgentRespawned,
    AutoAdvanced,
    Event,
    SessionEnded,
    SessionInterrupted,
    SessionStarted,
    TaskHandedBack,
    TaskTakenOver,
    UsageHeld,
    UsageLimited,
    WordsHeard,
)
from lockgate.core.model.task import REVIEWS, Cause, Role, Session, Status, Task, Working
from lockgate.core.text.feedback import one_line

S = Status
LIMIT_WAIT = 300.0  # seconds, where a usage limit names no time to come
GIST = 300  # characters of an agent's last words that are shown in one line
PLAIN = End()
ATTENDED = frozenset({S.WORKING, S.CLARIFICATION, S.STUCK})


class Place(Struct, frozen=True):
    """Where a session works, by which id its program resumes, and what its prompt tells.

    `heard` is the number of the last word of a human that is in the prompt.
    """

    directory: str | None = None
    native: str = ""
    heard: int = 0
    login: str = ""  # what it logs in with, as a digest
    host: str = ""  # the host that prepared it; empty where there is one host alone


NOWHERE = Place()


def session_started(
    seen: Evidence, spawn: SpawnAgent, token_hash: str, place: Place = NOWHERE, slots: int = 0
) -> Decision | Declined:
    """The session that was asked for begins; a worker's takes feedback and directive with it.

    `slots` is how many sessions its project may have; one in which a human sits needs none.
    """
    task, worker = seen.task, spawn.role is Role.WORKER
    if worker and spawn.generation != task.generation:
        return Declined("a newer worker has been asked for since", f"lockgate task show {task.id}")
    if task.status in ENDED:
        return Declined(f"the task is {task.status}", f"lockgate task show {task.id}")
    if place.host and place.host != task.host:
        why = f"host {place.host} does not have the task any more"
        return Declined(why, f"lockgate task show {task.id}")
    session = Session(
        id=session_id(task.id, spawn.generation, spawn.seat),
        task=task.id,
        role=spawn.role,
        round=task.review_round,
        generation=spawn.generation,
        token_hash=token_hash,
        started=seen.now,
        directory=place.directory,
        agent=spawn.agent or task.agent,
        native=place.native,
        interactive=spawn.interactive,
        seat=spawn.seat,
        asked=spawn.asks,
        login=place.login,
        host=task.host,
    )
    if worker and task.status is S.WORKING:
        task = replace(task, phase=Working(session.id, task.iteration))
    task, told = after_hearing(task, place.heard)
    if worker:
        task = replace(_told(task, spawn), exhausted=False, step_failures=0)
        task = replace(task, agent=session.agent, instead_of=_chosen_by_a_human(task, spawn))
    begun = also(stay(seen, replace(task, dead=False, not_before=0.0)), _beginning(session))
    if spawn.instead_of:
        begun = also(begun, AgentReplaced(spawn.instead_of, session.agent, spawn.role))
    begun = also(begun, *((WordsHeard(session.id, told),) if told else ()))
    return replace(begun, session=session, slots=0 if spawn.interactive else slots)


def is_elsewhere(it: Session, task: Task) -> bool:
    """It was to begin on another host than the one that has the task now."""
    return bool(it.host) and it.host != task.host


def _beginning(it: Session) -> SessionStarted:
    return SessionStarted(session=it.id, role=it.role, round=it.round, generation=it.generation)


def _chosen_by_a_human(task: Task, spawn: SpawnAgent) -> str:
    """Whom the new worker stands in for; empty where it is the one that a human chose."""
    chosen = task.instead_of or task.agent
    return "" if (spawn.agent or task.agent) == chosen else chosen


def last_native(sessions: Iterable[Session], agent: str, host: str) -> str:
    """By which the last worker is resumed; empty where its conversation is not here.

    Nor where another agent has worked since: this one's conversation does not know of that.
    """
    workers = [it for it in sessions if it.role is Role.WORKER and it.native]
    known = workers and (workers[-1].agent, workers[-1].host) == (agent, host)
    return workers[-1].native if known else ""


def kept_waiting(seen: Evidence, spawn: SpawnAgent, until: float) -> Decision | Declined:
    """Every agent that may do it is limited, and none goes on by itself: a human says when."""
    if overtaken(spawn, seen.task):
        return Declined("it is wanted no more", f"lockgate task show {seen.task.id}")
    return also(stay(seen, replace(seen.task, dead=True, not_before=until)), UsageHeld(until))


def _told(task: Task, spawn: SpawnAgent) -> Task:
    """The task once its worker has read the prompt; a human's own session is told nothing."""
    if spawn.interactive:
        return task
    open_question = "" if task.status is S.WORKING else task.question
    return replace(task, directive="", question=open_question)


def session_ended(seen: Evidence, end: End = PLAIN) -> Decision | Declined:
    """Take the arrow whose evidence is there; where a status has such arrows and none is met,
    the agent crashed. What it cost is counted either way.
    """
    session = seen.session
    if session and session.ended is not None:
        return Declined("this session has ended already", f"lockgate task show {seen.task.id}")
    seen = replace(seen, task=_metered(seen.task, end, session))
    decision = within_budget(seen, _after_its_end(seen, end))
    if session is None:
        return decision
    closed = replace(
        session,
        ended=seen.now,
        native=end.report.native or session.native,
        usd=end.report.usage.usd,
        tokens=end.report.usage.tokens,
        limited_until=_limit(end, seen.now),
    )
    told = SessionEnded(
        session.id,
        session.role,
        session.agent,
        closed.usd,
        closed.tokens,
        max(0.0, seen.now - session.started),
        any(isinstance(it, AgentCrashed) for it in decision.events),
    )
    return replace(also(decision, told), session=closed)


def asked_to_hand_in(seen: Evidence, said: str) -> Decision | Declined:
    """The Stop hook holds an agent up once in its session, so that it hands in or asks."""
    task, session, look = seen.task, seen.session, f"lockgate task show {seen.task.id}"
    if task.status is not S.WORKING:
        return Declined(f"no work is handed in while it is {task.status}", look)
    unheard_of = unheard(seen)
    if unheard_of:
        return Declined(unheard_of.why, unheard_of.fix)
    if session and session.asked:
        return Declined("its agent has been asked already", look)
    held_up = also(stay(seen, task), AgentAsked(session.id if session else "", said))
    return replace(held_up, session=replace(session, asked=True) if session else None)


def respawned(seen: Evidence, *, alive: bool, directive: str = "") -> Decision | Declined:
    """A human restarts the agent (Enter on the board) in the same workspace."""
    task = seen.task
    if alive:
        return Declined("its agent is alive", f"watch it: lockgate task peek {task.id}")
    if task.taken_over:
        return Declined("a human has taken it over", f"lockgate handback {task.id}")
    if task.status is S.AGENT_REVIEW:
        asked = wanted_again(seen)
        if asked is None:
            why = "no reviewer is asked for now: its other gates judge it"
            return Declined(why, f"lockgate task show {task.id}")
        return also(_insisting(asked), AgentRespawned(Role.REVIEWER))
    if task.status not in ATTENDED:
        return Declined(f"no agent works on a task that is {task.status}", _next(task))
    told = replace(task, directive=directive or task.directive, not_before=0, escalated="")
    return also(with_a_worker(seen, told, insists=True), AgentRespawned(Role.WORKER))


def _insisting(decision: Decision) -> Decision:
    """A usage limit does not keep these agents: a human asked for them."""
    effects = (
        replace(it, insists=True) if isinstance(it, SpawnAgent) else it for it in decision.effects
    )
    back = replace(decision.task, dead=False, not_before=0.0)
    return replace(decision, task=back, effects=tuple(effects))


def taken_over(seen: Evidence) -> Decision | Declined:
    """The agent's session ends, and a human's begins in its place."""
    task, generation = seen.task, seen.task.rev + 1
    if task.status not in ATTENDED:
        why = f"there is no session to take over while it is {task.status}"
        return Declined(why, _next(task))
    if task.taken_over:
        fix = f"lockgate task attach {task.id}, lockgate shell {task.id}, or: "
        fix += f"lockgate handback {task.id}"
        return Declined("it is taken over already", fix)
    mine = replace(task, taken_over=True, taken_at=seen.now, generation=generation)
    mine = replace(mine, not_before=0.0, escalated="")
    asked = SpawnAgent(Role.WORKER, generation, interactive=True)
    return also(stay(seen, mine, EndSessions(task.rev), asked), TaskTakenOver())


def sat_down(seen: Evidence, *, alive: bool) -> Decision | Declined:
    """A human works in the workspace by hand, where no agent does; no agent is started for it."""
    task = seen.task
    look = f"look only: lockgate shell {task.id} --read-only"
    if task.taken_over:
        return stay(seen, task)
    if task.status not in ATTENDED:
        return Declined(f"its work is not to be changed while it is {task.status}", look)
    if alive or (task.status is S.WORKING and not task.dead):
        end = f"or end the agent: lockgate takeover {task.id}"
        return Declined("its agent works in it", f"{look}, {end}")
    mine = replace(task, taken_over=True, taken_at=seen.now, generation=task.rev + 1)
    return also(stay(seen, replace(mine, not_before=0.0, escalated="")), TaskTakenOver())


def handed_back(seen: Evidence) -> Decision | Refusal | Declined:
    """What the human did is judged like any other work."""
    task = seen.task
    if not task.taken_over:
        return Declined("it is not taken over", f"lockgate takeover {task.id}")
    by_way_of: tuple[Event, ...] = ()
    if task.status is S.CLARIFICATION:  # the human has answered by doing the work
        begun = arrive(seen, task, Arrival(S.WORKING, "a human did the work"))
        by_way_of, seen = begun.events, replace(seen, task=replace(begun.task, rev=task.rev))
    decision = move(seen, Move(S.AGENT_REVIEW, "handed back by a human"))
    if isinstance(decision, Refusal):
        say = f"say what you did: lockgate handback {task.id} -m TEXT"
        return replace(decision, source=task.status, fix=say if handoff(seen) else decision.fix)
    if not isinstance(decision, Decision):
        return decision
    given = replace(decision.task, taken_over=False, taken_at=0.0)
    effects = (EndSessions(task.rev), *decision.effects)
    events = (*by_way_of, *decision.events)
    return also(replace(decision, task=given, events=events, effects=effects), TaskHandedBack())


def _next(task: Task) -> str:
    """What to do with a task that no agent works on."""
    start = f"lockgate task start {task.id}"
    return start if task.status is S.PENDING else f"lockgate task why {task.id}"


def _metered(task: Task, end: End, session: Session | None) -> Task:
    """A reviewer's costs count; its time is not the worker's."""
    worker = session is None or session.role is Role.WORKER
    full = end.report.exhausted and (session is None or session.generation == task.generation)
    return replace(
        task,
        usd=task.usd + end.spent.usd,
        tokens=task.tokens + end.spent.tokens,
        seconds=task.seconds + (end.exit.seconds if worker else 0.0),
        exhausted=task.exhausted or (worker and full),
    )


def _after_its_end(seen: Evidence, end: End) -> Decision:
    status, owner = seen.task.status, OWNERS.get(seen.task.status)
    session, expected = seen.session, owner or Role.WORKER
    if unheard(seen) or _has_spoken(seen) or (session and session.role is not expected):
        return stay(seen, seen.task)
    if owner is None:
        waiting = status in {S.CLARIFICATION, S.REVIEWING, S.STUCK}
        return stay(seen, replace(_still_asking(seen, end), dead=waiting))
    if session and session.interactive:
        return stay(seen, replace(seen.task, dead=True))
    if waiting_words(seen.task) and _is_polite(end):
        return _again(seen, seen.task)
    missing: list[str] = []
    for rule in RULES:
        if rule.source is status and rule.need:
            # A worker shows its steps itself; what a verdict waits for is not its reviewer's.
            lacks = unmet(seen, rule) if status is S.WORKING else rule.need(seen)
            if lacks is None:
                return _advanced(seen, rule)
            missing.append(lacks.why)
    return _without_artifact(seen, end, missing[0])


def _still_asking(seen: Evidence, end: End) -> Task:
    """What the agent wrote after it asked, or its last words where it wrote nothing."""
    if seen.task.status is not S.CLARIFICATION:
        return seen.task
    question = new_question(seen) or seen.task.question or end.report.said
    return replace(seen.task, question=question)


def _has_spoken(seen: Evidence) -> bool:
    """A reviewer whose verdict was taken only leaves; the gates behind its own still judge."""
    if seen.session and seen.session.seat:
        return has_spoken(seen)
    reviews = {gate.name for gate in seen.rules.gates if gate.kind in REVIEWS}
    return seen.task.status is S.AGENT_REVIEW and not reviews.isdisjoint(seen.task.passed)


def _without_artifact(seen: Evidence, end: End, missing: str) -> Decision:
    """Whose fault it is that there is nothing to judge: nobody's, the plan's, or the agent's."""
    session = seen.session.id if seen.session else ""
    if end.exit.ending is Ending.INTERRUPTED:
        return also(_again(seen, seen.task), SessionInterrupted(session))
    if end.exit.ending is Ending.ENDED:
        return stay(seen, replace(seen.task, dead=True))
    if end.exit.ending in {*USED_UP, Ending.SERVICE}:
        return arrive(seen, seen.task, _prevented(end.exit))
    until = _limit(end, seen.now)
    if until:
        parked = replace(seen.task, not_before=until)
        return also(_again(seen, parked), UsageLimited(session, until, end.skipped))
    if end.report.refused:
        why = _refused(seen, end.report.failure)
        return arrive(seen, seen.task, Arrival(S.STUCK, why, Cause.LOGIN))
    if seen.task.status is S.AGENT_REVIEW:
        return _crash(seen, _stopped(seen.task, end, missing))
    spoken = replace(seen, task=replace(seen.task, last_words=end.report.said))
    if seen.session and not seen.session.asked and end.resumable and _is_polite(end):
        asked = AgentAsked(session, end.report.said)
        return also(with_a_worker(spoken, spoken.task, asks=True), asked)
    return _crash(spoken, _stopped(seen.task, end, missing))


def _prevented(exit: Exit) -> Arrival:
    if exit.ending is Ending.SERVICE:
        why = f"its agent was not started, for a service was not ready: {exit.why}"
        return Arrival(S.STUCK, why, Cause.SERVICE)
    return Arrival(S.STUCK, f"its session was ended: {exit.why}", Cause.BUDGET)


def _limit(end: End, now: float) -> float:
    """When the usage limit ends that the session hit; 0 where it hit none."""
    until = end.report.limited_until
    if until is None and end.exit.ending is not Ending.LIMITED:
        return 0.0
    until = until or 0.0
    return until if until > now else now + LIMIT_WAIT


def _is_polite(end: End) -> bool:
    """Whether the program ended by itself, in good order and with nothing to complain of."""
    well = end.exit.ending is Ending.EXITED and end.exit.code == 0
    troubled = end.report.failure or end.report.exhausted or end.report.limited_until is not None
    return well and not troubled


def _stopped(task: Task, end: End, missing: str) -> str:
    reviewer = task.status is S.AGENT_REVIEW
    who = "reviewer stopped without a verdict" if reviewer else "agent stopped without handing in"
    how = "" if end.exit.ending is Ending.EXITED else f", ended as {end.exit.ending}"
    why = f": {end.report.failure}" if end.report.failure else ""
    said = f". It said: {one_line(end.report.said)[-GIST:]}" if end.report.said else ""
    return f"the {who} ({missing}{how}){why}{said}"


def _refused(seen: Evidence, said: str) -> str:
    task, session = seen.task, seen.session
    agent = (session.agent if session else "") or task.agent
    go_on = f"lockgate task update {task.id} --status {task.status}"
    return refused_login(agent, said, go_on)


def _advanced(seen: Evidence, rule: Rule) -> Decision:
    if rule.proof and rule.proof(seen):
        return stay(seen, seen.task)  # the verdict is given, the other gates still judge
    reason = "the agent exited and its artifact is there"
    decision = take(seen, Move(rule.target, reason))
    if decision.task.status is rule.source:
        return decision
    return also(decision, AutoAdvanced(rule.source, decision.task.status, reason))


def _crash(seen: Evidence, reason: str) -> Decision:
    """The second crash in one status is a human's; a worker's crash is a failed attempt too."""
    if seen.task.status is S.AGENT_REVIEW:
        return left_without_verdict(seen, reason)
    task = replace(seen.task, crash_count=seen.task.crash_count + 1)
    often = f"its agents stopped {task.crash_count} times without handing in; the last time:"
    stuck = Arrival(S.STUCK, f"{often} {reason}", Cause.CRASH_THRESHOLD)

    def stays_or_sticks(counted: Task) -> Decision:
        if counted.crash_count >= seen.rules.limits.crashes:
            return arrive(seen, counted, stuck)
        dead = replace(counted, dead=True)
        return _again(seen, dead) if seen.rules.respawn else stay(seen, dead)

    return also(charge(seen, task, stuck, stays_or_sticks), crashed(seen, task, reason))


def _again(seen: Evidence, task: Task) -> Decision:
    """The agent whose turn it was is asked for once more."""
    if task.status is S.AGENT_REVIEW:
        there = replace(seen, task=task)
        return wanted_again(there) or stay(there, task)
    return with_a_worker(seen, task, fresh=task.exhausted and wants_fresh(task))
