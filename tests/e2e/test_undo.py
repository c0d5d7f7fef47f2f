"""`lockgate undo` with everything real: through the gates, by an agent, and on a red target."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lockgate.core.model.task import Revert, Status, Task, TaskId
from lockgate.ports import TaskFilter
from tests.e2e.orchestra import COMPLETE, Orchestra, hands_off, worker, writes
from tests.e2e.terminal import Terminal
from tests.scenarios.world import git

S = Status
CONFIG = """\
[project]
agent = "scripted"
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "test ! -e broken && grep -q o answer.txt"
attempts = 1
"""
OTHER = '{ write = "other.txt", text = "other\\n" }'
SCRIPTS = {
    "fix": worker(writes("good"), hands_off("good"), COMPLETE),
    "other": worker(OTHER, hands_off("other"), COMPLETE),
    "more": worker(writes("good and more"), hands_off("more"), COMPLETE),
}


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Orchestra]:
    made = Orchestra(tmp_path, config=CONFIG, scripts=SCRIPTS)
    made.up()
    yield made
    made.close()


def lands(it: Orchestra, branch: str) -> TaskId:
    id = it.create(branch)
    it.wake()
    it.until_status(id, S.REVIEWING, S.STUCK)
    did(it, "queue", "approve", id)
    it.wake()
    assert it.until_status(id, S.DONE).landed
    return id


def did(it: Orchestra, *argv: str) -> Any:
    done = it.lockgate(*argv, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def commits(it: Orchestra, text: str, **files: str) -> None:
    for name, content in files.items():
        (it.root / name.replace("_", ".")).write_text(content)
    git(it.root, "add", "--all")
    git(it.root, "commit", "--quiet", "--message", text)


def said(it: Orchestra, commit: str) -> str:
    asked = ("git", "-C", str(it.root), "log", "-1", "--format=%B", commit)
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout


def reverted(it: Orchestra, new: TaskId) -> Task:
    it.wake()
    task = it.until_status(new, S.REVIEWING, S.STUCK)
    did(it, "queue", "approve", new)
    it.wake()
    it.until_status(new, S.DONE)
    return task


def test_a_landed_change_is_reverted_by_a_task_that_its_gates_judge(it) -> None:
    id = lands(it, "fix")
    lands(it, "other")

    new = TaskId(did(it, "undo", id)["id"])
    under_way = it.lockgate("undo", id)
    task = reverted(it, new)
    again = it.lockgate("undo", id)

    assert task.goal == 'Revert "Do fix"'
    assert task.passed == ("tests",)
    assert (it.root / "answer.txt").read_text() == "nothing\n"
    assert (it.root / "other.txt").read_text() == "other\n"
    change = did(it, "verify", "HEAD")["evidence"]["changes"][0]
    assert (change["task"], change["reverts"]) == (new, id)
    assert f"reverts: task {id}" in " ".join(it.lockgate("verify", "HEAD").stdout.split())
    assert not it.app.store.sessions(new), "no agent is needed"
    assert it.types(new)[1] == "revert.made"
    assert f"reverts={id}" in it.lockgate("task", "log", new).stdout
    assert said(it, "HEAD^2").startswith(
        f'Revert "Do fix"\n\nThis reverts task {id}, which landed as '
    )
    assert f"task {new} reverts it already" in under_way.stderr
    assert f"nothing of it is left in main: task {new} has reverted it" in again.stderr


@pytest.mark.slow
def test_a_revert_can_be_undone_too(it) -> None:
    id = lands(it, "fix")
    new = TaskId(did(it, "undo", id)["id"])
    reverted(it, new)

    back = TaskId(did(it, "undo", new)["id"])
    reverted(it, back)

    assert (it.root / "answer.txt").read_text() == "good\n"
    assert it.task(back).goal == 'Revert "Revert "Do fix""'
    assert not did(it, "undo", id)["landed"], "and the first one once more"


@pytest.mark.slow
def test_what_is_not_landed_or_gone_is_not_undone(it) -> None:
    id = lands(it, "fix")
    commits(it, "by hand", answer_txt="nothing\n")
    waits = it.create("other", auto_start=False)

    gone, early = it.lockgate("undo", id), it.lockgate("undo", waits)

    assert (gone.returncode, early.returncode) == (1, 1)
    assert "nothing of it is left in main" in gone.stderr
    assert "only a change that has landed can be undone" in early.stderr


@pytest.mark.slow
def test_where_the_revert_conflicts_an_agent_makes_it_once_a_human_agrees(it) -> None:
    id = lands(it, "fix")
    commits(it, "go on", answer_txt="good, and better\n")

    told = it.lockgate("undo", id)
    task = it.task(TaskId(did(it, "undo", id, "--yes")["id"]))

    assert told.returncode == 1
    assert "its plain revert conflicts with later changes in: answer.txt" in told.stderr
    assert f"lockgate undo {id} --yes" in told.stderr
    assert task.auto_start
    assert task.reverts == Revert(task=id, landed=it.task(id).landed)
    body = it.app.views.task(task.id).body or ""
    assert "conflicts with later changes in: answer.txt" in body
    assert f"git revert --no-edit {it.task(id).landed}" in body


def test_on_a_red_target_the_plain_revert_is_offered_and_recorded_as_unjudged(it) -> None:
    id, waits = lands(it, "fix"), it.create("other")
    it.wake()
    it.until_status(waits, S.REVIEWING)
    commits(it, "break it", broken="yes\n")
    did(it, "queue", "approve", waits)
    it.wake()
    it.until(lambda: "the target itself is red" in it.lockgate("queue", "list").stdout)

    offered = it.lockgate("undo", id)
    new = TaskId(did(it, "undo", id, "--now")["id"])
    it.wake()
    it.until_status(new, S.DONE)
    verified = it.lockgate("verify", "HEAD")

    assert (offered.returncode, verified.returncode) == (1, 1)
    assert f"lockgate undo {id} --now" in offered.stderr
    assert (it.root / "answer.txt").read_text() == "nothing\n"
    told = " ".join(verified.stderr.split())
    assert f"no gate judged it: a human had it land at once (reverts task {id})" in told
    assert it.types(new)[-1] == "landing.unjudged"
    assert "why=main is red, and a human" in it.lockgate("task", "log", new).stdout
    assert it.task(new).passed == ()
    assert it.task(waits).failed_attempts == 0


def test_a_target_that_nobody_has_tested_is_tested_before_a_revert_lands_unjudged(it) -> None:
    id = lands(it, "fix")
    commits(it, "break it", broken="yes\n")

    new = TaskId(did(it, "undo", id, "--now")["id"])
    it.wake()
    it.until_status(new, S.DONE)

    assert it.types(new)[-1] == "landing.unjudged"
    assert not (it.root / "answer.txt").read_text().startswith("good")


def test_on_a_green_target_no_revert_lands_past_the_gates(it) -> None:
    id = lands(it, "fix")
    commits(it, "more", more="yes\n")

    new = TaskId(did(it, "undo", id, "--now")["id"])
    it.wake()
    it.until(lambda: bool(it.task(new).held))
    refused = it.lockgate("undo", id, "--now")

    assert "the target is green" in it.task(new).held
    assert it.task(new).status is S.REVIEWING
    assert "main is green, so that its gates can judge a revert" in refused.stderr
    assert (it.root / "answer.txt").read_text() == "good\n"


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 130)])
def test_at_a_terminal_a_person_is_asked_before_an_agent_starts(it, request, answer, code) -> None:
    id = lands(it, "fix")
    commits(it, "go on", answer_txt="good, and better\n")

    person = Terminal(it, "undo", id)
    request.addfinalizer(person.close)
    person.until("Let an agent make the revert? [y/N]: ")
    person.type(answer)
    found = person.code()

    assert found == code
    made = [it for it in it.app.store.page(TaskFilter(), None, 50).tasks if it.reverts]
    assert len(made) == (answer == "y")
