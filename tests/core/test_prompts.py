"""What each agent is told, and that it is told nothing of another's role."""

import pytest

from lockgate.core.limits import Limits
from lockgate.core.model import Role, Status
from lockgate.core.prompts import prompt_for
from tests.given import a_task

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
    assert "human" not in _prompt(S.WORKING)
