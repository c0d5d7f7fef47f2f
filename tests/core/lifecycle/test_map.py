"""The map, pair by pair, as S2 and the design write it; who may take an arrow, what it needs."""

from itertools import product

import pytest

from lockgate.core.lifecycle.decision import Refusal
from lockgate.core.lifecycle.map import ARROWS, OWNERS, RULES, exits, validate_transition
from lockgate.core.lifecycle.moves import Move, move
from lockgate.core.model.agents import NoLogin
from lockgate.core.model.events import MoveForced
from lockgate.core.model.task import Actor, GateKind, GateRef, Pinned, Role, Status
from lockgate.core.text.task_file import Artifacts
from tests.given import (
    FAIL,
    HANDOFF,
    PASS,
    TESTS_GATE,
    a_session,
    a_task,
    evidence,
    refused,
    taken,
)
from tests.given import RULES as PINNED

S = Status

# S2's map, as the document has it.
MAP = """
pending       -> working clarification cancelled
clarification -> working cancelled
working       -> agent-review clarification stuck cancelled
agent-review  -> reviewing working stuck cancelled
reviewing     -> done cancelled
stuck         -> working agent-review cancelled
done          ->
cancelled     ->
"""
# What the design adds to it: S4's status, and what only the orchestrator does.
PAUSE = {(S.PAUSED_FOR_INTERVENTION, S.PENDING), (S.PAUSED_FOR_INTERVENTION, S.CANCELLED)}
ORCHESTRATORS = {
    (S.WORKING, S.PAUSED_FOR_INTERVENTION),
    (S.AGENT_REVIEW, S.PAUSED_FOR_INTERVENTION),
    (S.REVIEWING, S.WORKING),
}
S2_STATUSES = tuple(status for status in S if status is not S.PAUSED_FOR_INTERVENTION)


def _pairs(text: str) -> set[tuple[Status, Status]]:
    rows = (line.split("->") for line in text.strip().splitlines())
    return {
        (S(source.strip()), S(target)) for source, targets in rows for target in targets.split()
    }


S2_PAIRS = _pairs(MAP)
HUMAN_PAIRS = S2_PAIRS | PAUSE

# A body that meets every artifact need of one arrow.
BODIES = {
    (S.WORKING, S.AGENT_REVIEW): HANDOFF,
    (S.AGENT_REVIEW, S.REVIEWING): PASS,
    (S.AGENT_REVIEW, S.WORKING): FAIL,
    (S.AGENT_REVIEW, S.STUCK): FAIL,
}
ROUNDS = {(S.AGENT_REVIEW, S.STUCK): 2}


def _everything_there(source: Status, target: Status, actor: Actor):
    task = a_task(source, review_round=ROUNDS.get((source, target), 0))
    return evidence(task, BODIES.get((source, target), ""), actor, landed=True)


@pytest.mark.req("R60", "R61", "R62", "R63", "R64", "R65", "R66", "R67", "R72", "R80")
@pytest.mark.parametrize(("source", "target"), list(product(S2_STATUSES, S2_STATUSES)))
def test_every_one_of_the_64_pairs_is_on_s2s_map_or_refused(source, target) -> None:
    seen = _everything_there(source, target, Actor.HUMAN)

    refusal = validate_transition(seen, target)

    assert (refusal is None) == ((source, target) in S2_PAIRS)


@pytest.mark.parametrize(
    ("source", "target"),
    [pair for pair in product(S, S) if S.PAUSED_FOR_INTERVENTION in pair],
)
def test_a_human_takes_a_task_out_of_the_pause_and_never_puts_it_in(source, target) -> None:
    seen = _everything_there(source, target, Actor.HUMAN)

    refusal = validate_transition(seen, target)

    assert (refusal is None) == ((source, target) in PAUSE)


def test_the_table_is_s2s_map_and_the_named_additions_and_nothing_else() -> None:
    assert set(ARROWS) == S2_PAIRS | PAUSE | ORCHESTRATORS
    assert len(RULES) == len(ARROWS)


