"""The turns of a task that reverts another one."""

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle.approvals import consented
from lockgate.core.lifecycle.decision import EvaluateGates, MirrorTask, PublishChange
from lockgate.core.lifecycle.undoing import (
    Taken,
    handed_in,
    is_begun,
    landed_as,
    lands_unjudged,
    message,
    not_undoable,
    subject,
    under_way,
    undone_by,
    worker_of,
)
from lockgate.core.model.events import GateEvaluationStarted, StatusChanged
from lockgate.core.model.landings import RevertMade
from lockgate.core.model.results import Broken, Passed, Waiting
from lockgate.core.model.task import Actor, Cause, Revert, Size, Status, TaskId
from tests.given import COMMIT, HANDOFF, ID, RULES, TESTS_GATE, a_task, evidence, refused, taken

S = Status
MAIN = "e" * 40
LANDED = a_task(S.DONE, landed=MAIN, candidate=COMMIT)
REVERTS = Revert(task=TaskId("t0"), landed=MAIN, commit=COMMIT)
NEW = a_task(S.PENDING, pinned=None, iteration=0, reverts=REVERTS, auto_start=False)
AT = replace(RULES, base_commit=MAIN, gates=(TESTS_GATE,), steps=("red", "green"))
CHANGE = Taken(commit=COMMIT, patch="f" * 64, files=("a.py", ".github/x.yml"), size=Size(2, 9))


def seen(**fields: object):
    return evidence(NEW, HANDOFF, Actor.HUMAN, **fields)


@pytest.mark.parametrize(
    ("task", "why", "fix"),
    [
        (a_task(S.REVIEWING), "it has not landed yet", f"lockgate reject {ID} -m TEXT"),
        (a_task(S.WORKING), "it is working; only a change that has landed", "lockgate task cancel"),
        (a_task(S.CANCELLED), "it is cancelled", "lockgate task list"),
        (a_task(S.DONE), "it was merged by hand", "git revert COMMIT"),
    ],
)
def test_only_what_lockgate_landed_is_undone(task, why, fix) -> None:
    assert not_undoable(LANDED) is None
    declined = not_undoable(task)
    assert declined
    assert why in declined.why
    assert fix in declined.fix


def test_the_commit_that_reverts_a_task_says_so_as_git_does() -> None:
    assert subject(LANDED) == 'Revert "Fix the login redirect"'
    assert message(LANDED).endswith(f"\n\nThis reverts task {ID}, which landed as {MAIN}.")
    long = subject(replace(LANDED, goal="Fix it\n" * 100))
    assert len(long) <= 160
    assert long.endswith('…"')


def test_a_plain_revert_lands_as_nobody_elses_work() -> None:
    new = replace(NEW, goal='Revert "Fix it"')

    assert landed_as(new, "T") == (
        f'Revert "Fix it"\n\nThis reverts task t0, which landed as {MAIN}.\n\nT: {ID}\n'
    )
    assert worker_of(new, COMMIT) == ""
    assert worker_of(new, "another commit") == new.agent
    assert landed_as(LANDED, "T") == f"Fix the login redirect\n\nT: {ID}\n"
    assert worker_of(LANDED, COMMIT) == LANDED.agent


def test_the_tasks_that_revert_another_one_are_found_and_the_one_that_is_not_done() -> None:
    done, live = replace(NEW, status=S.DONE), replace(NEW, status=S.WORKING)
    undone = replace(LANDED, id=TaskId("t0"))

    assert undone_by(undone, [LANDED, done, replace(NEW, status=S.CANCELLED)]) == (done,)
    assert under_way((done, live)) == live
    assert under_way((done,)) is None
    assert is_begun(NEW)
    assert not is_begun(live)
    assert not is_begun(replace(NEW, reverts=None))


def test_a_plain_revert_is_judged_at_once_without_an_agent() -> None:
    decision = taken(handed_in(seen(agent_missing="install it"), AT))

    task = decision.task
    assert (task.status, task.rev, task.pinned, task.steps_passed) == (
        S.AGENT_REVIEW,
        NEW.rev + 1,
        AT,
        AT.steps,
    )
    assert task.spent
    assert decision.events[0] == RevertMade(TaskId("t0"), MAIN, COMMIT)
    moves = [it for it in decision.events if isinstance(it, StatusChanged)]
    assert [it.target for it in moves] == [S.WORKING, S.AGENT_REVIEW]
    assert decision.effects == (MirrorTask(), EvaluateGates(1))


def test_a_revert_is_not_handed_in_twice_nor_by_a_configuration_that_cannot_be_taken() -> None:
    working = evidence(replace(NEW, status=S.WORKING), HANDOFF, Actor.HUMAN)

    assert "it is working" in refused(handed_in(working, AT)).why
    assert refused(handed_in(seen(misconfigured="bad TOML"), AT)).why == "bad TOML"
    assert "it is working" in refused(lands_unjudged(working, AT, CHANGE, "red")).why


def test_on_a_red_target_the_revert_goes_to_the_queue_and_no_gate_has_passed() -> None:
    decision = taken(lands_unjudged(seen(), AT, CHANGE, "main is red"))

    task = decision.task
    assert (task.status, task.cause, task.rev) == (S.REVIEWING, Cause.UNJUDGED, NEW.rev + 1)
    assert (task.to_land, task.passed, task.seats, task.phase) == (True, (), (), None)
    assert (task.candidate, task.patch) == (COMMIT, CHANGE.patch)
    assert (task.size, task.protected) == (Size(2, 9), (".github/x.yml",))
    assert task.reverts == replace(REVERTS, unjudged="main is red")
    assert not [it for it in decision.events if isinstance(it, GateEvaluationStarted)]
    assert decision.effects == (MirrorTask(), PublishChange())


def test_the_plain_revert_takes_its_tests_along_without_a_question() -> None:
    task = a_task(S.AGENT_REVIEW, candidate=COMMIT, reverts=REVERTS)
    asked = Waiting("differential", "1 test is gone. Is that wanted?")

    found = consented(task, asked)

    assert isinstance(found, Passed)
    assert "task t0 brought or changed" in found.proof.ran[0]
    assert consented(replace(task, candidate=MAIN), asked) == asked, "an agent has changed it"
    assert consented(replace(task, reverts=None), asked) == asked
    broken = Broken("differential", "no report")
    assert consented(task, broken) == broken
