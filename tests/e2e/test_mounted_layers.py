"""A large folder that the set-up made: mounted for an agent and for people, kept for its task."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockgate.adapters.sandbox import trouble
from lockgate.core.model.task import Status
from tests.e2e.orchestra import COMPLETE, CONFIG, Orchestra, hands_off, worker

WHY_NOT = trouble()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"needs a sandbox: {WHY_NOT}")

SETUP = "mkdir -p node_modules && head -c 2000000 /dev/zero > node_modules/lib && touch lib.made"
RULES = CONFIG.partition('[[gates.list]]\nname = "review"')[0]
SCRIPTS = {
    "works": worker(
        '{ shell = "test -s node_modules/lib && echo mine > node_modules/mine" }',
        hands_off("half"),
        COMPLETE,
    )
    + worker(
        '{ shell = "cat node_modules/mine > answer.txt && echo good >> answer.txt" }',
        '{ shell = "touch node_modules/ready; sleep 1" }',
        hands_off("all"),
        COMPLETE,
    )
}


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Orchestra]:
    config = f"{RULES}[env]\nsetup = '{SETUP}'\ninputs = ['.lockgate/config.toml']\n"
    made = Orchestra(tmp_path, config=config, scripts=SCRIPTS)
    yield made
    made.close()


def test_an_agent_installs_into_it_and_finds_it_in_its_next_session(it: Orchestra) -> None:
    it.up()
    id = it.create("works")
    it.wake()
    room = it.home / "workspaces" / f".over-{id}"
    it.until(lambda: any(room.glob("*/upper/node_modules/ready")))

    looked = it.lockgate("shell", id, "--read-only", "--", "cat", "node_modules/mine")
    wrote = it.lockgate("shell", id, "--read-only", "--", "touch", "node_modules/x")
    task = it.until_status(id, Status.REVIEWING)

    kept = json.loads(it.lockgate("status", "--json").stdout)["kept"]

    assert kept["layers"] > 2_000_000
    assert kept["services"] == 0
    assert (looked.returncode, looked.stdout) == (0, "mine\n"), looked.stderr
    assert "Read-only file system" in wrote.stderr
    assert task.passed == ("tests",)
    workspace = it.home / "workspaces" / id
    assert list((workspace / "node_modules").iterdir()) == []
    assert (workspace / "lib.made").exists()
    it.until(lambda: it.settled(id))  # its branch is published
    listed = ("git", "-C", str(it.root), "diff", "--name-only", "main", "works", "--")
    changed = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    assert changed == "answer.txt\n"
