"""Files as agents, with everything real: the examples of the docs, the copy, the reviewer."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockgate.core.model.task import Role, Status, TaskId
from tests.e2e.orchestra import REVIEWER, Orchestra
from tests.scenarios.world import git

S = Status
PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
TESTS = """\
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "{command}"
attempts = 1
"""
REVIEW = """\
[[gates.list]]
name = "review"
type = "parallel_review"
dimensions = ["general"]
"""
WRITES = """\
#!/bin/sh
set -eu
{more}
echo good > answer.txt
sed -i '/^## Handoff/,$d' TASK.md
printf '## Handoff\\n\\nDONE: wrote it\\n' >> TASK.md
lockgate task complete
"""


def example(language: str) -> str:
    """The one block of the page that is a whole program in this language."""
    blocks = re.findall(rf"```{language}\n(#!.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 1
    return str(blocks[0])


@pytest.fixture
def house(tmp_path: Path) -> Iterator[list[Orchestra]]:
    made: list[Orchestra] = []
    yield made
    for it in made:
        it.close()


def opened(house: list[Orchestra], tmp_path: Path, config: str) -> Orchestra:
    house.append(Orchestra(tmp_path, config=config))
    return house[-1]


def asked(it: Orchestra, summary: str, agent: str) -> TaskId:
    (it.place / "agent.file").write_text(agent)
    done = it.lockgate("task", "create", "by-file", summary, "--agent", "../agent.file")
    assert done.returncode == 0, done.stderr
    return TaskId(done.stdout.strip())


def test_the_shell_agent_of_the_docs_does_its_task(house, tmp_path) -> None:
    it = opened(house, tmp_path, TESTS.format(command="! grep ' $' answer.txt"))
    (it.root / "answer.txt").write_text("with a blank \n")
    git(it.root, "commit", "--quiet", "--all", "--message", "two")
    id = asked(it, "Strip trailing blanks", example("sh"))

    it.up()

    assert it.until_status(id, S.REVIEWING, S.STUCK).status is S.REVIEWING


def test_the_python_agent_of_the_docs_does_its_task(house, tmp_path) -> None:
    it = opened(house, tmp_path, TESTS.format(command="grep -q something answer.txt"))
    id = asked(it, "Replace nothing by something", example("python"))

    it.up()

    assert it.until_status(id, S.REVIEWING, S.STUCK).status is S.REVIEWING


def test_each_example_of_the_docs_has_at_most_ten_lines() -> None:
    assert all(len(example(it).splitlines()) <= 10 for it in ("sh", "python"))


def test_what_runs_is_the_copy_that_was_made_when_the_task_was_created(house, tmp_path) -> None:
    it = opened(house, tmp_path, TESTS.format(command="grep -q good answer.txt"))
    id = asked(it, "Do it", WRITES.format(more=":"))
    (it.place / "agent.file").write_text("#!/bin/sh\necho changed > answer.txt\n")

    it.up()
    task = it.until_status(id, S.REVIEWING, S.STUCK)

    assert task.status is S.REVIEWING
    assert re.fullmatch(r"agent\.file@[0-9a-f]{32}", task.agent)


def test_a_file_runs_enclosed_and_without_the_users_variables(house, tmp_path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("mine")
    it = opened(house, tmp_path, TESTS.format(command="grep -q good answer.txt"))
    it.environ["MY_API_KEY"] = "sesame"
    look = f'test ! -e {secret}; test ! -e {it.home}; test -z "${{MY_API_KEY:-}}"'
    id = asked(it, "Do it", WRITES.format(more=look))

    it.up()

    assert it.until_status(id, S.REVIEWING, S.STUCK).status is S.REVIEWING


@pytest.mark.slow
def test_the_projects_agent_reviews_what_a_file_wrote(house, tmp_path) -> None:
    config = '[project]\nagent = "scripted"\n' + TESTS.format(command="grep -q good answer.txt")
    it = Orchestra(tmp_path, config=config + REVIEW, scripts={"by-file": REVIEWER})
    house.append(it)
    id = asked(it, "Do it", WRITES.format(more=":"))

    it.up()
    task = it.until_status(id, S.REVIEWING, S.STUCK)

    reviewers = [it.agent for it in it.app.store.sessions(id) if it.role is Role.REVIEWER]
    assert task.status is S.REVIEWING
    assert reviewers == ["scripted"]


@pytest.mark.slow
def test_a_human_reviews_where_the_projects_agent_is_not_there(house, tmp_path) -> None:
    config = '[project]\nagent = "aider"\n' + TESTS.format(command="grep -q good answer.txt")
    it = opened(house, tmp_path, config + REVIEW)
    it.environ["PATH"] = "/usr/bin:/bin"
    id = asked(it, "Do it", WRITES.format(more=":"))

    it.up()
    it.until(lambda: bool(it.task(id).waiting) or it.task(id).status is S.STUCK)
    waiting = it.task(id).waiting
    said = it.lockgate("approve", id)
    task = it.until_status(id, S.REVIEWING, S.STUCK)

    assert waiting == "review"
    assert said.returncode == 0, said.stderr
    assert task.status is S.REVIEWING
    assert [it.role for it in it.app.store.sessions(id)] == [Role.WORKER]
