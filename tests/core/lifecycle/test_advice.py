"""The one command that moves a task on, for every place where a task can stand."""

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle.advice import BY_STATUS, Surroundings, advice
from lockgate.core.lifecycle.needs import (
    CAUSES,
    RUN,
    Around,
    NeedKind,
    asks,
    last_failure,
    need_of,
)
from lockgate.core.model.findings import Finding, GateFeedback, Priority
from lockgate.core.model.task import (
    Cause,
    IterationOutcome,
    IterationRecord,
    Size,
    Status,
    Stuck,
    TaskId,
)
from tests.given import ID, NOW, RULES, a_task, evidence, needs_human

S = Status
NOTHING = Surroundings()
UPDATE = f"lockgate task update {ID} --status"
AUTO = replace(RULES, lands_alone=True)


@pytest.mark.parametrize(
    ("task", "command"),
    [
        (a_task(S.PENDING, pinned=None), ""),
        (a_task(S.PENDING, pinned=None, auto_start=False), f"lockgate task start {ID}"),
        (a_task(S.CLARIFICATION), f"lockgate answer {ID} -m TEXT"),
        (a_task(S.WORKING), ""),
        (a_task(S.WORKING, dead=True), f"lockgate task respawn {ID}"),
        (a_task(S.WORKING, taken_over=True), f"lockgate handback {ID}"),
        (a_task(S.STUCK, taken_over=True), f"lockgate handback {ID}"),
        (a_task(S.CLARIFICATION, taken_over=True), f"lockgate handback {ID}"),
        (a_task(S.WORKING, not_before=NOW + 1000), ""),
        (a_task(S.WORKING, dead=True, not_before=1.0), f"lockgate task respawn {ID}"),
        (a_task(S.WORKING, instead_of="claude"), ""),
        (a_task(S.AGENT_REVIEW), ""),
        (a_task(S.AGENT_REVIEW, dead=True, not_before=1.0), f"lockgate task respawn {ID}"),
        (a_task(S.AGENT_REVIEW, waiting="human"), f"lockgate approve {ID}"),
        (a_task(S.REVIEWING), f"lockgate approve {ID}"),
        (a_task(S.REVIEWING, pinned=AUTO), ""),
        (a_task(S.REVIEWING, pinned=AUTO, held="no"), f"lockgate approve {ID}"),
        (a_task(S.REVIEWING, to_land=True), ""),
        (a_task(S.REVIEWING, landed="a" * 40), ""),
        (a_task(S.STUCK), f"{UPDATE} working --directive TEXT"),
        (a_task(S.STUCK, cause=Cause.GATE_BROKEN), f"{UPDATE} agent-review"),
        (a_task(S.STUCK, cause=Cause.BUDGET), f"{UPDATE} working"),
        (a_task(S.STUCK, cause=Cause.SERVICE), f"{UPDATE} working"),
        (a_task(S.PAUSED_FOR_INTERVENTION), f"lockgate resume {ID} --directive TEXT"),
        (a_task(S.DONE), ""),
        (a_task(S.CANCELLED), ""),
        (a_task(S.STUCK, troubled="the disk is full"), "lockgate up --detach"),
    ],
)
def test_each_place_has_its_one_command_or_none(task, command) -> None:
    found = advice(evidence(task), NOTHING)

    assert found.command == command
    assert found.why


def test_what_has_landed_is_told_with_how_it_is_undone() -> None:
    found = advice(evidence(a_task(S.DONE, landed="a" * 40)), NOTHING)

    assert found.why == f"it is done; to revert it: lockgate undo {ID}"


def test_every_status_has_its_advice() -> None:
    assert set(BY_STATUS) == set(Status)


def test_a_task_that_cannot_start_is_told_what_it_needs_first() -> None:
    seen = evidence(a_task(S.PENDING, pinned=None), untrusted="it wants the network")

    assert advice(seen, NOTHING).command == "lockgate trust, in its repository"


