"""Effects that nobody needs any more, because the task has moved on."""

from typing import get_args

import pytest
from msgspec.structs import replace

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
    overtaken,
    rules_for,
    wants_fresh,
)
from lockgate.core.lifecycle.landing import met, sent_back
from lockgate.core.lifecycle.moves import Move, move
from lockgate.core.lifecycle.records import repinned
from lockgate.core.model.agents import digest_in, file_agent, names_a_file
from lockgate.core.model.limits import RetryConfig, Strategy
from lockgate.core.model.task import Actor, GateKind, GateRef, Pinned, Role, Status, Task
from lockgate.core.train.model import Red
from tests.given import COMMIT, REVIEW_GATE, RULES, TESTS_GATE, a_task, evidence, taken

S = Status
WORKER = SpawnAgent(Role.WORKER, 3)
REVIEWER = SpawnAgent(Role.REVIEWER, 4, seat="review.general")


@pytest.mark.parametrize(
    ("effect", "still_wanted"),
    [
        (WORKER, {S.WORKING, S.CLARIFICATION}),
        (SpawnAgent(Role.WORKER, 2), set()),
        (REVIEWER, {S.AGENT_REVIEW}),
        (EvaluateGates(1), {S.AGENT_REVIEW}),
        (EvaluateGates(2), set()),
        (NotifyHuman(S.STUCK, "stuck"), {S.STUCK}),
        (PrepareWorkspace(), set(S) - {S.DONE, S.CANCELLED}),
        (MirrorTask(), set(S)),
        (PublishChange(), {S.REVIEWING}),
        (EndSessions(8), set(S)),
        (ReleaseWorkspace(), set(S)),
        (DiscardTask(), set(S)),
    ],
)
def test_an_effect_is_wanted_only_while_its_task_stands_where_it_was_asked_for(
    effect, still_wanted
) -> None:
    wanted = {status for status in S if not overtaken(effect, a_task(status, since=4))}

    assert wanted == still_wanted


def test_every_effect_is_asked_whether_it_is_still_wanted() -> None:
    one_of_each: list[Effect] = [
        WORKER,
        EvaluateGates(1),
        NotifyHuman(S.STUCK, ""),
        PrepareWorkspace(),
        PublishChange(),
        MirrorTask(),
        EndSessions(8),
        ReleaseWorkspace(),
        DiscardTask(),
    ]

    assert {type(it) for it in one_of_each} == set(get_args(Effect))
    assert all(overtaken(it, a_task()) in {True, False} for it in one_of_each)


@pytest.mark.parametrize(
    ("generation", "seat", "wanted"),
    [
        (5, "review.general", True),
        (4, "review.general", False),
        (6, "review.general", False),
        (5, "review.style", False),
        (5, "", False),
    ],
)
def test_a_reviewer_is_wanted_only_in_the_seat_that_it_was_asked_for(
    generation, seat, wanted
) -> None:
    task = a_task(S.AGENT_REVIEW, since=5)

    assert overtaken(SpawnAgent(Role.REVIEWER, generation, seat=seat), task) is not wanted


@pytest.mark.parametrize("interactive", [False, True])
@pytest.mark.parametrize(
    ("generation", "since", "wanted"),
    [
        (3, 4, False),  # asked for before the task was stuck
        (4, 4, True),
        (6, 4, True),
    ],
)
def test_on_a_stuck_task_only_a_worker_that_was_asked_for_since_is_wanted(
    generation, since, wanted, interactive
) -> None:
    task = a_task(S.STUCK, since=since, generation=generation)
    spawn = SpawnAgent(Role.WORKER, generation, interactive=interactive)

    assert overtaken(spawn, task) is not wanted
    assert overtaken(spawn, a_task(S.STUCK, since=since, generation=generation + 1))


def test_a_task_that_has_failed_nowhere_wants_no_fresh_agent() -> None:
    assert not wants_fresh(a_task())
    assert not wants_fresh(a_task(pinned=None))


@pytest.mark.req("R138", "R139", "R140")
@pytest.mark.parametrize(
    ("strategy", "fresh"),
    [(Strategy.AUTO, True), (Strategy.FRESH, True), (Strategy.SAME, False)],
)
def test_a_full_context_wants_a_fresh_agent_unless_it_must_be_the_same(strategy, fresh) -> None:
    rules = replace(RULES, retry=RetryConfig(strategy=strategy))

    assert wants_fresh(a_task(exhausted=True, pinned=rules)) is fresh
    assert not wants_fresh(a_task(exhausted=True, pinned=None))


# --- a file as the worker -----------------------------------------------------------------------

FILE = file_agent("agent.sh", "9b" * 32)
BY_CODEX = GateRef("second", GateKind.MULTIPASS_REVIEW, agent="codex")
REVIEWED = replace(RULES, gates=(TESTS_GATE, REVIEW_GATE, BY_CODEX))


def test_a_file_is_named_by_its_file_and_its_digest() -> None:
    assert (
        file_agent("my agent.sh", "0123456789abcdef" * 4) == f"my-agent.sh@{'0123456789abcdef' * 2}"
    )
    assert file_agent("", "0" * 64) == f"agent@{'0' * 32}"
    assert digest_in(FILE) == "9b" * 16
    assert digest_in("claude") is None
    assert names_a_file("./agent.sh")
    assert not names_a_file("claude")


def test_a_file_does_not_review_its_own_change() -> None:
    pinned = rules_for(evidence(a_task(agent=FILE), reviewer="claude"), REVIEWED)

    assert pinned.gates == (TESTS_GATE, replace(REVIEW_GATE, agent="claude"), BY_CODEX)


def test_where_no_agent_can_review_a_human_does() -> None:
    pinned = rules_for(evidence(a_task(agent=FILE)), REVIEWED)

    assert pinned.gates == (TESTS_GATE, GateRef("review", GateKind.HUMAN, serial=True), BY_CODEX)


def test_an_agent_that_is_no_file_reviews_as_configured() -> None:
    assert rules_for(evidence(a_task(agent="scripted"), reviewer="claude"), REVIEWED) is REVIEWED


def _started(rules: Pinned) -> Task:
    seen = evidence(a_task(S.PENDING, agent=FILE, pinned=None), actor=Actor.HUMAN, rules=rules)
    return taken(move(seen, Move(S.WORKING))).task


def _repinned(rules: Pinned) -> Task:
    return taken(repinned(evidence(a_task(agent=FILE), actor=Actor.HUMAN), rules)).task


def _sent_back(rules: Pinned) -> Task:
    queued = a_task(S.REVIEWING, agent=FILE, candidate=COMMIT)
    return taken(sent_back(evidence(queued), met(Red("x"), ()), COMMIT, rules)).task


@pytest.mark.parametrize("gives", [_started, _repinned, _sent_back])
def test_however_a_task_gets_its_rules_a_file_is_not_its_reviewer(gives) -> None:
    task = gives(replace(REVIEWED, config_hash="e" * 64))

    assert [it.kind for it in task.pinned.gates if it.name == "review"] == [GateKind.HUMAN]
