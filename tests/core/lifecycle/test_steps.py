"""What a step's exit does to its task: who may run one, what passes, what counts, what ends."""

import pytest
from msgspec.structs import replace

from lockgate.core.config.settings import Expect, Step
from lockgate.core.lifecycle.binary_gate import GateResult, evaluate
from lockgate.core.lifecycle.decision import (
    Declined,
    EndSessions,
    MirrorTask,
    NotifyHuman,
    SpawnAgent,
)
from lockgate.core.lifecycle.gate_orchestrator import Advance, Complete, Escalate, Stay
from lockgate.core.lifecycle.moves import Move, move, resumed
from lockgate.core.lifecycle.sessions import respawned, session_ended, session_started, taken_over
from lockgate.core.lifecycle.steps import (
    Ran,
    Standing,
    Stepped,
    as_gate,
    called_off,
    choose,
    standing,
    stepped,
)
from lockgate.core.model.agents import End
from lockgate.core.model.events import (
    AgentCrashed,
    AttemptFailed,
    Escalation,
    StatusChanged,
    StepFailed,
    StepPassed,
    StepsEscalated,
    UserEscalated,
    payload,
    type_of,
)
from lockgate.core.model.limits import Limits
from lockgate.core.model.task import Actor, AgentPhase, Budget, Cause, Role, Status
from lockgate.core.prompts.worker import Before, opening, prompt_for
from tests.given import COMMIT, HANDOFF, ID, RULES, a_session, a_task, evidence, refused, taken

S = Status
NAMES = ("red", "green", "refactor")
PINNED = replace(RULES, steps=NAMES)
PASS, FAIL, KILLED = evaluate(0), evaluate(1), evaluate(None)


def at(*passed: str, status: Status = S.WORKING, **fields: object):
    return a_task(status, **{"pinned": PINNED, "steps_passed": passed, **fields})


def run(task, result: GateResult, node: str = "green", actor: Actor = Actor.WORKER):
    session = a_session() if actor is Actor.WORKER else None
    answer = stepped(evidence(task, actor=actor, session=session), Ran(node, COMMIT, result))
    assert isinstance(answer, Stepped), answer
    return answer


# --- passing ------------------------------------------------------------------------------------


@pytest.mark.req("R8", "R20")
def test_a_step_that_passes_is_kept_and_clears_the_count() -> None:
    answer = run(at("red", step_failures=2), PASS)

    assert answer.moved == Advance("refactor")
    assert answer.decision.task.steps_passed == ("red", "green")
    assert answer.decision.task.step_failures == 0
    assert answer.decision.events == (StepPassed("green", COMMIT),)


@pytest.mark.req("R9")
def test_the_last_step_that_passes_completes_the_run() -> None:
    answer = run(at("red", "green"), PASS, "refactor")

    assert answer.moved == Complete()
    assert answer.decision.task.steps_passed == NAMES


def test_rules_that_were_taken_anew_ask_only_for_what_has_not_passed() -> None:
    answer = run(at("green", "gone"), PASS, "red")

    assert answer.moved == Advance("refactor")


# --- failing ------------------------------------------------------------------------------------


@pytest.mark.req("R10", "R11")
@pytest.mark.parametrize(
    ("result", "reason"), [(FAIL, "NON_ZERO_EXIT"), (KILLED, "PROCESS_KILLED")]
)
def test_a_step_that_fails_is_counted_and_told_with_s0s_keys(result, reason) -> None:
    answer = run(at("red", step_failures=1), result)

    assert answer.moved == Stay(reason)
    assert (answer.decision.task.steps_passed, answer.decision.task.step_failures) == (("red",), 2)
    [event] = answer.decision.events
    assert type_of(event) == "GATE_FAILED"
    assert payload(event) == {"nodeId": "green", "reason": reason, "consecutiveFailures": 2}


@pytest.mark.req("R12", "R14")
def test_the_third_failure_in_a_row_ends_the_worker_and_asks_for_a_fresh_one() -> None:
    answer = run(at("red", step_failures=2), FAIL)
    decision, why = answer.decision, "step green failed 3 times in a row"

    assert answer.moved == Escalate()
    assert decision.events == (
        StepFailed("green", "NON_ZERO_EXIT", 3),
        StepsEscalated("green", "NON_ZERO_EXIT", 3),
        UserEscalated("green", why, 3),
        AttemptFailed(1, why),
    )
    assert [type_of(it) for it in decision.events[:3]] == [
        "GATE_FAILED",
        "ESCALATION_TRIGGERED",
        "USER_ESCALATION",
    ]
    assert decision.effects == (
        EndSessions(7, Role.WORKER),
        NotifyHuman(S.WORKING, why),
        MirrorTask(),
        SpawnAgent(Role.WORKER, 8, fresh=True),
    )
    assert (decision.task.status, decision.task.failed_attempts) == (S.WORKING, 1)
    assert (decision.task.generation, decision.task.crash_count) == (8, 0)


