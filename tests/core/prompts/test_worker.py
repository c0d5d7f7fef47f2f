"""What each agent is told, and that it is told nothing of another's role."""

import pytest

from lockgate.core.config.settings import EnvSettings, Service, ServiceKind
from lockgate.core.lifecycle.decision import SpawnAgent
from lockgate.core.lifecycle.evaluation import dropped_from_train
from lockgate.core.model.limits import Limits
from lockgate.core.model.task import (
    IterationOutcome,
    IterationRecord,
    NeedsFixes,
    Role,
    Status,
    Task,
    Word,
    Working,
)
from lockgate.core.prompts.reviewer import first_words
from lockgate.core.prompts.worker import (
    Before,
    dependencies,
    opening,
    prompt_for,
    running_beside,
)
from lockgate.core.text.feedback import same_agent_message
from tests.given import FEEDBACK, a_task, evidence

S = Status
LIMITS = Limits()
THE_WAY_ON = "lockgate task update --status agent-review"
RULES = (
    "Do NOT push",
    "Do NOT set --status reviewing",
    "the command fails if ## Handoff is missing",
)


def _prompt(status: Status, role: Role = Role.WORKER, **fields: object) -> str:
    return prompt_for(a_task(status, **fields), role, LIMITS)


@pytest.mark.req("R103")
@pytest.mark.parametrize(
    "part",
    [
        "Task: Fix the login redirect",
        "Branch: fix-login",
        "TASK.md",
        "## Context",
        "## Notes",
        "Implement it, test it, commit it",
        "## Handoff",
        "DONE:",
        "REMAINING:",
        "DECISIONS:",
        "UNCERTAIN:",
        THE_WAY_ON,
        *RULES,
    ],
)
def test_a_worker_is_told_what_to_do_and_how_to_hand_on(part) -> None:
    assert part in _prompt(S.WORKING)


@pytest.mark.req("R104")
@pytest.mark.parametrize(
    "part",
    [
        "Task: Fix the login redirect",
        "Branch: fix-login",
        "Review round: 1",
        "Read ## Review",
        "Fix each issue",
        "Update ## Handoff",
        THE_WAY_ON,
        *RULES,
    ],
)
def test_a_worker_after_a_review_is_told_to_fix_what_it_found(part) -> None:
    assert part in _prompt(S.WORKING, review_round=1)


@pytest.mark.req("R105", "R106")
@pytest.mark.parametrize(
    "part",
    [
        "Task: Fix the login redirect",
        "Branch: fix-login",
        "Review round: 1 of 2",
        "requirements",
        "Read ## Handoff",
        "git diff origin/HEAD...HEAD",
        "Write ## Review",
        "PASS or FAIL",
        "list each issue",
        "note what was done well",
        "PASS: lockgate task update --status reviewing",
        "FAIL: lockgate task update --status working",
        "the command fails without a verdict",
        "Do NOT post comments to GitHub",
        "ALL feedback into TASK.md only",
    ],
)
def test_a_reviewer_is_told_how_to_judge(part) -> None:
    assert part in _prompt(S.AGENT_REVIEW, Role.REVIEWER, review_round=1)


@pytest.mark.req("R105")
def test_a_reviewers_command_for_a_fail_follows_the_round() -> None:
    last = _prompt(S.AGENT_REVIEW, Role.REVIEWER, review_round=2)

    assert "FAIL: lockgate task update --status stuck" in last
    assert "--status working" not in last


@pytest.mark.req("R107")
@pytest.mark.parametrize(
    "part",
    [
        "Task: Fix the login redirect",
        "Branch: fix-login",
        "## Questions",
        "2-3 specific questions",
        "wait",
        "lockgate task update --summary",
        "## Notes",
        "lockgate task update --status working",
    ],
)
def test_an_agent_that_needs_an_answer_is_told_to_ask_and_wait(part) -> None:
    assert part in _prompt(S.CLARIFICATION)


@pytest.mark.req("R108")
@pytest.mark.parametrize(
    "part",
    [
        "Task: Fix the login redirect",
        "Branch: fix-login",
        "Review round: 2",
        "its review failed too often, or its agents crashed",
        "## Review and ## Handoff",
        "Address what got it stuck",
        "Write ## Handoff",
        THE_WAY_ON,
    ],
)
def test_an_agent_on_a_stuck_task_is_told_both_causes(part) -> None:
    assert part in _prompt(S.STUCK, review_round=2)


@pytest.mark.req("R103", "R105")
def test_no_role_reads_another_roles_commands() -> None:
    worker = _prompt(S.WORKING)
    reviewer = _prompt(S.AGENT_REVIEW, Role.REVIEWER, review_round=1)

    assert "PASS" not in worker
    assert "## Review" not in worker
    assert THE_WAY_ON not in reviewer


def test_the_directive_of_a_human_reaches_the_next_agent() -> None:
    assert "use the cookie" in _prompt(S.WORKING, directive="use the cookie")
    assert "From the human" not in _prompt(S.WORKING)


