"""From a label on an issue to a merged pull request, with everything real but GitHub itself.

The test server stands for GitHub: it holds each exchange against GitHub's own description.
"""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lockgate.core.model.task import Status, Task
from tests.e2e.orchestra import COMPLETE, Orchestra, hands_off, worker, writes
from tests.forge.conftest import hub
from tests.forge.hub import TOKEN, Hub
from tests.forge.state import Annotation, Outcome
from tests.scenarios.world import git

__all__ = ["hub"]
S = Status
CONFIG = """\
[project]
agent = "scripted"
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "grep -q good answer.txt"
attempts = 1
[merge]
mode = "auto"
target = "pull_request"
strategy = "squash"
[forge]
repo = "octo/demo"
settle = 0
[forge.intake]
label = "lockgate"
"""
SCRIPT = "".join(
    worker(writes(f"good {n}"), hands_off(f"good {n}"), COMPLETE) for n in ("one", "two", "three")
)
BOOM = Outcome("failure", "boom: answer is wrong\n", "make", (Annotation("answer.txt", 1, "bad"),))


@pytest.fixture
def it(tmp_path: Path, hub: Hub) -> Iterator[Orchestra]:
    made = Orchestra(tmp_path / "team", config=CONFIG, scripts={"issue-1": SCRIPT})
    git(made.root, "remote", "add", "origin", str(hub.repository))
    git(made.root, "push", "--quiet", "origin", "main:refs/heads/seed")  # main takes no push
    hub.state.bare.move("main", str(hub.state.bare.tip("seed")))
    hub.state.bare.delete("seed")
    git(made.root, "fetch", "--quiet", "origin")
    made.environ |= {
        "LOCKGATE_GITHUB_API": hub.url,
        "LOCKGATE_GITHUB_TOKEN": TOKEN,
        "LOCKGATE_FORGE_SECONDS": "0.1",
    }
    made.app.store.add_project(made.app.projects.here(made.root))
    made.up()
    yield made
    made.close()


def until(it: Orchestra, done: Callable[[], bool]) -> None:
    """The loop looks at the forge when it is awake; nobody types a command."""

    def woken() -> bool:
        it.wake()
        return done()

    it.until(woken, 120.0)


def the_task(it: Orchestra) -> Task:
    project = it.app.projects.here(it.root).id
    [task] = it.app.store.on_branch(project, "issue-1")
    return task


def test_a_label_becomes_a_merged_pull_request_without_a_command(it, hub):
    hub.people.ci("build", BOOM, Outcome("success"))
    hub.people.writes_issue("maria", "Answer the question", "It says nothing.", label="lockgate")

    until(it, lambda: 2 in hub.state.pulls)
    until(it, lambda: bool(hub.did("GET", "/logs")))
    id = the_task(it).id
    until(it, lambda: the_task(it).status is S.REVIEWING and "approval" in the_task(it).held)
    assert the_task(it).failed_attempts == 1
    hub.people.requests_changes("maria", 2, "say three", ("answer.txt", 1, "not two"))
    until(it, lambda: the_task(it).status is not S.REVIEWING)
    until(it, lambda: "has not approved since" in the_task(it).held)
    hub.people.approves("maria", 2)
    until(it, lambda: the_task(it).status is S.DONE)

    landed = subprocess.run(
        ("git", "-C", str(hub.repository), "show", "main:answer.txt"),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert landed == "good three\n"
    assert len(hub.state.pulls) == 1
    assert len(hub.did("PUT", "/merge")) == 1
    assert hub.state.bare.tip(f"lockgate/{id}") is None
    assert it.lockgate("verify", the_task(it).landed).returncode == 0
    assert TOKEN not in (it.place / "orchestrator.log").read_text()
    until(it, lambda: hub.state.issues[1].state == "closed")