def test_a_task_waits_for_those_that_it_depends_on() -> None:
    seen = evidence(a_task(S.PENDING, pinned=None))

    found = advice(seen, Surroundings(unfinished=(TaskId("other-1"),)))

    assert (found.why, found.command) == ("it starts when these are done: other-1", "")


def test_files_in_the_way_of_a_landing_are_named_with_what_puts_them_away() -> None:
    blocked = f"local edits would be overwritten: a.txt{RUN}git stash push -- a.txt"

    found = advice(evidence(a_task(S.REVIEWING, to_land=True)), Surroundings(blocked=blocked))

    assert found.why == "local edits would be overwritten: a.txt"
    assert found.command == "git stash push -- a.txt"


def test_what_was_merged_by_hand_is_only_to_be_called_done() -> None:
    found = advice(evidence(a_task(S.REVIEWING), landed=True), NOTHING)

    assert found.command == f"{UPDATE} done"


@pytest.mark.parametrize("held", ["", "no"])
def test_a_change_that_is_not_in_the_target_is_never_led_around_the_queue(held) -> None:
    found = advice(evidence(a_task(S.REVIEWING, held=held)), NOTHING)

    assert "merge" not in f"{found.why} {found.command}"
    assert "--status done" not in found.command


def test_a_task_whose_login_another_task_has_used_up_waits_for_the_limit() -> None:
    limited = Surroundings(limited=True)

    pending = advice(evidence(a_task(S.PENDING, pinned=None, agent="claude")), limited)
    working = advice(evidence(a_task(S.WORKING)), limited)

    assert pending.why == "it starts when the usage limit of claude is over"
    assert working.why == "its agent hit a usage limit; it goes on by itself when that is over"


def test_a_limit_that_a_human_ends_names_the_key_that_says_so() -> None:
    told = advice(evidence(a_task(S.WORKING, dead=True, not_before=1.0)), NOTHING).why

    assert '[project] resume = "manual"' in told


def test_who_stands_in_for_whom_is_told() -> None:
    told = advice(evidence(a_task(S.WORKING, agent="codex", instead_of="claude")), NOTHING).why

    assert told.startswith("codex works on it in place of claude, which hit a usage limit;")


# --- what needs a human -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "kind", "commands"),
    [
        (a_task(S.AGENT_REVIEW, waiting="g"), "approve", ("diff", "approve", "reject")),
        (a_task(S.REVIEWING), "land", ("diff", "approve")),
        (a_task(S.REVIEWING, held="no"), "held", ("diff", "approve")),
        (a_task(S.CLARIFICATION), "answer", ("answer",)),
        (a_task(S.STUCK), "stuck", ("task", "task")),
        (a_task(S.STUCK, cause=Cause.BUDGET), "budget", ("task", "task")),
        (a_task(S.PAUSED_FOR_INTERVENTION), "paused", ("resume",)),
        (a_task(S.WORKING, dead=True), "dead", ("task",)),
        (a_task(S.WORKING, dead=True, not_before=1.0), "limit", ("task",)),
        (a_task(S.AGENT_REVIEW, dead=True, not_before=1.0), "limit", ("task",)),
        (a_task(S.WORKING, escalated="two steps failed"), "escalation", ("task", "takeover")),
        (a_task(S.WORKING, taken_over=True), "yours", ("handback",)),
        (a_task(S.STUCK, taken_over=True), "yours", ("handback",)),
        (a_task(S.PENDING, troubled="no bwrap"), "trouble", ("task",)),
    ],
)
def test_a_need_names_the_commands_that_answer_it(task, kind, commands) -> None:
    need = need_of(task)

    assert need is not None
    assert need.kind is NeedKind(kind)
    assert tuple(it.command.split()[1] for it in need.actions) == commands
    assert all(task.id in it.command for it in need.actions)
    assert bool(needs_human(task)) is (kind != "yours")