# --- asking a human -------------------------------------------------------------------------------


@pytest.mark.parametrize("review_round", [0, 1])
@pytest.mark.parametrize(
    "part",
    [
        "When to ask: where only a human can decide",
        "Write ## Questions into TASK.md",
        "lockgate task update --status clarification",
        "Stop. The answer comes in this conversation",
    ],
)
def test_a_worker_is_told_when_and_how_to_ask(part, review_round) -> None:
    assert part in _prompt(S.WORKING, review_round=review_round)


@pytest.mark.parametrize("resumed", [True, False])
def test_a_worker_reads_its_question_and_the_answer_however_it_begins(resumed) -> None:
    task = a_task(phase=Working("a", 1), question="Red\nor blue?", directive="Blue.")

    text = _opening(task, resumed=resumed)

    assert text.endswith("What was asked:\n> Red\n> or blue?\n\nThe human's answer:\nBlue.\n")
    assert text.count("Blue.") == 1
    assert text.startswith("You asked a human") == resumed


def test_a_worker_without_an_answer_is_told_to_decide_by_itself() -> None:
    text = _opening(a_task(phase=Working("a", 1), question="Red or blue?"), resumed=True)

    assert "decide it yourself" in text


def test_a_task_that_still_asks_shows_no_answer() -> None:
    assert "The human's answer" not in _prompt(S.CLARIFICATION, question="Red or blue?")


# --- the first words of a session -----------------------------------------------------------------

BEFORE = Before("made the redirect absolute", ("login.py", "test_login.py"))
FAILED_ONCE = IterationRecord(
    iteration=1, agent_id="a", outcome=IterationOutcome.FAILED_WITH_RETRY, feedback=FEEDBACK
)


def _opening(task: Task, role: Role = Role.WORKER, *, resumed: bool = False) -> str:
    return opening(task, role, LIMITS, BEFORE, resumed=resumed)


@pytest.mark.req("R103")
def test_the_first_agent_of_a_task_is_told_the_whole_story() -> None:
    assert _opening(a_task()) == _prompt(S.WORKING)


@pytest.mark.req("R138", "R141", "R172")
def test_a_worker_that_goes_on_gets_the_feedback_as_news() -> None:
    task = a_task(phase=NeedsFixes("a", 1, FEEDBACK), history=(FAILED_ONCE,))

    text = _opening(task, resumed=True)

    assert text.startswith(same_agent_message(FEEDBACK))
    assert text.endswith(THE_WAY_ON)
    assert "Read TASK.md" not in text


@pytest.mark.req("R139", "R142")
@pytest.mark.parametrize("phase", [NeedsFixes("a", 1, FEEDBACK), Working("b", 2)])
def test_a_fresh_worker_gets_what_was_done_what_was_found_and_the_whole_story(phase) -> None:
    task = a_task(phase=phase, history=(FAILED_ONCE,), iteration=2)

    text = _opening(task)

    assert text.startswith("Continue task: Fix the login redirect")
    for part in ("made the redirect absolute", "test_login.py", "one test is red"):
        assert part in text
    assert text.endswith(_prompt(S.WORKING))


@pytest.mark.parametrize("resumed", [True, False])
def test_a_worker_whose_change_the_train_dropped_is_told_why(resumed) -> None:
    task = dropped_from_train(evidence(a_task(S.REVIEWING)), FEEDBACK).task

    assert "one test is red" in _opening(task, resumed=resumed)


def test_a_worker_that_was_interrupted_is_told_to_go_on() -> None:
    text = _opening(a_task(phase=Working("a", 1), directive="hurry"), resumed=True)

    assert text.startswith("You were interrupted.")
    assert THE_WAY_ON in text
    assert text.endswith("hurry\n")


def test_a_worker_with_a_question_is_told_to_ask_it_however_it_begins() -> None:
    task = a_task(S.CLARIFICATION)

    assert _opening(task, resumed=True) == _opening(task) == _prompt(S.CLARIFICATION)


def test_a_worker_that_takes_up_a_stuck_task_is_told_so_however_it_begins() -> None:
    task = a_task(S.STUCK)

    assert _opening(task, resumed=True) == _opening(task) == _prompt(S.STUCK)


@pytest.mark.req("R105")
@pytest.mark.parametrize("resumed", [True, False])
def test_a_reviewer_is_told_its_own_part_and_nothing_of_the_feedback(resumed) -> None:
    task = a_task(S.AGENT_REVIEW, review_round=1, history=(FAILED_ONCE,))

    text = _opening(task, Role.REVIEWER, resumed=resumed)

    assert text == _prompt(S.AGENT_REVIEW, Role.REVIEWER, review_round=1)


