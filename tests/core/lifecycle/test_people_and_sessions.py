"""A human asks for an agent anew, sits down in its place, and hands the work back."""

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import (
    Decision,
    Declined,
    EndSessions,
    EvaluateGates,
    MirrorTask,
    Refusal,
    SpawnAgent,
    overtaken,
)
from lockgate.core.lifecycle.map import unheard
from lockgate.core.lifecycle.sessions import (
    ATTENDED,
    Place,
    handed_back,
    respawned,
    sat_down,
    session_started,
    taken_over,
)
from lockgate.core.model.events import (
    AgentRespawned,
    GateEvaluationStarted,
    SessionStarted,
    StatusChanged,
    TaskHandedBack,
    TaskTakenOver,
)
from lockgate.core.model.task import Actor, Role, Status, Task, Working
from tests.given import (
    HANDOFF,
    NOW,
    RULES,
    TESTS_GATE,
    a_session,
    a_task,
    evidence,
    refused,
    taken,
)

S = Status
ELSEWHERE = sorted(set(S) - ATTENDED - {S.AGENT_REVIEW})
PARKED = NOW + 9000


def asks_again(task: Task, *, alive: bool = False, directive: str = "") -> Decision | Declined:
    return respawned(evidence(task, "", Actor.HUMAN), alive=alive, directive=directive)


def sits_down(task: Task) -> Decision:
    return taken(taken_over(evidence(task, "", Actor.HUMAN)))


def kinds(decision: Decision) -> list[type]:
    return [type(event) for event in decision.events]


# --- asked for anew -----------------------------------------------------------------------------


@pytest.mark.req("R89")
@pytest.mark.parametrize("status", sorted(ATTENDED))
def test_a_worker_is_asked_for_anew_wherever_one_works(status) -> None:
    task = a_task(status, dead=True, not_before=PARKED, crash_count=1, directive="as before")

    decision = taken(asks_again(task))

    assert decision.task.status is status
    assert (decision.task.generation, decision.task.not_before) == (8, 0)
    assert (decision.task.crash_count, decision.task.directive) == (1, "as before")
    assert decision.effects == (MirrorTask(), SpawnAgent(Role.WORKER, 8, insists=True))
    assert decision.events == (AgentRespawned(Role.WORKER),)
    assert not overtaken(decision.effects[-1], decision.task)


def test_what_a_human_says_along_with_it_is_for_the_new_worker() -> None:
    decision = taken(asks_again(a_task(directive="old"), directive="use the cookie"))

    assert decision.task.directive == "use the cookie"


@pytest.mark.req("R93")
def test_a_reviewer_is_asked_for_anew_in_the_same_round() -> None:
    task = a_task(S.AGENT_REVIEW, review_round=1, dead=True, not_before=PARKED)

    decision = taken(asks_again(task))

    assert decision.task.review_round == 1
    assert decision.task.generation == task.generation
    reviewer = SpawnAgent(Role.REVIEWER, 8, seat="review.general", insists=True)
    assert decision.effects == (MirrorTask(), reviewer)
    assert decision.events == (AgentRespawned(Role.REVIEWER),)
    assert (decision.task.dead, decision.task.not_before) == (False, 0)


@pytest.mark.parametrize("status", S)
def test_an_agent_that_lives_is_not_asked_for_twice(status) -> None:
    refusal = refused(asks_again(a_task(status), alive=True))

    assert refusal.why == "its agent is alive"
    assert "lockgate task peek" in refusal.fix


@pytest.mark.parametrize("status", S)
def test_where_a_human_sits_no_agent_is_asked_for(status) -> None:
    refusal = refused(asks_again(a_task(status, taken_over=True)))

    assert refusal.why == "a human has taken it over"
    assert refusal.fix == f"lockgate handback {a_task().id}"


@pytest.mark.parametrize("status", ELSEWHERE)
def test_where_no_agent_works_none_is_asked_for(status) -> None:
    refusal = refused(asks_again(a_task(status)))

    assert refusal.why == f"no agent works on a task that is {status}"
    assert refusal.fix == f"lockgate task {'start' if status is S.PENDING else 'why'} {a_task().id}"


