"""Workers that tamper with tests, under the real orchestrator, in real sandboxes."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockgate.core.model.task import Status, TaskId
from tests.e2e.cheats.repository import BASE, CODE, TESTS, WRONG
from tests.e2e.orchestra import COMPLETE, Orchestra, hands_off, worker
from tests.scenarios.world import git

S = Status
LONG = 240.0  # seconds: four tasks are judged at the same time
COMMAND = (
    f"PYTHONPATH=. PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 '{sys.executable}' -m pytest -q "
    "-p no:cacheprovider --junitxml=$OUT/junit.xml"
)
CONFIG = f"""\
[project]
agent = "scripted"
slots = 9
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = {json.dumps(COMMAND)}
attempts = 1
[[gates.list]]
name = "differential"
type = "differential"
command = {json.dumps(COMMAND)}
attempts = 1
[differential]
strength_seconds = 2
[retry]
max_iterations = 2
"""
ADD = "def test_add():\n    assert add(1, 2) == 3\n"
SKIPPED = TESTS.replace(ADD, "@pytest.mark.skip('later')\n" + ADD)


def puts(path: str, text: str) -> str:
    return f"{{ write = {json.dumps(path)}, text = {json.dumps(text)} }}"


def changes(said: str, code: str, tests: str, *more: str) -> str:
    files = (puts("app/calc.py", code), puts("tests/test_calc.py", tests), *more)
    return worker(*files, hands_off(said), COMPLETE)


NO_GATES = puts(".lockgate/config.toml", '[gates]\nformula = "none"\n')
DELETES = changes("all tests pass", WRONG, TESTS.replace(ADD, ""))
SCRIPTS = {
    "deletes": DELETES,
    "drops": DELETES,
    "skips": changes("all tests pass", WRONG, SKIPPED)
    + changes("and now they do", CODE + "\n\nNEW = 1\n", TESTS),
    "rules": changes("all tests pass", WRONG, SKIPPED, NO_GATES)
    + changes("all tests pass, really", WRONG, SKIPPED, NO_GATES),
}


@pytest.fixture
def orchestra(tmp_path: Path) -> Iterator[Orchestra]:
    it = Orchestra(tmp_path, config=CONFIG, scripts=SCRIPTS)
    for path, text in BASE.items():
        (it.root / path).parent.mkdir(exist_ok=True)
        (it.root / path).write_text(text)
    git(it.root, "add", "--all")
    git(it.root, "commit", "--quiet", "--message", "An application")
    yield it
    it.close()


def said(it: Orchestra, id: TaskId) -> list[tuple[str, str, str]]:
    records = it.app.store.gate_results(id, 0, 100)
    return [(one.gate, one.result, json.dumps(dict(one.data))) for one in records]


@pytest.mark.slow
def test_a_worker_that_deletes_hides_or_rules_its_failure_away_is_not_believed(orchestra) -> None:
    it = orchestra
    deletes, drops, skips, rules = (it.create(branch) for branch in SCRIPTS)
    it.up()

    it.until(lambda: bool(it.task(deletes).waiting), LONG)
    it.until(lambda: bool(it.task(drops).waiting), LONG)
    assert it.lockgate("approve", drops, "-m", "not wanted any more").returncode == 0
    it.until(lambda: it.task(skips).status is S.REVIEWING, LONG)
    it.until(lambda: it.task(rules).status is S.STUCK, LONG)

    assert it.task(deletes).waiting == "differential"
    asked = said(it, deletes)[-1]
    assert asked[:2] == ("differential", "waiting")
    assert "deleted: tests.test_calc::test_add" in asked[2]
    assert it.lockgate("reject", deletes, "-m", "Keep the test, mend add()").returncode == 0

    first, *rest = [row for row in said(it, skips) if row[0] == "differential"]
    assert first[1] == "failed"
    assert "test_add passed on base and is skipped now" in first[2]
    assert [row[1] for row in rest] == ["passed"]
    assert it.task(skips).iteration == 2

    hidden = [row for row in said(it, rules) if row[0] == "differential"]
    assert [row[1] for row in hidden] == ["failed", "failed"], "the gates are still base's"

    it.until_status(drops, S.REVIEWING)
    agreed = [row for row in said(it, drops) if row[:2] == ("differential", "passed")]
    assert "not wanted any more" in agreed[0][2], "a yes lets the change go on"
    assert list((it.home / "measurements").glob("*.json"))
    assert not list((it.home / "runs").glob("*/*"))
