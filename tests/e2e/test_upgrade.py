"""An upgrade while agents work: the old runner keeps its session under a new orchestrator."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockgate import __version__
from lockgate.bootstrap.upkeep import versions_of
from lockgate.core.model.task import Status
from tests.e2e.orchestra import COMPLETE, REVIEWER, Orchestra, hands_off, worker, writes

WAITS = '{ shell = "while [ ! -e go ]; do sleep 0.05; done; rm go" }'
SCRIPT = worker(WAITS, writes("good"), hands_off("x"), COMPLETE) + REVIEWER


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Orchestra]:
    orchestra = Orchestra(tmp_path / "o", scripts={"upgrade": SCRIPT})
    yield orchestra
    orchestra.close()


@pytest.mark.parametrize(
    "older",
    [
        pytest.param({}, id="no version", marks=pytest.mark.slow),
        pytest.param({"version": "0.0.9"}, id="0.0.9"),
    ],
)
def test_a_session_under_an_older_runner_goes_on_under_a_newer_orchestrator(
    it: Orchestra, older: dict[str, str]
) -> None:
    id = it.create("upgrade")
    it.up()
    it.until(lambda: it.starts(id) == 1)
    [session] = it.app.store.sessions_alive()
    run = it.home / "sessions" / session.id / "run.json"
    told = json.loads(run.read_text())
    assert told.pop("version") == __version__
    it.kill()
    run.write_text(json.dumps(told | older))
    assert versions_of(it.app).runners == {session.id: older.get("version", "")}
    assert "until they end" in it.lockgate("doctor").stdout

    it.up()
    (it.home / "workspaces" / id / "go").touch()

    it.until_status(id, Status.REVIEWING)
    assert it.starts(id) == 1
    assert it.lockgate("doctor", "--deep").returncode == 0