@pytest.mark.parametrize(("source", "target"), sorted(ORCHESTRATORS))
def test_only_the_orchestrator_takes_the_starred_arrows(source, target) -> None:
    for actor in (Actor.WORKER, Actor.REVIEWER, Actor.HUMAN):
        refusal = validate_transition(_everything_there(source, target, actor), target)

        assert refusal is not None
        assert "only the orchestrator" in refusal.why

    seen = _everything_there(source, target, Actor.ORCHESTRATOR)
    assert validate_transition(seen, target) is None


# What each arrow sets off, in order.
SETS_OFF = """
pending -> working: prepare worker
pending -> clarification: prepare worker
pending -> cancelled: end release
clarification -> working: worker
clarification -> cancelled: end release
working -> agent-review: judges
working -> clarification: human
working -> stuck: end human
working -> cancelled: end release
working -> paused-for-intervention: end human
agent-review -> reviewing: publish human
agent-review -> working: worker
agent-review -> stuck: end human
agent-review -> cancelled: end release
agent-review -> paused-for-intervention: end human
reviewing -> done: end release
reviewing -> cancelled: end release
reviewing -> working: worker
stuck -> working: worker
stuck -> agent-review: judges
stuck -> cancelled: end release
paused-for-intervention -> pending:
paused-for-intervention -> cancelled: end release
"""


def test_each_arrow_sets_off_what_the_design_says() -> None:
    told = {(rule.source, rule.target): [make.__name__ for make in rule.sets_off] for rule in RULES}

    wanted = {}
    for line in SETS_OFF.strip().splitlines():
        arrow, effects = line.split(":")
        source, target = arrow.split(" -> ")
        wanted[S(source), S(target)] = effects.split()
    assert told == wanted


WORKERS = {
    (S.WORKING, S.AGENT_REVIEW),
    (S.WORKING, S.CLARIFICATION),
    (S.CLARIFICATION, S.WORKING),
    (S.STUCK, S.AGENT_REVIEW),
}
REVIEWERS = {
    (S.AGENT_REVIEW, S.REVIEWING),
    (S.AGENT_REVIEW, S.WORKING),
    (S.AGENT_REVIEW, S.STUCK),
}


@pytest.mark.req("R82", "R83", "R84")
@pytest.mark.parametrize(("source", "target"), list(product(S, S)))
@pytest.mark.parametrize(
    ("actor", "theirs"), [(Actor.WORKER, WORKERS), (Actor.REVIEWER, REVIEWERS)]
)
def test_an_agent_takes_the_arrows_of_its_role_and_no_other(source, target, actor, theirs) -> None:
    seen = _everything_there(source, target, actor)

    refusal = validate_transition(seen, target)

    assert (refusal is None) == ((source, target) in theirs)


@pytest.mark.req("R67")
def test_a_refusal_off_the_map_names_where_one_may_go() -> None:
    refusal = refused(move(evidence(a_task(S.REVIEWING), "", Actor.HUMAN), Move(S.STUCK)))

    assert "a task that is reviewing can only become done or cancelled" in refusal.why


@pytest.mark.req("R66")
@pytest.mark.parametrize("status", [S.DONE, S.CANCELLED])
def test_an_ended_task_has_no_way_out(status) -> None:
    assert exits(status) == ()
    refusal = refused(move(evidence(a_task(status), "", Actor.HUMAN), Move(S.WORKING)))
    assert "cannot be moved" in refusal.why


def test_a_move_to_where_the_task_is_says_so() -> None:
    refusal = refused(move(evidence(a_task(S.WORKING), HANDOFF, Actor.HUMAN), Move(S.WORKING)))

    assert "it is working already" in refusal.why


# --- needs --------------------------------------------------------------------------------------


