"""What tests start from: a task, its rules, and what there is to see."""

from collections.abc import Sequence

from msgspec.structs import replace

from lockgate.core.lifecycle.decision import Decision, Declined, Evidence, Refusal
from lockgate.core.lifecycle.needs import NeedKind, in_one_line, need_of, order
from lockgate.core.lifecycle.transition import next_reviews, opening
from lockgate.core.model.findings import Finding, GateFeedback, Priority
from lockgate.core.model.results import Proof
from lockgate.core.model.task import (
    Actor,
    GateKind,
    GateRef,
    Pinned,
    ProjectId,
    Role,
    Session,
    SessionId,
    Status,
    Task,
    TaskId,
)
from lockgate.core.text.task_file import Artifacts, parse_task_artifacts
from lockgate.services.task.rows import Beside, Board, BoardRow, row_of

NOW = 1_800_000_000.0
ID = TaskId("fix-login-3f9a")
REVIEW_GATE = GateRef("review", GateKind.PARALLEL_REVIEW)
TESTS_GATE = GateRef("tests", GateKind.COMMAND)
RULES = Pinned(base_commit="b" * 40, config_hash="c" * 64, gates=(REVIEW_GATE,))
TASK = Task(
    id=ID,
    project=ProjectId("p1"),
    summary="Fix the login redirect",
    goal="Fix the login redirect",
    branch="fix-login",
    agent="scripted",
    created=NOW,
    updated=NOW,
    rev=7,
    iteration=1,
    review_round=0,
    generation=3,
    since=3,
    pinned=RULES,
)
FEEDBACK = GateFeedback(
    gate_name="tests",
    findings=(Finding(Priority.P0_CRITICAL, "one test is red"),),
    summary="tests exited 1",
    suggested_action="mend it",
)
COMMIT = "a" * 40
PROOF = Proof(
    ran=("make", "test"),
    commit=COMMIT,
    tree="d" * 40,
    config_hash="c" * 64,
    sandbox="bubblewrap",
    seconds=1.0,
    exit_code=0,
)
HANDOFF = "## Handoff\n\nDONE: the redirect\n"
PASS = "## Review\n\nPASS\n\nGood.\n"
FAIL = "## Review\n\nFAIL\n\nThe redirect loops.\n"


def a_task(status: Status = Status.WORKING, **fields: object) -> Task:
    """Where its review is due, its reviewers have their seats."""
    task = replace(TASK, status=status, **fields)
    if status is not Status.AGENT_REVIEW or "seats" in fields or task.pinned is None:
        return task
    return replace(task, seats=opening(next_reviews(task.pinned.gates, task.passed), task.since))


def needs_human(task: Task) -> str:
    """What the task needs of a human in one line, with its commands; nothing where it is theirs."""
    need = need_of(task)
    return "" if need is None or need.kind is NeedKind.YOURS else in_one_line(need)


def a_row(task: Task) -> BoardRow:
    """As the board has it, with no project's name and nothing beside it."""
    return row_of(task, Beside(need=need_of(task)))


def a_board(tasks: Sequence[Task] = (), **counts: int) -> Board:
    """These tasks, those that need a human first."""
    rows = [a_row(it) for it in tasks]
    needed = sorted((it for it in rows if it.need), key=lambda it: order(it.need))  # type: ignore[arg-type]  # they have one
    return Board(
        rows=(*needed, *(it for it in rows if not it.need)),
        after=None,
        counts={it: counts.get(it.name, 0) for it in Status},
        needs=tuple(it.need for it in needed if it.need),
        seq=0,
    )


def evidence(
    task: Task, body: str = "", actor: Actor = Actor.ORCHESTRATOR, **fields: object
) -> Evidence:
    seen = Evidence(
        task=task,
        found=parse_task_artifacts(body) if body else Artifacts(),
        rules=task.pinned or RULES,
        now=NOW + 60,
        actor=actor,
    )
    return replace(seen, **fields)


def a_session(role: Role = Role.WORKER, **fields: object) -> Session:
    session = Session(
        id=SessionId(f"{ID}.3"),
        task=ID,
        role=role,
        round=0,
        generation=3,
        token_hash="0" * 64,
        started=NOW,
        seat="review.general" if role is Role.REVIEWER else "",
    )
    return replace(session, **fields)


def taken(answer: Decision | Refusal | Declined) -> Decision:
    assert isinstance(answer, Decision), answer
    return answer


def refused(answer: Decision | Refusal | Declined) -> Refusal | Declined:
    """Every refusal of a move names two statuses."""
    assert not isinstance(answer, Decision), answer
    assert isinstance(answer, Declined) or answer.source is not answer.target
    return answer