ESCALATED = "step green failed 3 times in a row"


@pytest.mark.req("R23")
def test_an_escalation_needs_a_human_while_the_fresh_worker_goes_on() -> None:
    task = run(at("red", step_failures=2), FAIL).decision.task
    begun = taken(session_started(evidence(task), SpawnAgent(Role.WORKER, 8), "hash"))

    assert task.escalated == begun.task.escalated == ESCALATED


def test_what_needed_a_human_is_over_when_a_step_passes_or_a_human_takes_part() -> None:
    task = at("red", escalated=ESCALATED)
    human = evidence(task, "", Actor.HUMAN)

    assert run(task, PASS).decision.task.escalated == ""
    assert run(task, FAIL).decision.task.escalated == ESCALATED
    assert taken(taken_over(human)).task.escalated == ""
    assert taken(respawned(human, alive=False)).task.escalated == ""
    assert taken(move(human, Move(S.STUCK))).task.escalated == ""


def test_the_worker_that_was_ended_by_its_steps_has_not_crashed() -> None:
    task = run(at("red", step_failures=2), FAIL).decision.task

    decision = taken(session_ended(evidence(task, session=a_session()), End()))

    assert (decision.task.crash_count, decision.task.failed_attempts) == (0, 1)
    assert not any(isinstance(it, AgentCrashed) for it in decision.events)


def test_the_fifth_failed_attempt_pauses_the_task_whatever_its_steps_say() -> None:
    decision = run(at("red", step_failures=2, failed_attempts=4), FAIL).decision

    assert decision.task.status is S.PAUSED_FOR_INTERVENTION
    assert decision.task.cause is Cause.ESCALATION_THRESHOLD
    kinds = [type(it) for it in decision.events]
    assert kinds[:3] == [StepFailed, StepsEscalated, UserEscalated]
    assert Escalation in kinds
    [moved] = [it for it in decision.events if isinstance(it, StatusChanged)]
    assert moved.actor is Actor.ORCHESTRATOR
    assert not any(isinstance(it, SpawnAgent) for it in decision.effects)


def test_no_fresh_worker_comes_where_the_budget_is_used_up() -> None:
    poor = replace(PINNED, budget=Budget(usd=1.0))

    decision = run(at("red", step_failures=2, pinned=poor, usd=2.0), FAIL).decision

    assert (decision.task.status, decision.task.cause) == (S.STUCK, Cause.BUDGET)
    assert any(isinstance(it, UserEscalated) for it in decision.events)


def test_a_limit_that_was_lowered_below_the_count_ends_the_worker_at_its_next_step() -> None:
    strict = replace(PINNED, limits=Limits(step_failures=2))

    assert run(at("red", step_failures=2, pinned=strict), PASS).moved == Escalate()


@pytest.mark.req("R16")
def test_the_count_belongs_to_one_workers_session() -> None:
    task = at("red", step_failures=2, generation=7)

    worker = taken(session_started(evidence(task), SpawnAgent(Role.WORKER, 7), "hash"))
    reviewer = taken(session_started(evidence(task), SpawnAgent(Role.REVIEWER, 8), "hash"))

    assert (worker.task.step_failures, worker.task.steps_passed) == (0, ("red",))
    assert reviewer.task.step_failures == 2


# --- a human's runs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actor", "taken_over"), [(Actor.HUMAN, False), (Actor.HUMAN, True), (Actor.WORKER, True)]
)
def test_what_a_human_fails_at_is_told_and_ends_no_agent(actor, taken_over) -> None:
    task = at("red", step_failures=2, taken_over=taken_over)

    answer = run(task, FAIL, actor=actor)

    assert answer.moved == Stay("NON_ZERO_EXIT")
    assert answer.decision.task.step_failures == 2
    assert answer.decision.events == (StepFailed("green", "NON_ZERO_EXIT", 1),)


def test_what_a_human_sees_pass_has_passed() -> None:
    answer = run(at("red", step_failures=2), PASS, actor=Actor.HUMAN)

    assert answer.moved == Advance("refactor")
    assert answer.decision.task.step_failures == 0


# --- who may run what ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "fields", "asked", "why"),
    [
        (at(), {"actor": Actor.REVIEWER}, "", "this is a reviewer"),
        (at(status=S.STUCK), {}, "", "it is stuck"),
        (at(generation=4), {"session": a_session()}, "", "a newer session works"),
        (at(), {"session": a_session(ended=1.0)}, "", "this session has ended"),
        (a_task(), {}, "", "it has no steps"),
        (at(), {}, "blue", "it has no step 'blue'"),
        (at(*NAMES), {}, "", "all of its steps have passed"),
    ],
)
def test_a_step_is_not_run(task, fields, asked, why) -> None:
    answer = choose(evidence(task, **fields), asked)

    assert isinstance(answer, Declined)
    assert why in answer.why
    assert answer.fix