@pytest.mark.req("R68", "R74", "R78")
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("", "no '## Handoff'"),
        ("## Handoff\n\n", "'## Handoff'"),
        ("## Handoff\n<!-- later -->\n", "'## Handoff'"),
        ("```\n## Handoff\nDONE: all\n```\n", "no '## Handoff'"),
        (f"{HANDOFF}\n{HANDOFF}", "## Handoff"),
    ],
)
def test_without_a_handoff_that_counts_work_is_not_handed_on(body, why) -> None:
    refusal = refused(move(evidence(a_task(), body, Actor.WORKER), Move(S.AGENT_REVIEW)))

    assert why in refusal.why


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        ("TASK.md is a link", "TASK.md is a link"),
        ("TASK.md has two '## Handoff' sections", "two '## Handoff' sections"),
        ("TASK.md has two '## Review' sections", "no '## Handoff' section"),
    ],
)
def test_a_refusal_names_the_problem_that_concerns_it(problem, told) -> None:
    seen = evidence(a_task(), "", Actor.WORKER, found=Artifacts(problems=(problem,)))

    assert told in refused(move(seen, Move(S.AGENT_REVIEW))).why


def test_a_refusal_says_what_else_an_agent_may_do() -> None:
    worker = refused(move(evidence(a_task(), "", Actor.WORKER), Move(S.STUCK)))
    reviewer = refused(move(evidence(a_task(), "", Actor.REVIEWER), Move(S.AGENT_REVIEW)))

    assert worker.why == (
        "a worker may not ask for it; from working a worker may go to agent-review, clarification"
    )
    assert reviewer.why == "a reviewer may not ask for it; a reviewer has no move from working"


@pytest.mark.req("R68")
def test_a_handoff_hands_the_work_on() -> None:
    decision = taken(move(evidence(a_task(), HANDOFF, Actor.WORKER), Move(S.AGENT_REVIEW)))

    assert decision.task.status is S.AGENT_REVIEW


def test_a_handoff_that_has_moved_the_task_once_does_not_count_again() -> None:
    first = taken(move(evidence(a_task(), HANDOFF, Actor.WORKER), Move(S.AGENT_REVIEW)))
    back = a_task(S.WORKING, spent=first.task.spent)

    again = move(evidence(back, HANDOFF, Actor.WORKER), Move(S.AGENT_REVIEW))
    other = move(evidence(back, HANDOFF + "\nMore.\n", Actor.WORKER), Move(S.AGENT_REVIEW))

    assert "has not changed" in refused(again).why
    assert taken(other).task.status is S.AGENT_REVIEW


def test_a_handoff_that_was_there_while_a_question_was_asked_still_counts() -> None:
    asked = taken(move(evidence(a_task(), HANDOFF, Actor.HUMAN), Move(S.CLARIFICATION)))
    answered = taken(move(evidence(asked.task, HANDOFF, Actor.HUMAN), Move(S.WORKING)))

    decision = taken(move(evidence(answered.task, HANDOFF, Actor.HUMAN), Move(S.AGENT_REVIEW)))

    assert decision.task.status is S.AGENT_REVIEW


@pytest.mark.req("R69", "R70", "R71", "R75")
@pytest.mark.parametrize(
    ("body", "target", "round", "why"),
    [
        ("", S.REVIEWING, 1, "'## Review'"),
        ("## Review\n\nLooks fine.\n", S.REVIEWING, 1, "no verdict"),
        (FAIL, S.REVIEWING, 1, "is FAIL, not PASS"),
        ("", S.WORKING, 1, "'## Review'"),
        (PASS, S.WORKING, 1, "is PASS, not FAIL"),
        (PASS, S.STUCK, 2, "is PASS, not FAIL"),
        (FAIL, S.WORKING, 2, "a FAIL goes to stuck"),
        (FAIL, S.STUCK, 1, "a FAIL goes to working"),
        (f"{PASS}\n{PASS}", S.REVIEWING, 1, "## Review"),
    ],
)
def test_a_verdict_that_does_not_fit_the_arrow_is_refused(body, target, round, why) -> None:
    task = a_task(S.AGENT_REVIEW, review_round=round)

    refusal = refused(move(evidence(task, body, Actor.REVIEWER), Move(target)))

    assert why in refusal.why


