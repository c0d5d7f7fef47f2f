"""The real agents through the whole of Lockgate: its workspace, its sandbox, its gates."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from lockgate.adapters.harnesses import Registry
from lockgate.core.model import Status
from tests.e2e.agents.fake_model import serve
from tests.e2e.agents.stage import AGENTS, PATH, SETTINGS, URL
from tests.e2e.agents.test_agents import CASES, Case
from tests.e2e.orchestra import Orchestra

pytestmark = pytest.mark.agents

PATIENCE = 180.0
CONFIG = """\
[project]
agent = "{agent}"
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "grep -q hello hello.txt"
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def orchestra(case: Case, tmp_path: Path, log: Path) -> Generator[Orchestra]:
    if Registry(search=PATH).missing(case.agent, SETTINGS):
        pytest.skip(f"needs {case.agent}: sh scripts/install_agents.sh {AGENTS}")
    server = serve(case.says(*case.work), log)
    url = f"http://127.0.0.1:{server.server_port}"
    it = Orchestra(tmp_path / "place", config=CONFIG.format(agent=case.agent))
    login = {name: value.replace(URL, url) for name, value in case.environ.items()}
    it.environ |= {**login, "PATH": PATH}
    it.up()
    yield it
    it.close()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_agent_takes_a_task_through_its_gates(case, orchestra, log) -> None:
    id = orchestra.create("say-hello", context="Say hello.")
    orchestra.wake()

    orchestra.until(lambda: orchestra.task(id).status is not Status.PENDING, PATIENCE)
    orchestra.until(lambda: orchestra.task(id).status is not Status.WORKING, PATIENCE)
    orchestra.until(lambda: orchestra.task(id).status is not Status.AGENT_REVIEW, PATIENCE)
    orchestra.until(lambda: orchestra.settled(id), PATIENCE)

    assert orchestra.task(id).status is Status.REVIEWING, orchestra.story()
    (session,) = orchestra.app.store.sessions(id)
    assert session.tokens >= 1050 * len(case.work)
    asked = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert any("say-hello" in json.dumps(it) for it in asked)
