"""`du`, `prune`, `doctor --deep`, `db migrate-to` and versions on the command line."""

import json
import subprocess
import sys

import pytest

from lockgate import __version__
from lockgate.core.model.task import Role, Status
from tests.faces.shell import Shell

pytestmark = pytest.mark.measured


def test_du_tells_where_space_goes(shell: Shell) -> None:
    id = shell.create()
    (shell.home / "sessions" / f"{id}.1").mkdir(parents=True)

    told, text = shell.run("du", "--json").facts, shell.did("du")

    assert told["bytes"] == sum(it["size"] for it in told["rows"])
    assert {it["kind"] for it in told["rows"]} >= {"database", "tasks", "sessions"}
    assert "database" in text
    assert text.rstrip().endswith("in all")


def test_prune_shows_first_and_removes_then(shell: Shell) -> None:
    id = shell.create()
    shell.bring(id, Status.CANCELLED)
    assert "nothing is too old" in shell.did("prune")
    (shell.home / "settings.toml").write_text("[keep]\ntasks = 0\ndeleted = 0\n")
    app = shell.app()
    app.store.effects_done([it.key for it in app.store.pending_effects(None, 100)])
    app.close()
    (shell.home / "deleted" / "old-1").mkdir(parents=True)

    planned = shell.run("prune", "--dry-run", "--json").facts
    assert {it["kind"] for it in planned["things"]} == {"tasks", "deleted"}
    assert "2 things would go" in shell.did("prune", "--dry-run")
    assert (shell.home / "tasks" / id).is_dir()
    assert "2 things went" in shell.did("prune")

    assert not (shell.home / "tasks" / id).exists()
    assert shell.did("task", "show", id)
    assert shell.run("prune", "--json").facts["things"] == []


@pytest.mark.parametrize(
    "argv", [("prune",), ("db", "migrate-to", "sqlite"), ("du",), ("up", "--install")]
)
def test_an_agent_may_not_look_after_the_home(shell: Shell, argv) -> None:
    id = shell.create()
    shell.bring(id, Status.WORKING)
    token = shell.begin(id, Role.WORKER)

    assert "human" in shell.run(*argv, token=token).why


def test_settings_that_are_wrong_are_told(shell: Shell) -> None:
    shell.create()
    (shell.home / "settings.toml").write_text("[keep]\nsessions = 'long'\n")

    assert "[keep] sessions is 'long'" in shell.run("prune").why


def test_doctor_looks_deep_and_repairs(shell: Shell) -> None:
    id = shell.create()
    (shell.home / "tasks" / id / "TASK.md").unlink()
    (shell.home / "homes" / "ghost").mkdir(parents=True)

    deep = shell.did("doctor", "--deep")
    assert "TASK.md of live tasks" in deep
    assert "lockgate doctor --deep --repair" in deep
    assert "written again" in shell.did("doctor", "--deep", "--repair")

    parts = {it["name"]: it for it in shell.run("doctor", "--deep", "--json").facts["parts"]}
    assert parts["TASK.md of live tasks"]["found"] == "nothing wrong"
    assert parts["directories of nothing known"]["found"] == "nothing wrong"
    assert parts["versions"]["found"] == f"all are {__version__}"


def test_the_database_is_moved_only_to_what_is_one(shell: Shell) -> None:
    shell.create()

    assert "uses" in shell.run("db", "migrate-to", "sqlite").why
    assert "neither" in shell.run("db", "migrate-to", "nowhere").why


def test_another_version_of_the_orchestrator_is_told(orchestrated: Shell) -> None:
    orchestrated.program("up", "--detach")
    pulse = orchestrated.home / "orchestrator.pulse"
    assert json.loads(pulse.read_text())["version"] == __version__
    assert orchestrated.program("status").err == ""
    newer = (
        "import lockgate; lockgate.__version__ = '9.9'; from lockgate.__main__ import main; main()"
    )

    done = subprocess.run(
        [sys.executable, "-c", newer, "status"],
        env=orchestrated.environment(),
        capture_output=True,
        check=True,
        text=True,
    )

    assert f"the orchestrator is version {__version__}, this command is 9.9" in done.stderr