# --- taken over ---------------------------------------------------------------------------------


@pytest.mark.parametrize("status", sorted(ATTENDED))
def test_a_human_sits_down_where_the_agent_sat_and_the_agent_leaves(status) -> None:
    task = a_task(status, not_before=PARKED)

    decision = sits_down(task)

    assert decision.task.status is status
    assert (decision.task.taken_over, decision.task.not_before) == (True, 0.0)
    assert decision.effects == (
        MirrorTask(),
        EndSessions(task.rev),
        SpawnAgent(Role.WORKER, 8, interactive=True),
    )
    assert decision.events == (TaskTakenOver(),)
    assert not overtaken(decision.effects[-1], decision.task)
    assert unheard(evidence(decision.task, session=a_session())) is not None


def test_the_session_that_ends_is_never_the_humans_own() -> None:
    decision = sits_down(a_task())

    [ends] = [it for it in decision.effects if isinstance(it, EndSessions)]
    [begins] = [it for it in decision.effects if isinstance(it, SpawnAgent)]
    assert ends.upto < begins.generation


@pytest.mark.parametrize("status", [S.AGENT_REVIEW, *ELSEWHERE])
def test_where_no_worker_sits_there_is_nothing_to_take_over(status) -> None:
    refusal = refused(taken_over(evidence(a_task(status), "", Actor.HUMAN)))

    assert refusal.why == f"there is no session to take over while it is {status}"


def test_a_task_is_taken_over_once() -> None:
    refusal = refused(taken_over(evidence(a_task(taken_over=True), "", Actor.HUMAN)))

    assert refusal.why == "it is taken over already"
    assert "lockgate handback" in refusal.fix


@pytest.mark.req("R113")
def test_the_humans_session_begins_as_a_workers_that_is_interactive() -> None:
    task = replace(sits_down(a_task(exhausted=True, directive="look here")).task, not_before=PARKED)
    spawn = SpawnAgent(Role.WORKER, task.generation, interactive=True)

    decision = taken(session_started(evidence(task), spawn, "hash", Place("/w", "thread-1")))

    assert decision.session is not None
    assert decision.session.interactive
    assert (decision.session.agent, decision.session.native) == ("scripted", "thread-1")
    assert decision.session.directory == "/w"
    assert (decision.task.exhausted, decision.task.not_before) == (False, 0.0)
    assert decision.task.phase == Working(decision.session.id, 1)
    assert decision.task.taken_over
    assert kinds(decision) == [SessionStarted]


def test_a_reviewer_that_begins_leaves_the_workers_full_context_to_be_seen() -> None:
    task = a_task(S.AGENT_REVIEW, exhausted=True, not_before=PARKED)

    decision = taken(session_started(evidence(task), SpawnAgent(Role.REVIEWER, 7), "hash"))

    assert (decision.task.exhausted, decision.task.not_before) == (True, 0.0)


# --- handed back --------------------------------------------------------------------------------


@pytest.mark.req("R165")
@pytest.mark.parametrize("status", [S.WORKING, S.STUCK])
def test_what_the_human_did_is_judged_like_any_other_work(status) -> None:
    rules = replace(RULES, gates=(TESTS_GATE, *RULES.gates))
    task = a_task(status, taken_over=True, generation=7, candidate="old", passed=("tests",))
    task = replace(task, pinned=rules)

    decision = taken(handed_back(evidence(task, HANDOFF, Actor.HUMAN)))

    assert decision.task.status is S.AGENT_REVIEW
    assert not decision.task.taken_over
    assert (decision.task.candidate, decision.task.passed) == ("", ())
    assert decision.effects == (EndSessions(task.rev), MirrorTask(), EvaluateGates(1))
    assert kinds(decision) == [StatusChanged, GateEvaluationStarted, TaskHandedBack]


