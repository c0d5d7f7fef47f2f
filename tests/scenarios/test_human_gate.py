"""A human's gate under the loop: it waits, is answered, and remembers for which change."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle.needs import in_one_line
from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.gates import PROTECTED
from lockgate.core.model.task import Cause, NeedsFixes, Role, Status, TaskId
from lockgate.errors import Refused, TransitionRefused, TurnDeclined
from lockgate.services.task.callers import HUMAN, Caller, identify
from tests.given import HANDOFF, PASS, needs_human
from tests.scenarios.stage import Stage

S = Status
WEEK = 7 * 24 * 3600.0
HUMAN_FIRST = """\
[project]
agent = "scripted"
[gates]
formula = "none"
[[gates.list]]
name = "approval"
type = "human"
prompt = "Well?"
[[gates.list]]
name = "tests"
type = "command"
command = "true"
attempts = 1
"""
TESTS_ALONE = HUMAN_FIRST.replace(
    '[[gates.list]]\nname = "approval"\ntype = "human"\nprompt = "Well?"\n', ""
).replace("[gates]", '[protect]\npaths = ["secrets/**"]\n[gates]')
STEERS = ("a.txt", "AGENTS.md", "web/.claude/settings.json", ".github/workflows/ci.yml")
PLACED = Finding(Priority.P1_MAJOR, "this loops", Location("a.txt", 3))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path, HUMAN_FIRST)
    yield made
    made.app.store.close()


@pytest.fixture
def unasked(tmp_path: Path) -> Iterator[Stage]:
    """No gate of the list asks a human."""
    made = Stage(tmp_path, TESTS_ALONE)
    yield made
    made.app.store.close()


def handed_off(stage: Stage, id: TaskId | None = None, words: str = "") -> TaskId:
    """A task whose worker has just handed off: a new one, or this one once more."""
    id = id or stage.world.create()
    stage.turn()
    [session] = stage.alive(id)
    (stage.workspaces.place(id) / "TASK.md").write_text(f"{HANDOFF}\n{words}\n")
    stage.dies(session)
    stage.event(session)
    stage.turn()
    return id


# --- waiting ------------------------------------------------------------------------------------


@pytest.mark.req("R132", "R170")
def test_a_gate_waits_for_its_human_for_weeks_and_over_restarts_and_asks_once(stage) -> None:
    id = handed_off(stage)
    asked = stage.world.task(id)

    for _ in range(3):
        stage.turn(WEEK)
        stage.app.store.close()
        stage.restart()
        stage.turn()

    assert stage.world.task(id) == asked
    assert (asked.status, asked.waiting) == (S.AGENT_REVIEW, "approval")
    assert stage.world.types(id).count("HumanReviewRequested") == 1
    assert stage.loop.is_quiet()
    assert stage.app.store.pending_effects(id, 9) == ()


@pytest.mark.req("R131")
def test_what_waits_is_among_the_things_that_need_a_human_and_says_how_to_answer(stage) -> None:
    id = handed_off(stage)

    [need] = stage.app.boards.inbox().needs
    why = in_one_line(need)

    assert need.task == id
    assert why == needs_human(stage.world.task(id))
    for command in (f"lockgate approve {id}", f"lockgate reject {id} -m", f"lockgate diff {id}"):
        assert command in why


def test_an_evaluation_that_is_repeated_after_it_asked_asks_nobody_again(stage) -> None:
    """As by the next orchestrator, where this one is killed before it has marked it done."""
    id = handed_off(stage)

    stage.app.store.close()
    stage.restart()
    with pytest.raises(TurnDeclined, match="a human was asked before, by gate approval"):
        stage.loop.crew.judge.evaluate(id, lambda: False)

    assert stage.world.types(id).count("HumanReviewRequested") == 1
    assert stage.world.task(id).waiting == "approval"


# --- answering ----------------------------------------------------------------------------------


@pytest.mark.req("R132", "R171")
def test_a_yes_is_heard_after_a_restart_and_the_gates_behind_it_are_judged(stage) -> None:
    id = handed_off(stage)
    stage.app.store.close()
    stage.restart()

    stage.app.queue.say_yes(id, "good", "", HUMAN)
    stage.turn()

    task = stage.world.task(id)
    assert (task.status, task.passed) == (S.REVIEWING, ("approval", "tests"))
    assert stage.world.types(id).count("HumanReviewCompleted") == 1
    kept = [(it.gate, it.result) for it in stage.app.store.gate_results(id, 0, 9)]
    assert kept == [("approval", "waiting"), ("approval", "passed"), ("tests", "passed")]
    assert [(it.gate, it.result) for it in stage.app.views.task(id).gates] == [
        ("approval", "passed"),
        ("tests", "passed"),
    ]


@pytest.mark.req("R133")
def test_a_no_reaches_the_worker_in_the_humans_own_words(stage) -> None:
    id = handed_off(stage)

    stage.app.approvals.reject(id, "Not like this.", [PLACED], "", HUMAN)
    stage.turn()

    task = stage.world.task(id)
    assert (task.status, task.iteration, task.failed_attempts) == (S.WORKING, 2, 1)
    assert len(stage.alive(id)) == 1
    prompt = stage.harnesses.jobs[-1].prompt
    assert "Not like this." in prompt
    assert "a.txt:3 - this loops" in prompt


@pytest.mark.req("R132")
def test_a_comment_leaves_it_waiting(stage) -> None:
    id = handed_off(stage)

    stage.app.approvals.comment(id, "I look at it on Monday.", HUMAN)
    stage.turn()

    assert stage.world.task(id).waiting == "approval"
    assert stage.world.types(id)[-1] == "human.commented"


def test_a_change_that_waits_to_land_goes_back_and_its_yes_is_void(stage) -> None:
    id = handed_off(stage)
    stage.app.queue.say_yes(id, "", "", HUMAN)
    stage.turn()
    assert stage.world.task(id).status is S.REVIEWING

    stage.app.approvals.reject(id, "Not today.", (), "", HUMAN)
    back = stage.world.task(id)
    handed_off(stage, id, "again")

    assert (back.status, back.cause) == (S.WORKING, Cause.DROPPED_FROM_TRAIN)
    assert isinstance(back.phase, NeedsFixes)
    assert stage.world.task(id).waiting == "approval"


@pytest.mark.parametrize("role", Role)
def test_no_agent_answers_for_a_human(stage, role) -> None:
    id = handed_off(stage)
    [session] = stage.app.store.sessions(id)
    token = stage.sessions.noted[session.id].token
    worker = identify(stage.app.store, token)
    caller = worker if role is Role.WORKER else Caller(role, replace(session, role=role))
    before = stage.world.task(id)
    approvals = stage.app.approvals

    for answer in (
        lambda: stage.app.queue.say_yes(id, "", "", caller),
        lambda: approvals.reject(id, "no", (), "", caller),
        lambda: approvals.comment(id, "hm", caller),
    ):
        with pytest.raises(Refused, match=f"a {role} may not do that"):
            answer()

    assert stage.world.task(id) == before


def test_no_move_goes_past_a_gate_that_waits(stage) -> None:
    id = handed_off(stage)
    stage.world.write(id, PASS)

    for force in (False, True):
        with pytest.raises(TransitionRefused, match="these gates have not passed: approval, tests"):
            stage.world.move(id, S.REVIEWING, force=force, reason="I know better")


# --- what a yes is bound to ---------------------------------------------------------------------


def approved_then_red(stage: Stage) -> TaskId:
    """A task whose change a human has approved, and whose tests then sent it back."""
    stage.gates.results = ["fail", "pass"]
    id = handed_off(stage)
    stage.app.queue.say_yes(id, "good", "", HUMAN)
    stage.turn()
    assert (stage.world.task(id).status, stage.world.task(id).iteration) == (S.WORKING, 2)
    return id


def test_a_yes_holds_for_the_same_patch_in_the_next_iteration_and_on_another_commit(stage) -> None:
    id = approved_then_red(stage)
    stage.workspaces.work = replace(stage.workspaces.work, commit="d" * 40)

    handed_off(stage, id, "again")

    task = stage.world.task(id)
    assert (task.status, task.candidate, task.iteration) == (S.REVIEWING, "d" * 40, 2)
    assert stage.world.types(id).count("HumanReviewRequested") == 1


def test_a_yes_is_void_when_the_patch_is_another(stage) -> None:
    id = approved_then_red(stage)
    stage.workspaces.work = replace(stage.workspaces.work, commit="d" * 40, patch="q" * 64)

    handed_off(stage, id, "again")

    task = stage.world.task(id)
    assert (task.status, task.waiting) == (S.AGENT_REVIEW, "approval")
    assert stage.world.types(id).count("HumanReviewRequested") == 2
    with pytest.raises(Refused, match="updated after it was shown"):
        stage.app.queue.say_yes(id, "", "p" * 64, HUMAN)


# --- what is protected --------------------------------------------------------------------------


def test_a_change_of_what_is_protected_is_asked_about_once_though_no_gate_says_so(unasked) -> None:
    unasked.workspaces.work = replace(
        unasked.workspaces.work, files=("a.txt", "secrets/key", ".lockgate/config.toml")
    )

    id = handed_off(unasked)
    task = unasked.world.task(id)
    unasked.app.queue.say_yes(id, "", "", HUMAN)
    unasked.turn()

    assert (task.waiting, task.passed) == (PROTECTED, ("tests",))
    assert task.protected == ("secrets/key", ".lockgate/config.toml")
    [asked] = [it for it in unasked.app.views.all_events(id) if it.type == "HumanReviewRequested"]
    assert "protected: secrets/key, .lockgate/config.toml" in str(asked.data["prompt"])
    assert unasked.world.task(id).status is S.REVIEWING
    assert unasked.world.task(id).passed == ("tests", PROTECTED)


def test_a_change_that_leaves_the_protected_files_alone_is_asked_about_no_more(unasked) -> None:
    touches = replace(unasked.workspaces.work, files=("a.txt", "secrets/key"))
    unasked.workspaces.work, plain = touches, unasked.workspaces.work
    id = handed_off(unasked)
    unasked.app.approvals.reject(id, "Leave the key alone.", (), "", HUMAN)

    unasked.workspaces.work = replace(plain, commit="d" * 40, patch="q" * 64)
    handed_off(unasked, id, "again")

    assert unasked.world.task(id).status is S.REVIEWING
    assert unasked.world.task(id).protected == ()


def test_where_changes_land_alone_a_human_is_asked_of_what_steers(tmp_path) -> None:
    stage = Stage(tmp_path, TESTS_ALONE + '[merge]\nmode = "auto"\n')
    stage.workspaces.work = replace(stage.workspaces.work, files=STEERS)

    id = handed_off(stage)

    task = stage.world.task(id)
    assert (task.waiting, task.protected) == (PROTECTED, STEERS[1:])
    [asked] = [it for it in stage.app.views.all_events(id) if it.type == "HumanReviewRequested"]
    assert f"protected: {', '.join(STEERS[1:])}" in str(asked.data["prompt"])
    stage.app.store.close()


def test_where_a_human_lands_changes_what_steers_is_shown_and_asked_of_once(unasked) -> None:
    unasked.workspaces.work = replace(unasked.workspaces.work, files=STEERS)

    id = handed_off(unasked)

    task = unasked.world.task(id)
    assert (task.status, task.passed, task.protected) == (S.REVIEWING, ("tests",), STEERS[1:])
    assert "HumanReviewRequested" not in unasked.world.types(id)
    assert needs_human(task) == (
        "all gates passed; it changes what steers agents, editors, hooks or CI: AGENTS.md,"
        " web/.claude/settings.json, .github/workflows/ci.yml;"
        f" read it: lockgate diff {id}; land it: lockgate approve {id}"
    )


def test_where_a_humans_gate_is_configured_none_is_added(stage) -> None:
    stage.workspaces.work = replace(stage.workspaces.work, files=(".github/ci.yml",))

    id = handed_off(stage)
    stage.app.queue.say_yes(id, "", "", HUMAN)
    stage.turn()

    assert stage.world.task(id).status is S.REVIEWING
    assert stage.world.task(id).passed == ("approval", "tests")
