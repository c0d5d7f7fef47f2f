"""The real agents with Lockgate's tools: as an assistant of a person, and at work in a sandbox."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lockgate.adapters.harnesses import Registry
from lockgate.core.model.agents import Job
from lockgate.core.model.task import Role, Status
from tests.e2e.agents import test_agents
from tests.e2e.agents.fake_model import serve
from tests.e2e.agents.stage import AGENTS, PATH, SETTINGS, URL
from tests.e2e.agents.test_agents import Case
from tests.e2e.agents.whole import at_work, shell
from tests.faces.mcp.test_tools import OPERATORS, WORKERS
from tests.faces.shell import Shell, a_shell, make_repository

pytestmark = [pytest.mark.agents, pytest.mark.usefixtures("no_way_out")]

# How each program calls the tools of the server `lockgate`.
NAMES = {
    "claude": "mcp__lockgate__{}",
    "codex": "{}",
    "gemini": "mcp_lockgate_{}",
    "opencode": "lockgate_{}",
}
# How each calls itself, which is what `lockgate trust --assistant` takes.
ASSISTANTS = {it: f" via {it}" for it in NAMES}
SPACE = "mcp__lockgate"  # in which Codex has them
OFFERED = 5  # seconds after which Codex offers them: it does not wait for servers before it begins
# Without a search for tools: a model that can search is not offered them.
CODEX = {"OPENAI_MODEL": "gpt-5"}
CASES = [
    replace(it, environ=it.environ | CODEX) if it.agent == "codex" else it
    for it in test_agents.CASES
    if it.agent in NAMES
]
by_agent = pytest.mark.parametrize("case", CASES, ids=str)
STEP = """\
[[steps]]
name = "greet"
phase = "GREEN"
command = "grep -q hello hello.txt"
"""


def calls(case: Case, name: str, **arguments: str) -> dict[str, Any]:
    called = {"tool": NAMES[case.agent].format(name), "input": arguments}
    return called | ({"namespace": SPACE} if case.agent == "codex" else {})


def offered(case: Case, bodies: list[Any]) -> set[str]:
    """The names of our tools in what the model was sent, as the server has them."""
    found = set()
    for tool in (it for body in bodies for it in body.get("tools") or ()):
        inner = tool.get("functionDeclarations") or [tool.get("function") or tool]
        names = [it.get("name", "") for it in inner]
        if tool.get("name") == SPACE:
            found |= {it["name"] for it in tool["tools"]}
        elif case.agent != "codex":
            before = NAMES[case.agent].format("")
            found |= {it.removeprefix(before) for it in names if it.startswith(before)}
    return found - {"task"}


def assisted(case: Case, place: Path, id: str, home: Shell) -> tuple[str, list[Any]]:
    """What the program printed as an assistant in that home, and what its model was sent."""
    first = shell(case, f"sleep {OFFERED}")
    resume = calls(case, "resume_task", task_id=id, directive="Use the cache.")
    log = place / "log"
    server = serve(case.says(first, resume, {"text": "It goes on."}), log)
    url = f"http://127.0.0.1:{server.server_port}"
    job = Job(
        prompt="Resume the task.",
        role=Role.WORKER,
        task=id,
        session="s",
        environ={name: value.replace(URL, url) for name, value in case.environ.items()},
        home=str(home.user),
        workspace=str(home.repo),
        mcp_command=(sys.executable, "-m", "lockgate", "mcp"),
    )
    launch = Registry(search=PATH).launch(case.agent, SETTINGS, job)
    for name, text in {**launch.kept, **launch.files}.items():
        (home.user / name).parent.mkdir(parents=True, exist_ok=True)
        (home.user / name).write_text(text)
    env = {"PATH": PATH, "HOME": str(home.user), "TMPDIR": str(place), "LANG": "C.UTF-8"}
    try:
        done = subprocess.run(
            launch.argv,
            cwd=home.repo,
            env=env | dict(launch.env),
            input=(launch.stdin or "").encode(),
            capture_output=True,
            timeout=300,
            check=False,
        )
    finally:
        server.shutdown()
        server.server_close()
    told = f"{done.stdout.decode(errors='replace')}\n{done.stderr.decode(errors='replace')}"
    return told, [json.loads(line)["body"] for line in log.read_text().splitlines()]


@pytest.mark.req("R192")
@by_agent
def test_an_assistant_lists_the_tools_and_resumes_a_task(case, tmp_path) -> None:
    must_be_there(case)
    make_repository(tmp_path / "given" / "repo")
    home = a_shell(tmp_path / "shell", tmp_path / "given" / "repo")
    home.home = home.user / ".local" / "state" / "lockgate"  # where it is without a variable
    id = home.create("fix-login", "--no-start")
    home.bring(id, Status.PAUSED_FOR_INTERVENTION)

    told, bodies = assisted(case, tmp_path, id, home)
    home.alone = False
    home.program("down")

    assert offered(case, bodies) == OPERATORS, told
    log = json.loads(home.did("task", "log", id, "--json"))
    (resumed,) = (it["data"] for it in log if it["type"] == "task.resumed")
    assert resumed["directive"] == "Use the cache."
    assert ASSISTANTS[case.agent] in resumed["by"]


@by_agent
def test_a_worker_runs_its_step_by_a_tool_in_its_sandbox(case, tmp_path) -> None:
    hand_off = r"printf '## Handoff\nDONE: hello\n' >> TASK.md"
    work = f"echo hello > hello.txt; {hand_off}; sleep {OFFERED}"
    answers = [shell(case, work), calls(case, "run_step"), {"text": "All done."}]

    with at_work(case, tmp_path, answers, gates=STEP) as it:
        it.settle()

        asked = [json.loads(line)["body"] for line in it.log.read_text().splitlines()]
        assert offered(case, asked) == WORKERS, it.orchestra.story()
        assert it.task.steps_passed == ("greet",), it.orchestra.story()
        assert it.task.status is Status.REVIEWING, it.orchestra.story()
        assert it.orchestra.left_over() == []


def test_every_assistant_that_is_installed_is_told_of_the_server(tmp_path) -> None:
    """By its own command, in its own files; a second time changes nothing."""
    make_repository(tmp_path / "given" / "repo")
    home = a_shell(tmp_path / "shell", tmp_path / "given" / "repo")
    found = [it.agent for it in CASES if not Registry(search=PATH).missing(it.agent, SETTINGS)]
    if not found:
        pytest.skip(f"needs agents: sh scripts/install_agents.sh {AGENTS}")

    told = [home.program("init", "--mcp", "--json", env={"PATH": PATH}) for _ in range(2)]

    for answer in told:
        assert [it["assistant"] for it in answer.facts["assistants"]] == found
        assert all(it["problem"] is None for it in answer.facts["assistants"]), answer
    settings = {
        "claude": ".claude.json",
        "codex": ".codex/config.toml",
        "gemini": ".gemini/settings.json",
        "opencode": ".config/opencode/opencode.json",
    }
    for agent in found:
        text = (home.user / settings[agent]).read_text()
        assert "lockgate" in text, agent
        assert "mcp" in text, agent


def must_be_there(case: Case) -> None:
    if Registry(search=PATH).missing(case.agent, SETTINGS):
        pytest.skip(f"needs {case.agent}: sh scripts/install_agents.sh {AGENTS}")
    os.environ.pop("LOCKGATE_HOME", None)