@pytest.mark.parametrize(
    "task",
    [
        a_task(S.PENDING),
        a_task(S.WORKING),
        a_task(S.AGENT_REVIEW),
        a_task(S.REVIEWING, to_land=True),
        a_task(S.DONE),
        a_task(S.CANCELLED),
    ],
)
def test_what_goes_on_by_itself_needs_nobody(task) -> None:
    assert need_of(task) is None
    assert needs_human(task) == ""


FEEDBACK = GateFeedback(
    gate_name="tests",
    findings=(Finding(Priority.P1_MAJOR, "test_a: 1 != 2"),),
    summary="tests failed with 1 P1",
    suggested_action="Fix it.",
)


@pytest.mark.parametrize(
    ("cause", "feedback", "told"),
    [
        (Cause.MAX_ITERATIONS, FEEDBACK, "its gates failed too often: tests failed with 1 P1"),
        (Cause.CRASH_THRESHOLD, FEEDBACK, "tests failed with 1 P1"),
        (Cause.CRASH_THRESHOLD, None, "its agents stopped without handing in"),
        (None, None, "stuck"),
    ],
)
def test_a_stuck_task_says_why_in_words(cause, feedback, told) -> None:
    phase = Stuck(agent_id="a", iterations=1, last_feedback=feedback) if feedback else None

    need = need_of(a_task(S.STUCK, cause=cause, phase=phase))

    assert need is not None
    assert need.ask == told


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_has_words(cause) -> None:
    assert CAUSES[cause]


def test_a_question_is_asked_in_one_line_and_only_while_it_waits() -> None:
    task = a_task(S.CLARIFICATION, question="Which\npage? " + "x" * 400)

    need = need_of(task)

    assert need is not None
    assert need.ask.startswith("asks: Which page? xxx")
    assert need.ask.endswith("…")
    assert asks(task) == task.question
    assert asks(replace(task, status=S.WORKING)) == ""


def test_a_large_change_is_named_before_it_is_approved() -> None:
    large = a_task(S.REVIEWING, size=Size(300, 9))

    assert needs_human(large).startswith("large change: 300 files, 0.0 MB added; all gates passed")


def test_a_change_that_steers_agents_says_so_before_it_is_approved() -> None:
    need = need_of(a_task(S.REVIEWING, protected=("AGENTS.md",)))

    assert need is not None
    assert need.ask.endswith("it changes what steers agents, editors, hooks or CI: AGENTS.md")


@pytest.mark.parametrize(
    ("task", "lands", "told"),
    [
        (a_task(S.REVIEWING), True, True),
        (a_task(S.REVIEWING), False, False),
        (a_task(S.REVIEWING, held="no"), True, False),
        (a_task(S.STUCK), True, False),
    ],
)
def test_only_a_change_that_nobody_holds_lands_by_itself(task, lands, told) -> None:
    assert (need_of(task, Around(lands_alone=lands)) is None) is told


def test_the_last_failure_is_that_of_the_newest_try() -> None:
    records = [
        IterationRecord(
            iteration=n,
            agent_id="a",
            outcome=IterationOutcome.FAILED_WITH_RETRY,
            feedback=replace(FEEDBACK, gate_name=name) if name else None,
        )
        for n, name in enumerate(("lint", "tests", ""), 1)
    ]

    assert last_failure(a_task(S.WORKING, history=tuple(records))) == "tests: test_a: 1 != 2"
    assert last_failure(a_task(S.WORKING)) == ""


def test_a_task_that_waits_in_vain_is_told_how_to_start_without_the_other() -> None:
    found = advice(evidence(a_task(S.PENDING, in_vain="gone-1 is cancelled")), NOTHING)

    assert "it waits in vain: gone-1 is cancelled" in found.why
    assert f"lockgate task cancel {ID}" in found.why
    assert found.command == f"lockgate task drop-dependency {ID} gone-1"