@pytest.mark.parametrize(
    ("passed", "asked", "node"), [((), "", "red"), (("red",), "", "green"), (NAMES, "red", "red")]
)
def test_the_next_step_is_run_unless_another_is_named(passed, asked, node) -> None:
    assert choose(evidence(at(*passed), actor=Actor.HUMAN), asked) == node


@pytest.mark.parametrize("node", ["red", "refactor"])
def test_a_step_that_is_not_the_next_one_decides_nothing(node) -> None:
    answer = stepped(evidence(at("red"), actor=Actor.WORKER), Ran(node, COMMIT, PASS))

    assert isinstance(answer, Declined)
    assert "not the next one" in answer.why


def test_a_result_that_comes_too_late_decides_nothing() -> None:
    answer = stepped(evidence(at("red", status=S.CANCELLED)), Ran("green", COMMIT, PASS))

    assert isinstance(answer, Declined)


def test_each_step_has_passed_is_next_or_waits() -> None:
    words = [standing(at("red"), name) for name in NAMES]

    assert words == [Standing.PASSED, Standing.NEXT, Standing.WAITING]
    assert standing(a_task(S.PENDING, pinned=None), "red") is Standing.WAITING


@pytest.mark.parametrize(
    ("task", "session", "over"),
    [
        (None, None, True),
        (at(status=S.CANCELLED), None, True),
        (at(), None, False),
        (at(), a_session(), False),
        (at(generation=4), a_session(), True),
    ],
)
def test_a_step_is_called_off_once_it_would_count_for_nothing(task, session, over) -> None:
    assert called_off(task, session) is over


def test_a_wanted_failure_gets_one_attempt() -> None:
    step = Step(name="red", phase=AgentPhase.VERIFY, command="false", expect=Expect.FAIL)

    assert as_gate(step, Limits()).attempts == 1
    assert as_gate(replace(step, expect=Expect.PASS), Limits()).attempts == Limits().call_attempts


# --- handing on ---------------------------------------------------------------------------------


@pytest.mark.parametrize("force", [False, True])
def test_a_task_is_not_handed_on_before_its_steps_are_through(force) -> None:
    seen = evidence(at("red"), HANDOFF, Actor.HUMAN)

    refusal = refused(move(seen, Move(S.AGENT_REVIEW, "now", force=force)))

    assert refusal.why == "these steps have not passed: green, refactor"
    assert refusal.fix == f"run the next one: lockgate step run green {ID}"


def test_a_task_whose_steps_are_through_is_handed_on() -> None:
    decision = taken(move(evidence(at(*NAMES), HANDOFF, Actor.WORKER), Move(S.AGENT_REVIEW)))

    assert decision.task.status is S.AGENT_REVIEW
    assert decision.task.steps_passed == NAMES


def test_a_worker_that_dies_with_a_handoff_and_steps_left_has_crashed() -> None:
    decision = taken(session_ended(evidence(at("red"), HANDOFF, session=a_session())))

    assert (decision.task.status, decision.task.crash_count) == (S.WORKING, 1)
    [crash] = [it for it in decision.events if isinstance(it, AgentCrashed)]
    assert "these steps have not passed" in crash.reason


def test_a_worker_that_dies_with_all_of_it_is_judged() -> None:
    decision = taken(session_ended(evidence(at(*NAMES), HANDOFF, session=a_session())))

    assert decision.task.status is S.AGENT_REVIEW


def test_a_human_who_sends_a_task_on_has_its_steps_begin_anew() -> None:
    stuck = at(*NAMES, status=S.STUCK)
    paused = at(*NAMES, status=S.PAUSED_FOR_INTERVENTION)

    sent = taken(move(evidence(stuck, actor=Actor.HUMAN), Move(S.WORKING)))
    back = taken(resumed(evidence(paused, actor=Actor.HUMAN), ""))
    judged = taken(move(evidence(stuck, actor=Actor.HUMAN), Move(S.AGENT_REVIEW)))

    assert sent.task.steps_passed == back.task.steps_passed == ()
    assert judged.task.steps_passed == NAMES


# --- what agents are told -----------------------------------------------------------------------


def test_a_worker_is_told_which_steps_are_left_and_a_reviewer_is_not() -> None:
    told = "Steps still to pass, in this order: green, refactor"
    task, limits = at("red"), Limits(step_failures=4)

    assert told in prompt_for(task, Role.WORKER, limits)
    assert "- 4 failures in a row end your session" in prompt_for(task, Role.WORKER, limits)
    assert told in opening(task, Role.WORKER, limits, Before(), resumed=True)
    for quiet in (at(*NAMES), a_task(), at("red", status=S.STUCK)):
        assert "lockgate step" not in prompt_for(quiet, Role.WORKER, limits)
    assert "lockgate step" not in prompt_for(task, Role.REVIEWER, limits)