@pytest.mark.req("R68")
def test_work_is_not_handed_back_without_a_handoff() -> None:
    task = a_task(taken_over=True)

    refusal = refused(handed_back(evidence(task, "", Actor.HUMAN)))

    assert "'## Handoff'" in refusal.why
    assert isinstance(refusal, Refusal)
    assert refusal.target is S.AGENT_REVIEW


def test_a_task_that_nobody_took_over_is_not_handed_back() -> None:
    refusal = refused(handed_back(evidence(a_task(), HANDOFF, Actor.HUMAN)))

    assert refusal.why == "it is not taken over"
    assert refusal.fix == f"lockgate takeover {a_task().id}"


# --- sitting down ---------------------------------------------------------------------------------


def test_a_task_that_is_taken_over_says_since_when() -> None:
    task = a_task()

    mine = taken(taken_over(evidence(task, "", Actor.HUMAN))).task

    assert mine.taken_at == evidence(task).now


def test_a_humans_own_session_leaves_what_was_meant_for_the_agent() -> None:
    task = a_task(directive="Use blue.", question="Red or blue?", taken_over=True)
    sits = SpawnAgent(Role.WORKER, task.generation, interactive=True)

    begun = taken(session_started(evidence(task), sits, "0" * 64))

    assert (begun.task.directive, begun.task.question) == ("Use blue.", "Red or blue?")


def test_a_task_that_is_handed_back_without_a_handoff_is_refused_with_the_command_for_it() -> None:
    task = a_task(taken_over=True)

    refusal = refused(handed_back(evidence(task, "", Actor.HUMAN)))

    assert refusal.fix == f"say what you did: lockgate handback {task.id} -m TEXT"


@pytest.mark.parametrize("status", [S.STUCK, S.CLARIFICATION, S.WORKING])
def test_a_human_works_by_hand_where_no_agent_does_and_none_is_started(status) -> None:
    task = a_task(status, dead=status is S.WORKING, not_before=9.0)

    decision = taken(sat_down(evidence(task, "", Actor.HUMAN), alive=False))

    mine = decision.task
    assert (mine.status, mine.taken_over, mine.taken_at) == (status, True, evidence(task).now)
    assert (mine.generation, mine.not_before) == (task.rev + 1, 0.0)
    assert decision.effects == (MirrorTask(),)
    assert kinds(decision) == [TaskTakenOver]
    again = taken(sat_down(evidence(mine, "", Actor.HUMAN), alive=True))
    assert again.events == (), "the task is theirs already"


@pytest.mark.parametrize(
    ("task", "alive", "why"),
    [
        (a_task(S.WORKING), False, "its agent works in it"),
        (a_task(S.STUCK), True, "its agent works in it"),
        (a_task(S.AGENT_REVIEW), False, "not to be changed while it is agent-review"),
        (a_task(S.DONE), False, "not to be changed while it is done"),
    ],
)
def test_while_somebody_else_works_on_it_a_human_only_looks(task, alive, why) -> None:
    declined = refused(sat_down(evidence(task, "", Actor.HUMAN), alive=alive))

    assert why in declined.why
    assert f"lockgate shell {task.id} --read-only" in declined.fix


def test_a_human_who_did_the_work_instead_of_answering_hands_it_back() -> None:
    task = a_task(S.CLARIFICATION, taken_over=True, question="Red or blue?")

    decision = taken(handed_back(evidence(task, HANDOFF, Actor.HUMAN)))

    assert (decision.task.status, decision.task.rev) == (S.AGENT_REVIEW, task.rev + 1)
    assert (decision.task.taken_over, decision.task.question) == (False, "")
    moves = [it.target for it in decision.events if isinstance(it, StatusChanged)]
    assert moves == [S.WORKING, S.AGENT_REVIEW]
    unsaid = refused(handed_back(evidence(task, "", Actor.HUMAN)))
    assert isinstance(unsaid, Refusal)
    assert unsaid.source is S.CLARIFICATION


def test_what_is_judged_already_is_not_handed_back_again() -> None:
    task = a_task(S.AGENT_REVIEW, taken_over=True)

    assert "already" in refused(handed_back(evidence(task, HANDOFF, Actor.HUMAN))).why
