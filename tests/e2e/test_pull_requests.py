"""A change from the label on an issue to a merged pull request, without a command typed."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.e2e.pull_story import Team, answers, head_after, team
from tests.forge.hub import TOKEN, Hub
from tests.forge.state import Annotation, Outcome

RED = Outcome(
    "failure", "1 failed: test_answer\n", "Run tests", (Annotation("answer.txt", 1, "bad"),)
)


@pytest.fixture
def hub(tmp_path: Path) -> Generator[Hub]:
    with Hub(tmp_path / "github") as hub:
        yield hub
    assert hub.violations == []


@pytest.fixture
def three(tmp_path: Path, hub: Hub) -> Generator[Team]:
    it = team(tmp_path, hub, answers("good one", "good two", "good three"))
    yield it
    it.close()


def test_from_the_label_to_done(hub: Hub, three: Team) -> None:
    people = hub.people
    people.ci("build", RED, Outcome())
    three.up()

    with hub.lock:
        people.writes_issue("ben", "Answer well", "The answer is wrong.", label="lockgate")
    id = three.issue_task()
    red = three.pull().sha
    second = three.pull(head_after(red)).sha
    number = three.pull().number
    with hub.lock:
        people.requests_changes("ben", number, "Not yet.", ("answer.txt", 1, "say three"))
    three.pull(head_after(second))
    with hub.lock:
        people.approves("ben", number)
    task = three.done(id)
    three.until(lambda: set(hub.state.bare.heads()) == {"main"})

    assert hub.state.bare.text("main", "answer.txt") == "good three"
    assert len(hub.did("POST", "/pulls")) == 1
    assert hub.state.issues[1].state == "closed"
    assert [it.body for it in hub.state.pulls[number].comments][1].startswith("Answered in ")
    assert three.starts(id) == 3
    assert task.status.value == "done"
    assert TOKEN not in three.story()
