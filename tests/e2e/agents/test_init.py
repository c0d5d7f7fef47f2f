"""`lockgate init --with AGENT` by the real agents' programs, with the fake model beside them."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from lockgate.adapters.harnesses import Registry
from tests.e2e.agents.fake_model import serve
from tests.e2e.agents.stage import AGENTS, PATH, SETTINGS, URL
from tests.e2e.agents.test_agents import CASES, Case
from tests.e2e.agents.whole import shell
from tests.e2e.test_first_day import GREET, GREET_TEST, project

pytestmark = pytest.mark.agents
NAMED = [it for it in CASES if it.agent in {"claude", "codex", "opencode"}]
WRITES = """printf 'test = "sh checks/all.sh"\\n' > lockgate-setup.toml"""


@pytest.mark.parametrize("case", NAMED, ids=str)
def test_a_real_agent_proposes_the_test_command(case: Case, tmp_path: Path) -> None:
    if Registry(search=PATH).missing(case.agent, SETTINGS):
        pytest.skip(f"needs {case.agent}: sh scripts/install_agents.sh {AGENTS}")
    repository = project(tmp_path, {"checks/all.sh": GREET_TEST, "greet.sh": GREET})
    with ExitStack() as after:
        server = serve(case.says(shell(case, WRITES), {"text": "Done."}), tmp_path / "log")
        after.callback(server.server_close)
        after.callback(server.shutdown)
        url = f"http://127.0.0.1:{server.server_port}"
        given = {name: value.replace(URL, url) for name, value in case.environ.items()}

        said = repository.program("init", "--with", case.agent, env={**given, "PATH": PATH})

    assert said.out.splitlines()[-1] == 'next: lockgate run "what to do"', said
    assert f"found  test: sh checks/all.sh (found in {case.agent})" in said.out
    assert "lockgate-setup.toml at the top of it" in (tmp_path / "log").read_text(encoding="utf-8")
    assert repository.program("gate", "run").code == 0
