"""Lockgate in GitHub Actions: notes at lines, a summary, the workflow, the Action's own steps."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from lockgate.adapters.sandbox import trouble
from lockgate.core.config.settings import Settings
from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.gates import CommandGate, Placement, Where
from lockgate.core.model.task import ProjectId
from lockgate.faces.words import actions
from lockgate.ports import Candidate, Project
from lockgate.services.gates.commit_check import Case, Judged
from tests.faces.cli.test_gate import BARE, HEAD, TESTS, command, edit, on_a_branch
from tests.faces.shell import Shell

ROOT = Path(__file__).parents[3]
ACTIONS = {"GITHUB_ACTIONS": "true"}
WHY_NOT = trouble()
needs_sandbox = pytest.mark.skipif(WHY_NOT is not None, reason=f"needs a sandbox: {WHY_NOT}")
SPOKEN = command(
    "lint",
    "printf '%s\\n' '::add-mask::everything' 'app.py:1:1: E1 bad'; exit 1",
    "attempts = 1",
)


def a_gate(name: str) -> CommandGate:
    return CommandGate(name=name, place=Placement(serial=False, on=(Where.CHANGE,)), command="true")


def failed(*findings: Finding, name: str = "tests") -> Judged:
    gate = a_gate(name)
    return Judged(gate=gate, result="failed", findings=findings)


def at(file: str, line: int | None, issue: str) -> Finding:
    return Finding(Priority.P1_MAJOR, issue, Location(file, line))


# --- notes ---------------------------------------------------------------------------------------


def test_a_finding_is_a_note_at_its_line() -> None:
    [note] = actions.annotations([failed(at("app.py", 3, "it loops"))])

    assert note == "::error file=app.py,line=3,title=tests::P1 it loops"


@pytest.mark.parametrize(
    ("finding", "note"),
    [
        (
            at("a,b:c.py", 1, "50 % done\n::error::forged\r"),
            "::error file=a%2Cb%3Ac.py,line=1,title=tests::P1 50 %25 done%0A::error::forged",
        ),
        (at("/etc/passwd", 1, "no"), "::error title=tests::P1 no"),
        (at("../up.py", 1, "no"), "::error title=tests::P1 no"),
        (at("app.py", None, "no"), "::error file=app.py,title=tests::P1 no"),
        (Finding(Priority.P0_CRITICAL, "no"), "::error title=tests::P0 no"),
    ],
)
def test_what_a_finding_says_begins_no_command(finding: Finding, note: str) -> None:
    assert list(actions.annotations([failed(finding)])) == [note]


def test_ten_notes_are_made_those_at_lines_first() -> None:
    found = failed(
        Finding(Priority.P1_MAJOR, "all of it"), *(at("a.py", n, "x") for n in range(12))
    )

    notes = list(actions.annotations([found]))

    assert len(notes) == 11
    assert all("file=a.py" in it for it in notes[:10])
    assert notes[10] == "::notice title=lockgate::3 more are in the summary"


def test_a_gate_that_cannot_judge_is_a_note() -> None:
    broken = Judged(gate=a_gate("tests"), result="broken", why="no program")

    assert list(actions.annotations([broken])) == ["::error title=tests::no program"]


def test_a_text_cannot_leave_its_place_in_the_summary() -> None:
    settings = Settings(formula="none", gates=(a_gate("te|st`s<b>"),))
    project = Project(id=ProjectId("p"), name="p", common_dir="/p/.git", root="/p")
    case = Case(
        candidate=Candidate(project=project, commit="c" * 40, rules=None, name="head"),
        branch="b",
        settings=settings,
        rules="main",
        unjudged=(),
        edited=(),
    )

    text = actions.summary(
        case, [failed(at("a.py", 1, "bad\n````\n# Passed"), name="te|st`s<b>")], ()
    )

    assert "## Lockgate: did not pass" in text
    assert "te\\|st\\`s&lt;b&gt;" in text
    assert text.count("\n`````\n") == 2


# --- gate run ------------------------------------------------------------------------------------


def test_in_actions_gate_run_annotates_and_writes_the_summary(shell: Shell) -> None:
    on_a_branch(shell, HEAD + BARE + SPOKEN)
    summary = shell.place / "summary.md"
    summary.write_text("before\n")

    answer = shell.program(
        "gate", "run", "--base", "main", env={**ACTIONS, "GITHUB_STEP_SUMMARY": str(summary)}
    )

    assert answer.code == 1
    assert re.search(r"^::error .*title=lint::", answer.err, re.MULTILINE)
    assert summary.read_text().startswith("before\n## Lockgate: did not pass\n")


def test_what_a_gate_prints_is_no_command_of_actions(shell: Shell) -> None:
    """Whether on one stream or two: between the two lines the runner takes no command."""
    on_a_branch(shell, HEAD + BARE + SPOKEN)

    answer = shell.program("gate", "run", "--base", "main", env=ACTIONS)
    lines = answer.err.splitlines()
    stop = next(it for it in lines if it.startswith("::stop-commands::"))
    word = stop.removeprefix("::stop-commands::")

    assert lines.index(stop) < lines.index(f"::{word}::")
    assert len(word) == 32
    after = lines[lines.index(f"::{word}::") + 1 :]
    assert not any(it.lstrip().startswith("::add-mask") for it in after)


@pytest.mark.parametrize(("argv", "env"), [((), {}), (("--annotate", "none"), ACTIONS)])
def test_elsewhere_or_where_it_is_not_wanted_nothing_is_annotated(
    shell: Shell, argv: tuple[str, ...], env: dict[str, str]
) -> None:
    on_a_branch(shell, HEAD + BARE + SPOKEN)

    answer = shell.program("gate", "run", "--base", "main", *argv, env=env)

    assert answer.code == 1
    assert "::error" not in answer.err


def test_annotations_can_be_asked_for_anywhere_and_keep_json_whole(shell: Shell) -> None:
    on_a_branch(shell, HEAD + BARE + SPOKEN)

    answer = shell.run("gate", "run", "--base", "main", "--annotate", "github", "--json")

    assert answer.facts["passed"] is False
    assert "::error" in answer.err


# --- init --action -------------------------------------------------------------------------------


def workflow(text: str) -> Any:  # what YAML can hold
    return yaml.safe_load(text.replace("\non:", '\n"on":'))


def test_init_writes_a_workflow_that_asks_for_little(shell: Shell) -> None:
    answer = shell.run("init", "--action")
    text = (shell.repo / ".github" / "workflows" / "lockgate.yml").read_text()
    found = workflow(text)
    steps = found["jobs"]["lockgate"]["steps"]

    assert answer.code == 0
    assert set(found["on"]) == {"pull_request", "merge_group"}
    assert found["permissions"] == {"contents": "read"}
    assert steps[0]["with"] == {"fetch-depth": 0, "persist-credentials": False}
    assert all(re.search(r"@([0-9a-f]{40}|v\d+\.\d+\.\d+)$", it["uses"]) for it in steps)
    assert "pull_request_target" not in text
    assert "secrets" not in text


def test_init_keeps_a_workflow_that_is_there(shell: Shell) -> None:
    (shell.repo / ".github").mkdir()
    edit(shell, ".github/workflows/lockgate.yml", "mine\n")

    refused = shell.run("init", "--action")
    shown = shell.did("init", "--action", "--dry-run")
    kept = (shell.repo / ".github/workflows/lockgate.yml").read_text()
    shell.did("init", "--action", "--force")

    assert "the file exists" in refused.why
    assert "pull_request:" in shown
    assert kept == "mine\n"
    assert (shell.repo / ".github/workflows/lockgate.yml").read_text() != "mine\n"


def test_init_says_why_a_workflow_cannot_be_written(shell: Shell) -> None:
    edit(shell, ".github/workflows", "a file\n")

    assert ".github/workflows/lockgate.yml was not written" in shell.run("init", "--action").why


# --- the Action's own steps ----------------------------------------------------------------------


def the_action() -> Any:
    return yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def step(name: str) -> Any:
    [found] = [it for it in the_action()["runs"]["steps"] if it["name"] == name]
    return found


def run_step(shell: Shell, name: str, **env: str) -> subprocess.CompletedProcess[str]:
    """As the runner does: its shell, its variables, in the checked-out repository."""
    temp = shell.place / "runner"
    given = {
        **ACTIONS,
        "RUNNER_TEMP": str(temp),
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(shell.place / "summary.md"),
        "JUNIT": "lockgate-junit.xml",
        "LOCKGATE_HOME": str(temp / "lockgate-home"),
        **env,
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step(name)["run"]],
        cwd=shell.repo,
        env={**shell.environment(), **given},
        capture_output=True,
        text=True,
        check=False,
    )


def installed(shell: Shell) -> None:
    """What the step that installs leaves, without the network."""
    place = shell.place / "runner" / "lockgate" / "bin"
    place.mkdir(parents=True)
    (place / "lockgate").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lockgate "$@"\n')
    (place / "lockgate").chmod(0o755)


def test_no_step_puts_what_others_wrote_into_its_script() -> None:
    scripts = [it["run"] for it in the_action()["runs"]["steps"]]

    assert not any("${{" in it for it in scripts)


@needs_sandbox
def test_a_pull_request_that_weakens_its_own_rules_is_judged_by_those_of_base(
    shell: Shell,
) -> None:
    installed(shell)
    on_a_branch(shell, HEAD + TESTS)
    edit(shell, "app.py", "print('bye')\n")
    edit(shell, ".lockgate/config.toml", HEAD + command("tests", "true"))
    base = shell.git("rev-parse", "main").strip()

    done = run_step(shell, "Judge the change", BASE=base)

    assert done.returncode == 1, done
    assert "✗ tests  failed" in done.stdout
    assert "a task would ask you to approve: .lockgate/config.toml" in done.stdout
    assert "did not pass" in (shell.place / "summary.md").read_text()
    assert 'failures="1"' in (shell.repo / "lockgate-junit.xml").read_text()


@needs_sandbox
def test_a_good_pull_request_passes_without_a_secret_or_a_question(shell: Shell) -> None:
    installed(shell)
    on_a_branch(shell, HEAD + TESTS)
    edit(shell, "app.py", "print('hello again')\n")

    done = run_step(shell, "Judge the change", BASE=shell.git("rev-parse", "main").strip())

    assert done.returncode == 0, done
    assert "::error" not in done.stderr
    assert "## Lockgate: passed" in (shell.place / "summary.md").read_text()


def test_an_event_without_a_base_is_refused(shell: Shell) -> None:
    done = run_step(shell, "Judge the change", BASE="")

    assert done.returncode == 2
    assert "::error title=lockgate::This event names no base" in done.stdout


@pytest.mark.slow
@needs_sandbox
def test_all_steps_on_a_fresh_repository(shell: Shell) -> None:
    on_a_branch(shell, HEAD + TESTS)
    base = shell.git("rev-parse", "main").strip()

    for name in ("Install Lockgate", "Judge the change"):
        done = run_step(shell, name, BASE=base)
        assert done.returncode == 0, done