@pytest.mark.req("R70", "R71")
@pytest.mark.parametrize(
    ("round", "asked", "right"), [(2, "working", "stuck"), (1, "stuck", "working")]
)
def test_the_refusal_of_a_fail_names_the_command_that_fits_the_round(round, asked, right) -> None:
    task = a_task(S.AGENT_REVIEW, review_round=round)

    refusal = refused(move(evidence(task, FAIL, Actor.REVIEWER), Move(S(asked))))

    assert refusal.fix == f"lockgate task update {task.id} --status {right}"


def test_no_verdict_stands_for_a_gate_that_has_not_passed() -> None:
    rules = Pinned(base_commit="b", config_hash="c", gates=(TESTS_GATE, *PINNED.gates))
    task = a_task(S.AGENT_REVIEW, review_round=1, pinned=rules)

    for asked in (Move(S.REVIEWING), Move(S.REVIEWING, "trust me", force=True)):
        refusal = refused(move(evidence(task, PASS, Actor.HUMAN), asked))

        assert refusal.why == "these gates have not passed: tests"


def test_done_needs_the_change_in_the_target_and_force_does_not_help() -> None:
    task = a_task(S.REVIEWING)

    for asked in (Move(S.DONE), Move(S.DONE, "trust me", force=True)):
        refusal = refused(move(evidence(task, "", Actor.HUMAN), asked))

        assert "not in the target branch" in refusal.why

    landed = evidence(task, "", Actor.HUMAN, landed=True)
    assert taken(move(landed, Move(S.DONE))).task.status is S.DONE


def test_a_task_does_not_start_under_a_configuration_that_cannot_be_taken() -> None:
    task = a_task(S.PENDING, pinned=None)
    seen = evidence(task, "", Actor.HUMAN, misconfigured="unknown key: gates.lst")

    assert "gates.lst" in refused(move(seen, Move(S.WORKING))).why
    assert taken(move(seen, Move(S.CANCELLED))).task.status is S.CANCELLED


def test_a_task_does_not_start_where_its_repository_asks_for_what_no_human_agreed_to() -> None:
    task = a_task(S.PENDING, pinned=None)
    seen = evidence(task, "", Actor.HUMAN, untrusted="it wants to read ~/.ssh")

    refusal = refused(move(seen, Move(S.WORKING)))

    assert refusal.why.endswith("it wants to read ~/.ssh")
    assert refusal.fix.startswith("lockgate trust")
    assert taken(move(seen, Move(S.CANCELLED))).task.status is S.CANCELLED


# --- force, and sessions that have no say ---------------------------------------------------------


def test_a_human_may_force_past_a_missing_artifact_and_the_log_keeps_why() -> None:
    asked = Move(S.AGENT_REVIEW, "the handoff is in the issue", force=True)

    decision = taken(move(evidence(a_task(), "", Actor.HUMAN), asked))

    assert decision.task.status is S.AGENT_REVIEW
    forced = decision.events[-1]
    assert isinstance(forced, MoveForced)
    assert forced.reason == "the handoff is in the issue"
    assert "'## Handoff'" in forced.missing


def test_force_where_nothing_is_missing_is_a_plain_move() -> None:
    plain = taken(move(evidence(a_task(), HANDOFF, Actor.HUMAN), Move(S.AGENT_REVIEW)))
    forced = taken(move(evidence(a_task(), HANDOFF, Actor.HUMAN), Move(S.AGENT_REVIEW, force=True)))

    assert forced == plain


@pytest.mark.parametrize("actor", [Actor.WORKER, Actor.REVIEWER, Actor.ORCHESTRATOR])
def test_nobody_but_a_human_forces_a_move(actor) -> None:
    refusal = refused(move(evidence(a_task(), "", actor), Move(S.AGENT_REVIEW, "x", force=True)))

    assert "only a human may force" in refusal.why


