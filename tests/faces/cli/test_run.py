"""`lockgate run`, as a user runs it: a real orchestrator, the scripted agent, the sandbox."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lockgate.core.model.gates import PROTECTED
from lockgate.core.model.task import Role, Status
from tests.faces.shell import CONFIG, Shell, commit_config

HELLO = '{ write = "hello.txt", text = "hello\\n" }'
HANDS_OFF = '{ section = "Handoff", text = "DONE: hello" }, { signal = "complete" }'
REVIEWER = """
[[reviewer]]
steps = [ { section = "Review", text = "PASS" }, { signal = "update reviewing" } ]
"""
ASKS = """
[[worker]]
steps = [ { section = "Questions", text = "Which greeting?" }, { signal = "update clarification" } ]
"""
BRANCH = "say-hello"
TESTS = """
[[gates.list]]
name = "tests"
type = "command"
command = "test -f hello.txt"
"""

AUTO = """
[merge]
mode = "auto"
"""


def worker(*steps: str) -> str:
    return f"[[worker]]\nsteps = [ {', '.join(steps)} ]\n"


def play(shell: Shell, script: str, config: str = CONFIG + TESTS) -> Shell:
    """The script that every scripted agent of this repository plays."""
    place = shell.repo / ".lockgate"
    place.mkdir(exist_ok=True)
    (place / "script.toml").write_text(script, encoding="utf-8")
    commit_config(shell, config)
    return shell


def without(place: Path, *programs: str) -> dict[str, str]:
    """An environment that has git, and what else a sandbox needs, but not these programs."""
    place.mkdir()
    for name in {"git", "bwrap", "prlimit", "setpriv", "sh", "tmux", "unshare"} - set(programs):
        found = shutil.which(name)
        if found:
            (place / name).symlink_to(found)
    return {"PATH": str(place)}


def until(shell: Shell, id: str, status: Status) -> None:
    end = time.monotonic() + 90
    while shell.status(id) is not status:
        assert time.monotonic() < end, shell.did("task", "log", id)
        time.sleep(0.1)


# --- to its end ---------------------------------------------------------------------------------


def test_a_run_follows_its_task_until_the_merge_is_the_users(orchestrated):
    play(orchestrated, worker(HELLO, HANDS_OFF) + REVIEWER)

    answer = orchestrated.program("run", "Say hello")

    id = orchestrated.app().tasks.find(f"{BRANCH}-")
    assert answer.code == 0, answer
    assert "a worker starts" in answer.out
    assert "gate tests passed" in answer.out
    assert f"land it:   lockgate approve {id}" in answer.out
    assert "\n  hello.txt  +1  -0\n  1 file, +1 -0\n" in answer.out
    assert "\x1b" not in answer.out
    orchestrated.git("merge", "--quiet", BRANCH)
    assert orchestrated.did("task", "update", id, "--status", "done") == f"{id} is done\n"


@pytest.mark.measured
def test_where_landing_is_automatic_a_run_follows_its_change_into_the_target(orchestrated):
    play(orchestrated, worker(HELLO, HANDS_OFF) + REVIEWER, CONFIG + TESTS + AUTO)

    answer = orchestrated.program("run", "Say hello")

    landed = orchestrated.git("rev-parse", "main").strip()
    assert answer.code == 0, answer
    assert f"the target branch is now at {landed[:12]}, the commit that was tested" in answer.out
    assert answer.out.endswith(f"has landed as {landed[:12]}\n")
    assert (orchestrated.repo / "hello.txt").exists(), "the checkout has followed"
    verified = orchestrated.run("verify", "HEAD", "--json").facts
    assert [it["gate"] for it in verified["evidence"]["train"]] == ["tests"]


STEERS = '{ shell = "mkdir .husky; echo x > .husky/pre-commit; echo x > AGENTS.md" }'
TOLD = "it changes what steers agents, editors, hooks or CI: .husky/pre-commit, AGENTS.md"


@pytest.mark.slow
def test_where_landing_is_automatic_a_run_asks_a_human_of_what_steers(orchestrated):
    play(orchestrated, worker(HELLO, STEERS, HANDS_OFF) + REVIEWER, CONFIG + TESTS + AUTO)
    before = orchestrated.git("rev-parse", "main")

    answer = orchestrated.program("run", "Say hello")

    id = orchestrated.app().tasks.find(f"{BRANCH}-")
    assert answer.code == 1, answer
    assert f"gate {PROTECTED} waits" in answer.out
    assert orchestrated.git("rev-parse", "main") == before
    assert orchestrated.program("approve", id).code == 0
    until(orchestrated, id, Status.DONE)
    assert orchestrated.git("show", "main:AGENTS.md") == "x\n"


def test_where_a_human_lands_changes_what_steers_is_listed_first_and_one_yes_is_enough(
    orchestrated,
):
    play(orchestrated, worker(HELLO, STEERS, HANDS_OFF) + REVIEWER)

    answer = orchestrated.program("run", "Say hello")

    id = orchestrated.app().tasks.find(f"{BRANCH}-")
    assert answer.code == 0, answer
    lines = answer.out.splitlines()
    [first] = [n for n, line in enumerate(lines) if "is ready to land: all gates passed" in line]
    assert lines[first + 1] == f"  look first: {TOLD}"
    for asked in (("status",), ("task", "why", id), ("queue", "list")):
        assert TOLD in orchestrated.program(*asked).out
    assert "steering:    .husky/pre-commit, AGENTS.md" in orchestrated.did("task", "show", id)
    [row] = orchestrated.program("queue", "list", "--json").facts["changes"]
    assert row["steering"] == [".husky/pre-commit", "AGENTS.md"]
    assert TOLD in orchestrated.program("queue", "approve", id).out
    until(orchestrated, id, Status.DONE)


def test_with_json_a_run_says_one_thing_at_its_end(orchestrated):
    play(orchestrated, worker(HELLO, HANDS_OFF) + REVIEWER)

    answer = orchestrated.program("run", "Say hello", "--branch", "greet", "--json")

    assert answer.code == 0, answer
    assert (answer.facts["status"], answer.facts["branch"]) == ("reviewing", "greet")


@pytest.mark.slow
def test_a_run_whose_branch_is_the_users_own_says_where_the_change_is(orchestrated):
    play(orchestrated, worker(HELLO, HANDS_OFF) + REVIEWER)
    orchestrated.git("switch", "--quiet", "--create", "mine")

    answer = orchestrated.program("run", "Say hello", "--branch", "mine")

    assert answer.code == 0, answer
    assert "branch mine in your repository is another commit and was left alone" in answer.out
    [id] = [it for it in answer.out.split() if it.startswith("mine-")][:1]
    assert orchestrated.program("queue", "approve", id).code == 0
    until(orchestrated, id, Status.DONE)
    assert orchestrated.git("show", "main:hello.txt") == "hello\n"
    assert not (orchestrated.repo / "hello.txt").exists(), "another branch is checked out"


@pytest.mark.slow
@pytest.mark.measured
def test_a_run_that_ends_stuck_exits_1_and_says_why(orchestrated):
    play(orchestrated, worker("{ crash = 3 }"))

    answer = orchestrated.program("run", "Say hello")

    assert answer.code == 1
    assert "(time 2 in this state)" in answer.out
    assert "is stuck (its agents stopped without handing in)" in answer.out
    assert "lockgate task why" in answer.out


@pytest.mark.measured
def test_a_question_ends_the_run_and_its_answer_goes_to_the_agent(orchestrated):
    script = ASKS + worker(HELLO, HANDS_OFF) + REVIEWER
    play(orchestrated, script)

    asked = orchestrated.program("run", "Say hello")
    id = orchestrated.app().tasks.find(f"{BRANCH}-")
    answered = orchestrated.program("answer", id, "-m", "good morning")

    assert asked.code == 1
    assert "Which greeting?" in asked.out
    assert f"lockgate answer {id} -m TEXT" in asked.out
    assert (answered.code, answered.out) == (0, f"{id} is working\n")
    until(orchestrated, id, Status.REVIEWING)


@pytest.mark.slow
def test_a_task_that_is_cancelled_ends_its_run_with_1(orchestrated):
    play(orchestrated, worker("{ hang = true }"))
    following = _run(orchestrated)

    id = _started(orchestrated)
    orchestrated.program("task", "cancel", id)
    out, _ = following.communicate(timeout=60)

    assert following.returncode == 1
    assert f"{id} is cancelled" in out.decode()


def test_an_interrupt_ends_the_following_and_not_the_task(orchestrated):
    play(orchestrated, worker("{ sleep = 2 }", HELLO, HANDS_OFF) + REVIEWER)
    following = _run(orchestrated)
    id = _started(orchestrated)

    following.send_signal(signal.SIGINT)
    _, err = following.communicate(timeout=20)

    assert following.returncode == 130
    assert f"{id} continues in the background" in err.decode()
    assert b"Traceback" not in err
    until(orchestrated, id, Status.REVIEWING)


def _run(shell: Shell) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "lockgate", "run", "Say hello"],
        cwd=shell.repo,
        env=shell.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _started(shell: Shell) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for task in json.loads(shell.did("task", "list", "--json"))["rows"]:
            if shell.facts(task["id"])["sessions"]:
                return str(task["id"])
        time.sleep(0.1)
    raise AssertionError(shell.did("events"))


# --- what is made -------------------------------------------------------------------------------


def test_without_waiting_a_run_prints_the_id_alone(shell):
    answer = shell.program("run", "Say hello", "--no-wait", "--context", "-", stdin=b"In English.")

    id = answer.out.strip()
    assert (answer.code, answer.err) == (0, "")
    assert shell.facts(id)["branch"] == BRANCH
    assert "In English." in shell.file(id).read_text(encoding="utf-8")


BRANCHES = (
    ("Say hello", "say-hello"),
    ("Grüße & Küsse!", "grusse-kusse"),
    ("修复登录", "task"),
    ("Fix  login", "fix-login-2"),  # the repository has a branch fix-login
    (f"a {'very ' * 20}long one", "a-very-very-very-very-very-very-very"),
)


@pytest.mark.parametrize(("summary", "branch"), BRANCHES)
def test_a_branch_is_made_of_the_summary(shell, summary, branch):
    made = json.loads(shell.did("run", summary, "--no-wait", "--json"))

    assert made["branch"] == branch


def test_the_same_summary_twice_gets_two_branches(shell):
    made = [json.loads(shell.did("run", "Say hello", "--no-wait", "--json")) for _ in range(3)]

    assert [it["branch"] for it in made] == ["say-hello", "say-hello-2", "say-hello-3"]


# --- what is refused, before anything is made ---------------------------------------------------


def test_a_run_without_a_configuration_on_base_asks_for_one(plain):
    answer = plain.run("run", "Say hello")

    assert "has no .lockgate/config.toml on main" in answer.why
    assert "lockgate init" in answer.why
    assert plain.rows()["tasks"] == []


def test_a_run_whose_agent_is_not_installed_says_how_to_install_it(shell, tmp_path):
    answer = shell.program("run", "Say hello", "--agent", "claude", env=without(tmp_path / "bin"))

    assert "agent claude is not installed" in answer.why
    assert "npm install" in answer.why
    assert shell.rows()["tasks"] == []


def test_a_run_of_an_agent_that_nobody_knows_is_refused(shell):
    assert "agent 'nosuch' was not found" in shell.run("run", "Say hello", "--agent", "nosuch").why


@pytest.mark.measured
def test_a_run_where_no_sandbox_works_is_refused(shell, tmp_path):
    answer = shell.program("run", "Say hello", env=without(tmp_path / "bin", "bwrap"))

    assert "bwrap is not on PATH" in answer.why
    assert "lockgate doctor" in answer.why
    assert shell.rows()["tasks"] == []


def test_a_run_without_a_sandbox_must_be_asked_for(shell, tmp_path):
    commit_config(shell, CONFIG + '\n[sandbox]\nlevel = "none"\n')

    answer = shell.program("run", "Say hello", "--no-wait", env=without(tmp_path / "bin", "bwrap"))

    assert answer.code == 0, answer


@pytest.mark.measured
def test_a_run_with_no_orchestrator_says_so_and_waits(shell):
    following = _run(shell)
    assert following.stderr is not None
    end = time.monotonic() + 60
    err = b""
    while b"no orchestrator runs" not in err and time.monotonic() < end:
        err += following.stderr.readline()

    following.send_signal(signal.SIGINT)
    following.communicate(timeout=20)

    assert b"start one: lockgate up" in err
    assert following.returncode == 130


def test_an_agent_does_not_run_tasks(shell):
    id = shell.create()
    shell.bring(id, Status.WORKING)
    before = shell.rows()["tasks"]

    answer = shell.run("run", "Say hello", token=shell.begin(id, Role.WORKER))

    assert "a worker may not do that" in answer.why
    assert len(shell.rows()["tasks"]) == len(before)


def test_a_commit_that_could_not_be_signed_is_told_before_a_task_exists(shell):
    for name, value in (
        ("commit.gpgsign", "true"),
        ("gpg.format", "ssh"),
        ("user.signingkey", "/no/such/key"),
    ):
        shell.git("config", name, value)

    answer = shell.run("run", "Say hello")

    assert answer.code == 1
    assert "commit.gpgsign is set, and git could not sign a commit" in answer.why
    assert "git config commit.gpgsign false" in answer.err
    assert json.loads(shell.did("task", "list", "--json"))["rows"] == []
