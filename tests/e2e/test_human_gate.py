"""A human's gate with everything real: it waits, is answered no, gets its fix, is answered yes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lockgate.adapters.sandbox import trouble
from lockgate.core.model.gates import PROTECTED
from lockgate.core.model.task import Status, TaskId
from tests.e2e.orchestra import COMPLETE, Orchestra, hands_off, worker, writes
from tests.scenarios.world import git

S = Status
WHY_NOT = trouble()
TESTS = """\
[project]
agent = "scripted"
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "grep -q good answer.txt"
attempts = 1
"""
APPROVAL = """\
[[gates.list]]
name = "approval"
type = "human"
prompt = "Read it, please"
"""
WORKFLOW = '{ write = ".github/ci.yml", text = "on: push\\n" }'
TOLD = "Say it politely."
SCRIPTS = {
    "greet": worker(writes("very good, please"), hands_off("politely"), COMPLETE, when=TOLD)
    + worker(writes("good"), hands_off("good"), COMPLETE),
    "workflow": worker(writes("good"), WORKFLOW, hands_off("good, and a workflow"), COMPLETE),
    "plain": worker(writes("good"), hands_off("good"), COMPLETE),
}


WRAPPED = TESTS.replace("grep -q good answer.txt", "sh test.sh") + '[merge]\nmode = "auto"\n'
CHEATED = "the change edits what this gate runs: test.sh"
SCRIPTS |= {
    "cheat": worker(writes("good"), hands_off("good"), COMPLETE, when=CHEATED)
    + worker(
        writes("bad"),
        '{ write = "test.sh", text = "exit 0\\n" }',
        hands_off("bad"),
        COMPLETE,
    ),
    "wrapper": worker(
        writes("good"),
        '{ write = "test.sh", text = "echo testing\\ngrep -q good answer.txt\\n" }',
        hands_off("good"),
        COMPLETE,
    ),
}


SET_UP = (
    '[env]\nsetup = "test -f lock && mkdir -p tools && cp lock tools/lock"\ninputs = ["lock"]\n'
)
SCRIPTS |= {
    "tools": worker(
        writes("good"), '{ write = "lock", text = "2\\n" }', hands_off("good"), COMPLETE
    ),
    "no-tools": worker(writes("good"), '{ shell = "rm lock" }', hands_off("good"), COMPLETE),
}


def made(place: Path, config: str) -> Iterator[Orchestra]:
    orchestra = Orchestra(place, config=config, scripts=SCRIPTS)
    (orchestra.root / "test.sh").write_text("grep -q good answer.txt\n")
    (orchestra.root / "lock").write_text("1\n")
    git(orchestra.root, "add", "--all")
    git(orchestra.root, "commit", "--quiet", "--message", "two")
    yield orchestra
    orchestra.close()


@pytest.fixture
def orchestra(tmp_path: Path) -> Iterator[Orchestra]:
    yield from made(tmp_path, TESTS + APPROVAL)


@pytest.fixture
def unasked(tmp_path: Path) -> Iterator[Orchestra]:
    """Its configuration has no human's gate."""
    yield from made(tmp_path, f'{TESTS}[protect]\npaths = [".github/**"]\n')


@pytest.fixture
def wrapped(tmp_path: Path) -> Iterator[Orchestra]:
    """Its gate runs a script, and what passes lands by itself."""
    yield from made(tmp_path, WRAPPED)


def waits(it: Orchestra, id: TaskId, iteration: int = 1) -> None:
    it.until(lambda: bool(it.task(id).waiting) and it.task(id).iteration == iteration)


def did(it: Orchestra, *argv: str) -> str:
    done = it.lockgate(*argv)
    assert done.returncode == 0, done.stderr + it.story()
    return done.stdout


def told(it: Orchestra, id: TaskId, type: str) -> list[Any]:
    return [dict(event.data) for event in it.app.views.all_events(id) if event.type == type]


def check_asked(it: Orchestra, id: TaskId) -> None:
    """The human hears of it, and sees what it is about."""
    status = did(it, "status")
    assert f"approve: lockgate approve {id}" in status
    assert f"lockgate approve {id}" in status
    [needed] = json.loads(did(it, "status", "--json"))["needs"]
    assert (needed["task"], needed["kind"]) == (id, "approve")
    assert "+good" in did(it, "diff", id)


def check_mended(it: Orchestra, id: TaskId) -> None:
    """The worker has done as it was told, and the human sees what was wrong before."""
    assert it.starts(id) == 2
    assert (it.task(id).failed_attempts, it.task(id).iteration) == (1, 2)
    assert "+very good, please" in did(it, "diff", id)
    shown = did(it, "task", "show", id)
    assert "tests: passed" in shown
    assert f"iteration 1, gate approval: a human rejected it: {TOLD}" in shown


def check_told(it: Orchestra, id: TaskId) -> None:
    prompts = [said["prompt"] for said in told(it, id, "HumanReviewRequested")]
    assert prompts == ["Read it, please", "Read it, please"]
    answers = [(said["approved"], said["comment"]) for said in told(it, id, "HumanReviewCompleted")]
    assert answers == [(False, TOLD), (True, "Thank you.")]
    assert it.app.store.first_broken_event() is None