@pytest.mark.parametrize(
    ("session", "status", "why"),
    [
        (a_session(ended=1.0), S.WORKING, "has ended"),
        (a_session(generation=2), S.WORKING, "a newer session"),
        (a_session(Role.REVIEWER, round=1), S.AGENT_REVIEW, "reviewed round 1"),
        (a_session(Role.REVIEWER, round=2, generation=2), S.AGENT_REVIEW, "earlier evaluation"),
    ],
)
def test_a_session_of_the_past_is_not_heard(session, status, why) -> None:
    actor = Actor(session.role)
    target = S.AGENT_REVIEW if status is S.WORKING else S.REVIEWING
    task = a_task(status, review_round=2)

    refusal = refused(move(evidence(task, HANDOFF + PASS, actor, session=session), Move(target)))

    assert why in refusal.why


def test_the_session_that_was_asked_for_is_heard() -> None:
    worker = evidence(a_task(), HANDOFF, Actor.WORKER, session=a_session())
    task = a_task(S.AGENT_REVIEW, review_round=1)
    reviewer = evidence(task, PASS, Actor.REVIEWER, session=a_session(Role.REVIEWER, round=1))

    assert taken(move(worker, Move(S.AGENT_REVIEW))).task.status is S.AGENT_REVIEW
    assert taken(move(reviewer, Move(S.REVIEWING))).task.status is S.REVIEWING


def test_each_status_that_an_agent_owns_has_arrows_that_need_its_artifact() -> None:
    for status in OWNERS:
        assert any(rule.need for rule in RULES if rule.source is status)


def test_gates_that_are_reviews_are_not_waited_for_as_gates() -> None:
    rules = Pinned(
        base_commit="b",
        config_hash="c",
        gates=(*PINNED.gates, GateRef("deep", GateKind.MULTIPASS_REVIEW)),
    )
    task = a_task(S.AGENT_REVIEW, review_round=1, pinned=rules)

    decision = taken(move(evidence(task, PASS, Actor.REVIEWER), Move(S.REVIEWING)))

    assert decision.task.status is S.REVIEWING


def test_a_task_does_not_start_while_its_agent_is_not_logged_in() -> None:
    login = NoLogin("claude is not logged in", "lockgate auth claude")
    seen = evidence(a_task(S.PENDING), actor=Actor.HUMAN, login_missing=login)

    refusal = validate_transition(seen, S.WORKING)

    assert isinstance(refusal, Refusal)
    assert (refusal.why, refusal.fix) == ("claude is not logged in", "lockgate auth claude")


def test_a_task_does_not_start_while_its_commits_could_not_be_signed() -> None:
    seen = evidence(a_task(S.PENDING), actor=Actor.HUMAN, unsigned="no secret key")

    refusal = validate_transition(seen, S.WORKING)

    assert isinstance(refusal, Refusal)
    assert "commit.gpgsign is set, and git could not sign a commit: no secret key" in refusal.why
    assert "git commit -S --allow-empty" in refusal.fix


def test_nothing_starts_with_an_agent_that_is_not_installed() -> None:
    seen = evidence(a_task(S.PENDING), agent_missing="npm install -g agent")

    answer = refused(move(seen, Move(S.WORKING)))

    assert answer.why == "agent scripted is not installed"
    assert answer.fix == "npm install -g agent"


def test_what_a_host_of_a_fleet_does_starts_whatever_agents_this_machine_has() -> None:
    login = NoLogin("claude is not logged in", "lockgate auth claude")
    seen = evidence(
        a_task(S.PENDING),
        actor=Actor.HUMAN,
        agent_missing="npm install -g agent",
        login_missing=login,
        hosts_have_agents=True,
    )

    assert validate_transition(seen, S.WORKING) is None
