"""A login at a forge reaches no agent and no gate, whatever a repository asks for."""

import pytest
from msgspec.structs import replace

from lockgate.core.config.checks import problems
from lockgate.core.config.settings import AgentSettings, EnvSettings, Settings

PLAIN = Settings(formula="none", gates=())


@pytest.mark.parametrize("name", ["GH_TOKEN", "GITHUB_TOKEN", "gh_token", "LOCKGATE_GITHUB_TOKEN"])
def test_a_login_at_a_forge_cannot_be_passed_on(name):
    agent = AgentSettings(name="mine", command=("run",), env=(name,))

    set_up = problems(replace(PLAIN, env=EnvSettings(passed=(name,))))
    given = problems(replace(PLAIN, agents=(agent,)))

    assert [it.where for it in set_up] == [("env", "pass")]
    assert [it.where for it in given] == [("agents", "mine", "env")]
    assert "never get" in set_up[0].says


def test_other_variables_can():
    assert problems(replace(PLAIN, env=EnvSettings(passed=("NPM_TOKEN",)))) == ()