@pytest.mark.req("R131", "R132", "R133", "R170", "R171")
def test_a_change_waits_is_rejected_is_mended_is_approved(orchestra) -> None:
    it = orchestra
    id = it.create("greet")
    it.up()
    waits(it, id)
    check_asked(it, id)
    first = it.task(id)

    rejected = did(it, "reject", id, "-m", TOLD, "answer.txt:1=too short")
    waits(it, id, iteration=2)

    assert "  answer.txt" in rejected
    check_mended(it, id)
    second = it.task(id)
    assert second.patch != first.patch
    late = it.lockgate("approve", id, "--patch", first.patch)
    assert (late.returncode, "updated after it was shown" in late.stderr) == (1, True)

    approved = did(it, "approve", id, "-m", "Thank you.", "--patch", second.patch[:12])
    it.until(lambda: it.settled(id))

    assert f"earlier: iteration 1, gate approval: a human rejected it: {TOLD}" in approved
    assert (it.task(id).status, it.task(id).candidate) == (S.REVIEWING, second.candidate)
    check_told(it, id)


@pytest.mark.slow
@pytest.mark.req("R132")
def test_a_gate_waits_on_where_the_orchestrator_is_killed_and_where_none_runs(orchestra) -> None:
    it = orchestra
    id = it.create("plain")
    it.up()
    waits(it, id)
    it.until(lambda: it.settled(id))
    asked = it.task(id)

    it.kill()
    assert f"approve: lockgate approve {id}" in did(it, "status")
    it.up()
    did(it, "comment", id, "-m", "Not yet.")
    it.kill()
    did(it, "approve", id)
    it.up()
    it.until(lambda: it.settled(id))

    assert it.task(id).status is S.REVIEWING
    assert it.task(id).candidate == asked.candidate
    assert len(told(it, id, "HumanReviewRequested")) == 1
    assert [event["comment"] for event in told(it, id, "human.commented")] == ["Not yet."]


def test_a_change_that_touches_what_the_config_protects_gets_a_humans_gate(unasked) -> None:
    it = unasked
    workflow, plain = it.create("workflow"), it.create("plain")
    it.up()
    waits(it, workflow)
    it.until_status(plain, S.REVIEWING)

    shown = did(it, "task", "show", workflow)
    assert f"gate {PROTECTED} waits for you" in shown
    assert "tests: passed" in shown
    answered = did(it, "approve", workflow).splitlines()
    it.until(lambda: it.settled(workflow))

    assert answered[1] == "  .github/ci.yml  (protected)"
    assert it.task(workflow).status is S.REVIEWING
    [asked] = told(it, workflow, "HumanReviewRequested")
    assert asked["prompt"] == "This change touches protected files (protected: .github/ci.yml)"
    assert told(it, plain, "HumanReviewRequested") == []


def test_a_change_that_edits_what_its_gate_runs_lands_only_with_a_humans_yes(wrapped) -> None:
    it = wrapped
    id = it.create("wrapper")
    it.up()
    waits(it, id)

    [asked] = told(it, id, "HumanReviewRequested")
    assert "the change edits what gate tests runs: test.sh" in asked["prompt"]
    answered = did(it, "approve", id).splitlines()
    it.until_status(id, S.DONE)

    assert answered[1] == "  test.sh  (protected)"
    assert len(told(it, id, "HumanReviewRequested")) == 1


@pytest.mark.slow
def test_a_change_that_writes_its_gates_script_goes_back_to_its_agent(wrapped) -> None:
    it = wrapped
    id = it.create("cheat")
    it.up()
    it.until(lambda: it.task(id).iteration == 2 or bool(it.task(id).waiting))

    assert it.task(id).failed_attempts == 1
    failed = [said for said in told(it, id, "GateCompleted") if said["gate_name"] == "tests"]
    assert failed[0]["result"] == "failed"
    assert CHEATED in str(told(it, id, "GateFailedRetrying"))
    assert (it.root / "answer.txt").read_text() == "nothing\n"


@pytest.fixture
def equipped(tmp_path: Path) -> Iterator[Orchestra]:
    """Its gate needs what the set-up makes, and what passes lands by itself."""
    config = TESTS.replace("grep", "cat tools/lock && grep") + SET_UP
    yield from made(tmp_path, f'{config}[merge]\nmode = "auto"\n')


@pytest.mark.skipif(WHY_NOT is not None, reason=f"needs a sandbox: {WHY_NOT}")
def test_a_change_whose_set_up_replaces_what_judges_lands_only_with_a_humans_yes(equipped) -> None:
    it = equipped
    id = it.create("tools")
    it.up()
    waits(it, id)

    [asked] = told(it, id, "HumanReviewRequested")
    assert "set-up differs in what judges it: it leaves tools/lock" in asked["prompt"]
    assert len(list((it.home / "runs" / id).glob("layer-*"))) == 1
    assert _kept(it) == ["1\n"]
    did(it, "approve", id)
    it.until_status(id, S.DONE)
    it.until(lambda: it.settled(id))

    assert not list((it.home / "runs").glob("*/layer-*"))
    assert _kept(it) == ["1\n"]
    assert len(told(it, id, "HumanReviewRequested")) == 1


@pytest.mark.slow
@pytest.mark.skipif(WHY_NOT is not None, reason=f"needs a sandbox: {WHY_NOT}")
def test_a_set_up_that_fails_on_the_change_goes_back_to_its_agent(equipped) -> None:
    it = equipped
    id = it.create("no-tools")
    it.up()
    it.until(lambda: it.task(id).iteration == 2)

    feedback = it.task(id).history[0].feedback

    assert "the set-up failed with the change's own lock" in feedback.findings[0].issue


def _kept(it: Orchestra) -> list[str]:
    """What base's layers hold."""
    return [found.read_text() for found in (it.home / "layers").glob("*/*/tools/lock")]
