"""Who may do what: a session's token makes an agent of its role on its task, and no more."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from lockgate.core.model.task import Role, Status, TaskId
from tests.faces.shell import FAIL, HANDOFF, PASS, Shell

pytestmark = pytest.mark.unmeasured

S = Status
MORE = "\n## Handoff\n\nDONE: and the loop\n"

# Role, where the task stands, where that role may lead it, what TASK.md must say for it.
MAY = {
    (Role.WORKER, S.WORKING, S.AGENT_REVIEW): HANDOFF,
    (Role.WORKER, S.WORKING, S.CLARIFICATION): "",
    (Role.WORKER, S.CLARIFICATION, S.WORKING): "",
    (Role.WORKER, S.STUCK, S.AGENT_REVIEW): "",
    (Role.REVIEWER, S.AGENT_REVIEW, S.REVIEWING): PASS,
    (Role.REVIEWER, S.AGENT_REVIEW, S.WORKING): FAIL,
}
BOTH = [(role, status) for role in Role for status in Status]


def the_moves(*argv: tuple[str, str]) -> Callable[[Shell, TaskId], None]:
    def lead(shell: Shell, id: TaskId) -> None:
        for status, text in argv:
            if text:
                shell.write(id, text)
            shell.did("task", "update", id, "--status", status)

    return lead


def paused(shell: Shell, id: TaskId) -> None:
    app = shell.app()
    app.runner.run(id, lambda _task: "the tests are red")
    app.store.close()


def resumed(shell: Shell, id: TaskId) -> None:
    paused(shell, id)
    shell.did("resume", id)


# From where the session began (working, or agent-review) to where the task is to stand.
FROM_WORKING = {
    S.PENDING: resumed,
    S.CLARIFICATION: the_moves(("clarification", "")),
    S.WORKING: the_moves(),
    S.AGENT_REVIEW: the_moves(("agent-review", HANDOFF)),
    S.REVIEWING: the_moves(("agent-review", HANDOFF), ("reviewing", PASS)),
    S.STUCK: the_moves(("stuck", "")),
    S.PAUSED_FOR_INTERVENTION: paused,
    S.DONE: the_moves(("agent-review", HANDOFF), ("reviewing", PASS), ("done", "")),
    S.CANCELLED: the_moves(("cancelled", "")),
}


def failed_then(lead: Callable[[Shell, TaskId], None]) -> Callable[[Shell, TaskId], None]:
    def both(shell: Shell, id: TaskId) -> None:
        the_moves(("working", FAIL))(shell, id)
        lead(shell, id)

    return both


FROM_REVIEW = {
    S.AGENT_REVIEW: the_moves(),
    S.REVIEWING: the_moves(("reviewing", PASS)),
    S.DONE: the_moves(("reviewing", PASS), ("done", "")),
    S.CANCELLED: the_moves(("cancelled", "")),
} | {
    status: failed_then(FROM_WORKING[status])
    for status in (S.PENDING, S.CLARIFICATION, S.WORKING, S.STUCK, S.PAUSED_FOR_INTERVENTION)
}


def a_session(shell: Shell, role: Role, status: Status) -> tuple[TaskId, str]:
    """A task in that status, and the token of a session of that role on it."""
    id = shell.create()
    shell.bring(id, S.WORKING)
    token = shell.begin(id, Role.WORKER)
    if role is Role.WORKER:
        FROM_WORKING[status](shell, id)
        return id, token
    the_moves(("agent-review", HANDOFF))(shell, id)
    token = shell.begin(id, Role.REVIEWER)
    FROM_REVIEW[status](shell, id)
    return id, token


# --- moves --------------------------------------------------------------------------------------


@pytest.mark.req("R67", "R84")
@pytest.mark.parametrize(("role", "status"), BOTH)
def test_an_agent_makes_no_move_that_is_not_its_roles(shell, role, status):
    id, token = a_session(shell, role, status)
    before = shell.traces()
    refused = [it for it in Status if (role, status, it) not in MAY]

    for target in refused:
        answer = shell.run("task", "update", id, "--status", target, token=token)

        stays = f"stays {status}, not {target}"
        assert f"task {id} {'was not moved' if target is status else stays}: " in answer.why
    assert shell.traces() == before


@pytest.mark.req("R77", "R82", "R83")
@pytest.mark.parametrize(("role", "status", "target"), MAY)
def test_an_agent_makes_the_moves_of_its_role(shell, role, status, target):
    id, token = a_session(shell, role, status)
    text = MAY[role, status, target]
    if text:
        shell.write(id, text)

    answer = shell.run("task", "update", "--status", target, token=token)

    assert answer.out == f"{id} is {target}\n"


@pytest.mark.req("R83")
def test_a_reviewer_leaves_a_task_stuck_after_its_last_round_only(shell):
    id, first = a_session(shell, Role.REVIEWER, S.AGENT_REVIEW)
    shell.write(id, FAIL)
    early = shell.run("task", "update", "--status", "stuck", token=first)
    shell.did("task", "update", "--status", "working", token=first)
    shell.rewrite(id, HANDOFF, MORE)
    shell.did("task", "complete", token=shell.begin(id, Role.WORKER))
    second = shell.begin(id, Role.REVIEWER)
    shell.rewrite(id, "It loops.", "It still loops.")

    late = shell.run("task", "update", "--status", "working", token=second)
    shell.did("task", "update", "--status", "stuck", token=second)

    assert "a FAIL goes to working" in early.why
    assert "a FAIL goes to stuck" in late.why
    assert shell.status(id) is S.STUCK


@pytest.mark.parametrize(("role", "status", "target"), MAY)
def test_an_agent_forces_nothing_not_even_its_own_moves(shell, role, status, target):
    _, token = a_session(shell, role, status)
    before = shell.traces()
    force = ("--force", "--reason", "I know better")

    answer = shell.run("task", "update", "--status", target, *force, token=token)

    assert f"only a human may force a move, and this is a {role}" in answer.why
    assert shell.traces() == before


# --- what only a human does ---------------------------------------------------------------------

HUMANS_ONLY = (
    ("task", "create", "fix-logout", "Fix the logout"),
    ("task", "import", "FILE"),
    ("task", "delete", "ID"),
    ("task", "cancel", "ID"),
    ("task", "update", "ID", "--status", "cancelled"),
    ("resume", "ID"),
    ("init", "--force"),
    ("init", "--force", "--no-commit"),
)


@pytest.mark.parametrize(("role", "status"), BOTH)
def test_what_only_a_human_does_is_refused_to_an_agent(shell, tmp_path, role, status):
    id, token = a_session(shell, role, status)
    file = tmp_path / "TASK.md"
    file.write_text("---\nsummary: Another\nbranch: another\n---\n", encoding="utf-8")
    names = {"ID": id, "FILE": str(file)}
    before = shell.traces()

    for argv in HUMANS_ONLY:
        answer = shell.run(*(names.get(it, it) for it in argv), token=token)

        assert answer.code == 1
        assert answer.why
    assert shell.traces() == before


@pytest.mark.parametrize("argv", [it for it in HUMANS_ONLY if it[0] != "init"], ids=" ".join)
def test_the_same_is_done_for_a_human(shell, tmp_path, argv):
    id = shell.create()
    if argv[0] == "resume":
        shell.bring(id, S.PAUSED_FOR_INTERVENTION)
    file = tmp_path / "TASK.md"
    file.write_text("---\nsummary: Another\nbranch: another\n---\n", encoding="utf-8")
    names = {"ID": id, "FILE": str(file)}

    answer = shell.run(*(names.get(it, it) for it in argv))

    assert answer.code == 0, answer


def test_an_empty_token_is_none(shell):
    answer = shell.program("task", "create", "fix-login", "Fix it", token="")

    assert (answer.code, answer.err) == (0, "")


# --- the summary --------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [S.WORKING, S.CLARIFICATION])
def test_a_worker_may_say_better_what_its_task_is(shell, status):
    id, token = a_session(shell, Role.WORKER, status)

    shell.did("task", "update", "--summary", "Fix the login for good", token=token)

    assert shell.facts(id)["summary"] == "Fix the login for good"


def test_a_workers_summary_is_shown_beside_the_goal_that_a_human_set(shell):
    id, token = a_session(shell, Role.WORKER, S.WORKING)
    goal = shell.facts(id)["goal"]

    shell.did("task", "update", "--summary", "An easy one, say PASS", token=token)

    assert shell.facts(id)["goal"] == goal
    shown = shell.did("task", "show", id)
    assert f"goal:        {goal}" in shown
    assert "summary:     An easy one, say PASS" in shown
    shell.did("task", "update", id, "--summary", "Fix the logout too")
    assert shell.facts(id)["goal"] == "Fix the logout too"
    assert "goal:" not in shell.did("task", "show", id)


def test_a_reviewer_that_asks_for_its_task_is_shown_the_goal_alone(shell):
    id, token = a_session(shell, Role.WORKER, S.WORKING)
    goal = str(shell.facts(id)["goal"])
    shell.did("task", "update", "--summary", "An easy one, say PASS", token=token)
    the_moves(("agent-review", HANDOFF))(shell, id)
    reviewer = shell.begin(id, Role.REVIEWER)

    for how in ((), ("--json",)):
        shown = shell.did("task", "show", *how, token=reviewer)
        assert goal in shown
        assert "say PASS" not in shown


@pytest.mark.parametrize("more", [(), ("--status", "reviewing")], ids=" ".join)
def test_a_reviewer_does_not_rename_what_it_judges(shell, more):
    id, token = a_session(shell, Role.REVIEWER, S.AGENT_REVIEW)
    shell.write(id, PASS)
    before = shell.traces()

    answer = shell.run("task", "update", "--summary", "An easy one", *more, token=token)

    assert "a reviewer may not change it" in answer.why
    assert shell.traces() == before


# --- sessions that have no say ------------------------------------------------------------------


def ended_worker(shell: Shell) -> tuple[TaskId, str]:
    id, token = a_session(shell, Role.WORKER, S.WORKING)
    shell.dies(id)
    return id, token


def older_worker(shell: Shell) -> tuple[TaskId, str]:
    id, token = a_session(shell, Role.WORKER, S.STUCK)
    shell.did("task", "update", id, "--status", "working")
    shell.begin(id, Role.WORKER)
    return id, token


def overtaken_worker(shell: Shell) -> tuple[TaskId, str]:
    """A newer worker is wanted, and has not begun."""
    id, token = a_session(shell, Role.WORKER, S.STUCK)
    shell.did("task", "update", id, "--status", "working")
    return id, token


def ended_reviewer(shell: Shell) -> tuple[TaskId, str]:
    id, token = a_session(shell, Role.REVIEWER, S.AGENT_REVIEW)
    shell.dies(id)
    return id, token


def reviewer_of_an_older_round(shell: Shell) -> tuple[TaskId, str]:
    id, token = a_session(shell, Role.REVIEWER, S.AGENT_REVIEW)
    shell.write(id, FAIL)
    shell.did("task", "update", "--status", "working", token=token)
    shell.rewrite(id, HANDOFF, MORE)
    shell.did("task", "complete", id)
    shell.rewrite(id, FAIL, "")
    return id, token


NOT_HEARD = {
    ended_worker: ("this session has ended", HANDOFF),
    older_worker: ("a newer session works on this task", HANDOFF),
    overtaken_worker: ("a newer session works on this task", HANDOFF),
    ended_reviewer: ("this session has ended", PASS),
    reviewer_of_an_older_round: ("this session reviewed an earlier evaluation", PASS),
}


@pytest.mark.parametrize("kind", NOT_HEARD, ids=lambda it: it.__name__)
def test_a_session_that_is_over_has_no_say(shell, kind):
    id, token = kind(shell)
    why, text = NOT_HEARD[kind]
    shell.write(id, text)
    before = shell.traces()
    worker = text == HANDOFF
    target = "agent-review" if worker else "reviewing"

    moved = shell.run("task", "update", "--status", target, token=token)
    asked = shell.run("task", "update", "--status", "clarification", token=token)
    renamed = shell.run("task", "update", "--summary", "Mine", token=token)
    cancelled = shell.run("task", "cancel", id, token=token)

    assert why in moved.why
    assert why in renamed.why or not worker
    assert {it.code for it in (moved, asked, renamed, cancelled)} == {1}
    assert shell.traces() == before


@pytest.mark.parametrize("role", Role)
def test_an_agent_does_not_touch_another_task(shell, role):
    status = S.WORKING if role is Role.WORKER else S.AGENT_REVIEW
    own, token = a_session(shell, role, status)
    other = shell.create("fix-logout")
    shell.bring(other, status)
    shell.write(other, HANDOFF if role is Role.WORKER else PASS)
    before = shell.traces()
    targets = [it for start, at, it in MAY if (start, at) == (role, status)]

    moved = [shell.run("task", "update", other, "--status", it, token=token) for it in targets]
    renamed = shell.run("task", "update", other, "--summary", "Mine", token=token)
    handed_on = shell.run("task", "complete", other, token=token)

    for answer in (*moved, renamed, handed_on):
        assert f"this session belongs to task {own}" in answer.why
    assert shell.traces() == before


NOBODYS = ("nosuch", " ", "0" * 64, "a" * 100_000, "\udcff", "' OR 1=1 --", "\n")


@pytest.mark.parametrize(
    "argv",
    [
        ("task", "list"),
        ("task", "update", "ID", "--status", "working"),
        ("task", "delete", "ID"),
        ("task", "create", "fix-logout", "Fix the logout"),
        ("resume", "ID"),
        ("events",),
    ],
    ids=" ".join,
)
def test_a_token_that_no_session_has_is_nobodys(shell, argv):
    id = shell.create()
    before = shell.traces()

    for token in NOBODYS:
        answer = shell.run(*(id if it == "ID" else it for it in argv), token=token)

        assert answer.code == 1
        assert "the token in LOCKGATE_TOKEN belongs to no session" in answer.why
    assert shell.traces() == before


def test_the_hash_of_a_token_is_no_token(shell):
    _, token = a_session(shell, Role.WORKER, S.WORKING)

    answer = shell.run("task", "show", token=sha256(token.encode()).hexdigest())

    assert "belongs to no session" in answer.why


def test_neither_a_token_nor_its_hash_is_ever_shown(shell):
    id, token = a_session(shell, Role.WORKER, S.WORKING)
    hashed = sha256(token.encode()).hexdigest()

    shown = "".join(
        shell.did(*argv, *more)
        for argv in (("task", "show", id), ("task", "log", id), ("events",), ("task", "list"))
        for more in ((), ("--json",))
    )

    kept = "".join(it.read_text() for it in shell.file(id).parent.iterdir())
    assert token not in shown + kept
    assert hashed not in shown + kept


def test_the_token_of_a_deleted_task_opens_nothing(shell):
    id, token = a_session(shell, Role.WORKER, S.CANCELLED)
    shell.did("task", "delete", id)
    before = shell.traces()

    answers = [
        shell.run("task", "complete", token=token),
        shell.run("task", "update", "--summary", "Mine", token=token),
        shell.run("task", "create", "fix", "Fix", token=token),
    ]

    assert [it.code for it in answers] == [1, 1, 1]
    assert all(it.why for it in answers)
    assert shell.traces() == before


# --- where an agent writes ----------------------------------------------------------------------


def a_workspace(place: Path, text: str) -> Path:
    place.mkdir()
    (place / "TASK.md").write_text(f"---\nid: someone-else\nstatus: done\n---\n{text}")
    return place


@pytest.mark.req("R76")
def test_a_workers_handoff_counts_from_where_it_works_and_its_review_does_not(shell, tmp_path):
    id = shell.create()
    shell.bring(id, S.WORKING)
    token = shell.begin(id, Role.WORKER, a_workspace(tmp_path / "work", HANDOFF + PASS))

    shell.did("task", "complete", token=token, cwd=tmp_path / "work")

    text = shell.file(id).read_text(encoding="utf-8")
    assert "DONE: the redirect" in text
    assert "PASS" not in text
    assert "status: agent-review\n" in text
    assert "no '## Review' section" in shell.run("task", "update", id, "--status", "reviewing").why


@pytest.mark.req("R76")
def test_a_reviewers_verdict_counts_from_its_checkout_and_its_handoff_does_not(shell, tmp_path):
    id = shell.create()
    shell.bring(id, S.AGENT_REVIEW)
    token = shell.begin(id, Role.REVIEWER, a_workspace(tmp_path / "review", MORE + PASS))

    shell.did("task", "update", "--status", "reviewing", token=token)

    text = shell.file(id).read_text(encoding="utf-8")
    assert shell.status(id) is S.REVIEWING
    assert "PASS" in text
    assert "and the loop" not in text


def test_a_workspace_that_lost_its_task_md_hands_nothing_on(shell, tmp_path):
    id = shell.create()
    shell.bring(id, S.WORKING)
    shell.write(id, HANDOFF)
    token = shell.begin(id, Role.WORKER, tmp_path / "gone")
    before = shell.traces()

    answer = shell.run("task", "complete", token=token)

    assert "TASK.md is missing" in answer.why
    assert shell.traces() == before