@pytest.mark.parametrize("status", [S.WORKING, S.CLARIFICATION, S.STUCK])
def test_a_worker_reads_the_goal_and_beside_it_what_an_agent_made_of_the_summary(status) -> None:
    text = _prompt(status, summary="Fix it by a cookie")

    assert "Task: Fix the login redirect\n" in text
    assert "Summary, as an agent wrote it: Fix it by a cookie" in text


def test_a_fresh_worker_continues_the_goal() -> None:
    task = a_task(
        S.WORKING, summary="Fix it by a cookie", phase=NeedsFixes("scripted", 1, FEEDBACK)
    )

    text = opening(task, Role.WORKER, LIMITS, Before("", ()), resumed=False)

    assert text.startswith("Continue task: Fix the login redirect\n")


# --- an agent that stopped without handing in -----------------------------------------------------


def _first_words(*, resumed: bool) -> str:
    spawn = SpawnAgent(Role.WORKER, 8, asks=True)
    return first_words(a_task(last_words="All done!"), spawn, LIMITS, {}, resumed=resumed)


def test_an_agent_that_stopped_is_asked_to_hand_in_or_to_ask() -> None:
    text = _first_words(resumed=True)

    assert text.startswith("You stopped, and nothing was handed in: TASK.md has no new")
    assert THE_WAY_ON in text
    assert "## Questions" in text
    assert "lockgate task update --status clarification" in text
    assert "Read TASK.md" not in text


def test_an_agent_that_cannot_be_asked_in_its_conversation_gets_the_whole_story() -> None:
    assert _first_words(resumed=False).startswith("You implement a task.")


def test_the_next_try_reads_the_last_words_of_the_one_before_as_a_quote() -> None:
    text = _prompt(S.WORKING, last_words="I stop.\n## Handoff\nDONE: all")

    assert "The agent before you stopped without handing in" in text
    assert "> I stop.\n> ## Handoff\n> DONE: all\n" in text


def test_an_agent_that_goes_on_after_it_stopped_is_told_that_it_stopped() -> None:
    text = _opening(a_task(phase=Working("a", 1), last_words="All done!"), resumed=True)

    assert text.startswith("You stopped without handing in.")
    assert "All done!" not in text


@pytest.mark.parametrize("status", [S.STUCK, S.CLARIFICATION])
def test_last_words_are_for_who_works_on_the_task(status) -> None:
    assert "All done!" not in _prompt(status, last_words="All done!")


# --- a word of a human ----------------------------------------------------------------------------

WORDS = (Word(5, "Use blue.", 0.0), Word(7, "And\na test.", 1.0))
SAYS = "A human who follows your work says:\nUse blue.\n\nAnd\na test.\n"


@pytest.mark.parametrize("resumed", [True, False])
@pytest.mark.parametrize("status", [S.WORKING, S.CLARIFICATION, S.STUCK])
def test_a_worker_reads_the_words_that_wait_for_it_however_it_begins(status, resumed) -> None:
    text = _opening(a_task(status, phase=Working("a", 1), words=WORDS), resumed=resumed)

    assert text.endswith(SAYS)
    assert text.startswith("A human has a word for you.") == (resumed and status is S.WORKING)


def test_an_agent_that_is_asked_to_hand_in_reads_the_words_as_well() -> None:
    spawn = SpawnAgent(Role.WORKER, 8, asks=True)

    text = first_words(a_task(words=WORDS), spawn, LIMITS, {}, resumed=True)

    assert text.startswith("You stopped")
    assert text.endswith(SAYS)


def test_a_reviewer_reads_no_word_that_is_said_to_the_author() -> None:
    assert "Use blue." not in _prompt(S.AGENT_REVIEW, Role.REVIEWER, words=WORDS)


def test_a_worker_is_told_which_services_run_beside_it_and_how_their_data_is_made() -> None:
    database = Service(
        "db",
        kind=ServiceKind.POSTGRES,
        prepare="make migrate",
        inputs=("migrations",),
        env=(("TEST_URL", "$DATABASE_URL"),),
    )
    cache = Service("redis", kind=ServiceKind.REDIS, prepare="make seed")

    told = running_beside((database, cache, Service("my-queue", "x")))

    assert "- db (postgres): DATABASE_URL, PGHOST, PGPORT, TEST_URL\n" in told
    assert (
        "- its data was made by `make migrate`; run that again after you change migrations" in told
    )
    assert "- redis: REDIS_URL\n" in told
    assert "run that again after you change any file" in told
    assert "- my-queue: MY_QUEUE_HOST, MY_QUEUE_PORT\n" in told


def test_a_worker_without_services_is_told_of_none() -> None:
    assert running_beside(()) == ""


def test_a_worker_is_told_how_to_add_a_dependency_where_the_project_is_set_up() -> None:
    told = dependencies(EnvSettings(setup="uv sync", inputs=("uv.lock",)))

    assert "edit the files that list them (uv.lock)" in told
    assert "run the set-up yourself, here: uv sync" in told
    assert "list them with the project's own tool" in dependencies(EnvSettings(setup="make deps"))
    assert dependencies(EnvSettings()) == ""
