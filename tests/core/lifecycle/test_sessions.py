"""A session that ends: the same decision as a signal, and a crash where no artifact is there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import (
    Decision,
    Declined,
    EvaluateGates,
    MirrorTask,
    NotifyHuman,
    SpawnAgent,
)
from lockgate.core.lifecycle.map import ARROWS
from lockgate.core.lifecycle.moves import Move, move
from lockgate.core.lifecycle.sessions import Place, is_elsewhere, last_native, session_started
from lockgate.core.lifecycle.sessions import session_ended as _session_ended
from lockgate.core.model.agents import End, Usage
from lockgate.core.model.events import (
    AgentCrashed,
    AttemptFailed,
    AutoAdvanced,
    Escalation,
    SessionEnded,
    StatusChanged,
)
from lockgate.core.model.limits import ESCALATION_THRESHOLD, MAX_CRASHES
from lockgate.core.model.task import Actor, Cause, Pinned, Role, Status, Stuck
from tests.given import (
    FAIL,
    HANDOFF,
    PASS,
    RULES,
    TESTS_GATE,
    a_session,
    a_task,
    evidence,
    refused,
    taken,
)

S = Status
COSTLY = End(spent=Usage(1.5, 2000))


def session_ended(seen, *end):
    return taken(_session_ended(seen, *end))


def _effects(decision, kind):
    return [it for it in decision.effects if isinstance(it, kind)]


def _events(decision, kind):
    return [it for it in decision.events if isinstance(it, kind)]


@pytest.mark.req("R85", "R88", "R95")
def test_a_worker_that_dies_after_its_handoff_goes_to_review() -> None:
    decision = session_ended(evidence(a_task(crash_count=1, dead=True), HANDOFF))

    assert decision.task.status is S.AGENT_REVIEW
    assert (decision.task.crash_count, decision.task.dead) == (0, False)
    assert _effects(decision, SpawnAgent) == [
        SpawnAgent(Role.REVIEWER, decision.task.rev, seat="review.general")
    ]
    assert _events(decision, AutoAdvanced) == [
        AutoAdvanced(S.WORKING, S.AGENT_REVIEW, "the agent exited and its artifact is there")
    ]


@pytest.mark.req("R89", "R98", "R101")
def test_a_worker_that_dies_without_a_handoff_has_crashed_and_is_marked_dead() -> None:
    decision = session_ended(evidence(a_task()))

    assert decision.task.status is S.WORKING
    assert (decision.task.crash_count, decision.task.dead) == (1, True)
    [crashed] = _events(decision, AgentCrashed)
    assert (crashed.status, crashed.crash_count) == (S.WORKING, 1)
    assert "## Handoff" in crashed.reason
    assert crashed.timestamp.startswith("2027-")


@pytest.mark.req("R89", "R100")
def test_the_second_crash_in_one_status_is_stuck_and_a_human_is_told() -> None:
    decision = session_ended(evidence(a_task(crash_count=MAX_CRASHES - 1)))

    assert decision.task.status is S.STUCK
    assert decision.task.cause is Cause.CRASH_THRESHOLD
    assert decision.task.crash_count == 0
    assert _events(decision, AgentCrashed)[0].crash_count == MAX_CRASHES
    assert _effects(decision, NotifyHuman) == [NotifyHuman(S.STUCK, "stuck: crash-threshold")]
    assert isinstance(decision.task.phase, Stuck)


def test_the_first_crash_of_a_headless_worker_is_respawned_as_a_new_generation() -> None:
    task = a_task()

    decision = session_ended(evidence(task))

    assert _effects(decision, SpawnAgent) == [SpawnAgent(Role.WORKER, task.rev + 1)]
    assert decision.task.generation == task.rev + 1


def test_a_worker_that_somebody_sat_at_waits_for_them() -> None:
    manual = Pinned(base_commit="b", config_hash="c", respawn=False)

    decision = session_ended(evidence(a_task(pinned=manual)))

    assert decision.task.dead
    assert _effects(decision, SpawnAgent) == []


@pytest.mark.req("R90")
def test_a_reviewer_that_dies_after_a_pass_is_followed_by_reviewing() -> None:
    decision = session_ended(evidence(a_task(S.AGENT_REVIEW, review_round=1), PASS))

    assert decision.task.status is S.REVIEWING


@pytest.mark.req("R86", "R91")
def test_a_reviewer_that_dies_after_an_early_fail_is_followed_by_a_worker() -> None:
    task = a_task(S.AGENT_REVIEW, review_round=1)

    decision = session_ended(evidence(task, FAIL))

    assert decision.task.status is S.WORKING
    assert _effects(decision, SpawnAgent) == [SpawnAgent(Role.WORKER, task.rev + 1)]


@pytest.mark.req("R92")
def test_a_reviewer_that_dies_after_a_fail_in_the_last_round_is_followed_by_stuck() -> None:
    decision = session_ended(evidence(a_task(S.AGENT_REVIEW, review_round=2), FAIL))

    assert decision.task.status is S.STUCK
    assert decision.task.cause is Cause.REVIEW_ROUNDS


@pytest.mark.req("R93")
@pytest.mark.parametrize("body", ["", "## Review\n\nOn a first pass I found two bugs.\n"])
def test_a_reviewer_that_dies_without_a_verdict_is_asked_for_again(body) -> None:
    task = a_task(S.AGENT_REVIEW, review_round=1)

    decision = session_ended(evidence(task, body))

    assert decision.task.status is S.AGENT_REVIEW
    assert (decision.task.crash_count, decision.task.dead) == (1, True)
    assert decision.task.review_round == 1
    assert _effects(decision, SpawnAgent) == [
        SpawnAgent(Role.REVIEWER, task.rev + 1, seat="review.general")
    ]


@pytest.mark.req("R93", "R100")
def test_two_reviewers_without_a_verdict_are_stuck_and_nobody_is_charged() -> None:
    task = a_task(S.AGENT_REVIEW, review_round=1, crash_count=1, failed_attempts=3)

    decision = session_ended(evidence(task))

    assert decision.task.status is S.STUCK
    assert decision.task.cause is Cause.CRASH_THRESHOLD
    assert decision.task.failed_attempts == 3


@pytest.mark.req("R94")
@pytest.mark.parametrize("status", [S.CLARIFICATION, S.REVIEWING, S.STUCK])
def test_where_a_human_is_waited_for_a_dead_session_is_only_marked(status) -> None:
    decision = session_ended(evidence(a_task(status), HANDOFF + PASS))

    assert decision.task.status is status
    assert decision.task.dead
    assert decision.task.crash_count == 0
    assert _effects(decision, SpawnAgent) == []


@pytest.mark.parametrize("status", [S.PENDING, S.DONE, S.CANCELLED, S.PAUSED_FOR_INTERVENTION])
def test_where_no_session_belongs_its_end_changes_nothing(status) -> None:
    decision = session_ended(evidence(a_task(status), HANDOFF))

    assert (decision.task.status, decision.task.dead) == (status, False)
    assert decision.events == ()


def test_a_worker_that_signalled_and_then_exits_is_no_crash_of_the_review() -> None:
    task = a_task(S.AGENT_REVIEW, review_round=1)
    worker = a_session()

    decision = session_ended(evidence(task, HANDOFF, session=worker))

    assert (decision.task.status, decision.task.crash_count) == (S.AGENT_REVIEW, 0)
    assert decision.events == (SessionEnded(worker.id, Role.WORKER, seconds=60.0),)
    assert decision.session is not None
    assert decision.session.ended == evidence(task).now


@pytest.mark.parametrize(
    ("status", "old"),
    [
        (S.WORKING, a_session(generation=2)),
        (S.AGENT_REVIEW, a_session(Role.REVIEWER, generation=2)),
        (S.AGENT_REVIEW, a_session(Role.REVIEWER, round=1)),
    ],
    ids=["an earlier worker", "a reviewer of an earlier evaluation", "one of another round"],
)
@pytest.mark.parametrize("body", ["", HANDOFF + PASS, HANDOFF + FAIL])
def test_an_older_session_that_ends_late_counts_for_nothing(status, old, body) -> None:
    decision = session_ended(evidence(a_task(status), body, session=old))

    assert (decision.task.status, decision.task.crash_count) == (status, 0)
    assert decision.events == (SessionEnded(old.id, old.role, seconds=60.0),)
    assert decision.effects == (MirrorTask(),)


def test_the_end_of_a_session_is_counted_once_however_often_it_is_told() -> None:
    first = session_ended(evidence(a_task(), "", session=a_session()), COSTLY)

    refusal = refused(_session_ended(evidence(first.task, HANDOFF, session=first.session), COSTLY))

    assert first.task.usd == COSTLY.spent.usd
    assert refusal.why == "this session has ended already"
    assert isinstance(refusal, Declined)


GATES_BEHIND = Pinned(base_commit="b", config_hash="c", gates=(*RULES.gates, TESTS_GATE))
GATES_BEFORE = Pinned(base_commit="b", config_hash="c", gates=(TESTS_GATE, *RULES.gates))


def test_a_verdict_does_not_move_a_task_whose_gates_still_judge() -> None:
    task = a_task(S.AGENT_REVIEW, review_round=1, pinned=GATES_BEFORE)

    decision = session_ended(evidence(task, PASS))

    assert (decision.task.status, decision.task.crash_count) == (S.AGENT_REVIEW, 0)
    assert decision.effects == (MirrorTask(),)
    assert _events(decision, AutoAdvanced) == []


@pytest.mark.req("R90")
def test_a_reviewer_that_dies_after_a_pass_has_the_gates_behind_it_judged_first() -> None:
    task = a_task(S.AGENT_REVIEW, review_round=1, pinned=GATES_BEHIND)

    decision = session_ended(evidence(task, PASS, session=a_session(Role.REVIEWER, round=1)))

    assert (decision.task.status, decision.task.crash_count) == (S.AGENT_REVIEW, 0)
    assert decision.task.passed == ("review",)
    assert _effects(decision, EvaluateGates) == [EvaluateGates(1)]
    assert _events(decision, AutoAdvanced) == []


@pytest.mark.parametrize("body", [PASS, FAIL, ""])
def test_a_reviewer_that_has_given_its_verdict_only_leaves(body) -> None:
    said = taken(
        move(
            evidence(
                a_task(S.AGENT_REVIEW, review_round=1, pinned=GATES_BEHIND),
                PASS,
                Actor.REVIEWER,
            ),
            Move(S.REVIEWING),
        )
    )
    reviewer = a_session(Role.REVIEWER, round=1)

    decision = session_ended(evidence(said.task, body, session=reviewer))

    assert (decision.task.status, decision.task.crash_count) == (S.AGENT_REVIEW, 0)
    assert decision.events == (SessionEnded(reviewer.id, Role.REVIEWER, seconds=60.0),)
    assert decision.effects == (MirrorTask(),)


@pytest.mark.req("R87", "R96")
def test_a_session_that_is_gone_is_judged_by_its_task_file_and_not_merely_marked() -> None:
    with_it = session_ended(evidence(a_task(), HANDOFF, session=a_session()))
    without = session_ended(evidence(a_task(), "", session=a_session()))

    assert with_it.task.status is S.AGENT_REVIEW
    assert without.task.crash_count == 1


@pytest.mark.req("R183", "R184", "R186")
def test_a_crash_that_is_the_fifth_failed_attempt_pauses_rather_than_sticks() -> None:
    task = a_task(crash_count=MAX_CRASHES - 1, failed_attempts=ESCALATION_THRESHOLD - 1)

    decision = session_ended(evidence(task))

    assert decision.task.status is S.PAUSED_FOR_INTERVENTION
    assert decision.task.cause is Cause.ESCALATION_THRESHOLD
    assert _events(decision, Escalation) == [Escalation(task.id, ESCALATION_THRESHOLD)]
    assert _effects(decision, SpawnAgent) == []


def test_a_workers_crash_is_one_failed_attempt() -> None:
    decision = session_ended(evidence(a_task(failed_attempts=1)))

    assert decision.task.failed_attempts == 2
    assert _events(decision, AttemptFailed)[0].attempts == 2


def test_without_a_review_first_the_gates_are_evaluated() -> None:
    decision = session_ended(evidence(a_task(pinned=GATES_BEFORE), HANDOFF))

    assert _effects(decision, EvaluateGates) == [EvaluateGates(1)]
    assert _effects(decision, SpawnAgent) == []
    assert decision.task.review_round == 0


BODIES = st.lists(
    st.sampled_from([HANDOFF, PASS, FAIL, "## Review\n\nfine\n", "```\n", "text\n"]), max_size=4
).map("".join)


@given(
    status=st.sampled_from(list(S)),
    body=BODIES,
    crashes=st.integers(0, 3),
    attempts=st.integers(0, 6),
    round=st.integers(0, 3),
    iteration=st.integers(1, 4),
)
def test_a_dead_session_only_ever_moves_along_the_map(
    status, body, crashes, attempts, round, iteration
) -> None:
    task = a_task(
        status,
        crash_count=crashes,
        failed_attempts=attempts,
        review_round=round,
        iteration=iteration,
    )

    decision = session_ended(evidence(task, body))

    place = status
    for change in _events(decision, StatusChanged):
        assert (place, change.target) in ARROWS
        place = change.target
    assert decision.task.status is place
    assert decision.task.rev == task.rev + 1


@pytest.mark.parametrize("status", [Status.DONE, Status.CANCELLED])
@pytest.mark.parametrize("role", Role)
def test_no_session_begins_on_a_task_that_ended_meanwhile(status, role) -> None:
    task = a_task(status)
    spawn = SpawnAgent(role=role, generation=task.generation)

    declined = session_started(evidence(task), spawn, "hash")

    assert isinstance(declined, Declined)
    assert f"the task is {status}" in declined.why


@pytest.mark.parametrize(("interactive", "needed"), [(False, 3), (True, 0)])
def test_a_session_begins_within_the_slots_unless_a_human_sits_in_it(interactive, needed) -> None:
    task = a_task(Status.WORKING)
    spawn = SpawnAgent(Role.WORKER, task.generation, interactive=interactive)

    begun = session_started(evidence(task), spawn, "hash", slots=3)

    assert isinstance(begun, Decision)
    assert begun.slots == needed


@pytest.mark.parametrize(
    ("agent", "host", "native"),
    [("claude", "h1", "n1"), ("codex", "h1", ""), ("claude", "h2", ""), ("claude", "", "")],
)
def test_a_worker_is_resumed_on_the_host_that_has_its_conversation(agent, host, native) -> None:
    before = replace(a_session(), agent="claude", native="n1", host="h1")

    assert last_native([before], agent, host) == native
    assert last_native([], agent, host) == ""


@pytest.mark.parametrize(
    ("began", "now", "elsewhere"),
    [("h1", "h2", True), ("h1", "h1", False), ("", "h2", False), ("", "", False), ("h1", "", True)],
)
def test_a_session_is_elsewhere_where_another_host_has_its_task_now(began, now, elsewhere) -> None:
    session, task = replace(a_session(), host=began), replace(a_task(Status.WORKING), host=now)

    assert is_elsewhere(session, task) is elsewhere


@pytest.mark.parametrize(
    ("here", "has", "begins"),
    [("", "", True), ("", "h1", True), ("h1", "h1", True), ("h1", "", False), ("h1", "h2", False)],
)
def test_a_session_begins_only_on_the_host_that_has_its_task(here, has, begins) -> None:
    task = replace(a_task(Status.WORKING, generation=3), host=has)

    begun = session_started(
        evidence(task), SpawnAgent(Role.WORKER, 3), "hash", Place("/w", host=here)
    )

    assert isinstance(begun, Decision) is begins
