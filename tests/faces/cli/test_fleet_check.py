"""`lockgate fleet check`: each part has a row that says what is wrong with it and what to do."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.store.hosts import SqlHosts
from lockgate.adapters.store.lanes import SqlLanes
from lockgate.adapters.system import SystemClock
from lockgate.bootstrap import App
from lockgate.bootstrap.fleet import Look, check_fleet
from lockgate.core.hosts import Host
from lockgate.core.jobs import Evaluate, Lead
from lockgate.core.model.task import ProjectId, TaskId
from tests.adapters.engine.fleet_yard import must_have_temporal, temporal_server
from tests.faces.shell import CONFIG, Shell

NOW = 4102444800.0  # far off, so that no host is silent
H1 = Host(name="h1", version="1", roles=("hands", "lead"), seen=NOW)
NOWHERE = "127.0.0.1:9"
NEEDS = '[fleet]\nneeds = ["arm"]\n'


@pytest.fixture
def app(shell: Shell) -> Generator[App]:
    """What the test itself looks at; Temporal is nowhere."""
    shell.home.mkdir(parents=True, exist_ok=True)
    settings(shell, "")
    found = shell.app()
    yield found
    found.close()


def settings(shell: Shell, more: str, address: str = NOWHERE, namespace: str = "default") -> None:
    temporal = f'[temporal]\naddress = "{address}"\nnamespace = "{namespace}"\n'
    (shell.home / "fleet.toml").write_text(temporal + more)


def with_hosts(it: App, *hosts: Host) -> None:
    """The first of them leads."""
    for host in hosts:
        SqlHosts(it.store.database).put(host)
    lanes = SqlLanes(it.store.database)
    lanes.ask(Lead(), "lead", NOW)
    lanes.claim("lead", hosts[0].name, "token", NOW)


def a_hub(shell: Shell, *more: str) -> Path:
    place = shell.place / "hub.git"
    subprocess.run(["git", "clone", "-q", "--bare", shell.repo, place], check=True)
    if more:
        subprocess.run(["git", "-C", place, "config", *more], check=True)
    return place


def rows(shell: Shell, **env: str) -> dict[str, dict[str, str]]:
    out = shell.run("fleet", "check", "--json", env=env).out
    return {it["what"]: it for it in json.loads(out.splitlines()[0])}


def test_all_that_can_be_known_is_told_where_the_database_does_not_answer(shell: Shell) -> None:
    shell.home.mkdir(parents=True, exist_ok=True)
    settings(shell, "[fleet]\nbeat = 0\n")

    answer = shell.run("fleet", "check", env={"LOCKGATE_DATABASE": f"postgresql://x@{NOWHERE}/x"})

    assert answer.code == 1
    assert "!!  settings: the host was not started: beat must be at least 1" in answer.out
    assert "!!  database: the database x at 127.0.0.1 was not opened" in answer.out
    assert f"!!  Temporal: Temporal at {NOWHERE}, namespace default did not answer" in answer.out
    for what in ("clock", "hosts", "jobs", "labels", "hubs", "projects"):
        assert f"--  {what}: not looked at: that needs the database" in answer.out
    assert "settings, database, Temporal" in answer.err


def test_an_agent_is_told_nothing_where_the_database_does_not_answer(shell: Shell) -> None:
    gone = {"LOCKGATE_DATABASE": f"postgresql://x@{NOWHERE}/x"}

    answer = shell.run("fleet", "check", env=gone | {"LOCKGATE_TOKEN": "of a session"})

    assert "was not opened" in answer.why


def test_temporal_is_asked_beside_a_database_in_a_file(shell: Shell, app: App) -> None:
    found = rows(shell)

    assert "cannot share a database in a file" in found["database"]["trouble"]
    assert found["settings"] == {"what": "settings", "trouble": "", "note": ""}
    said = found["Temporal"]["trouble"]
    assert f"Temporal at {NOWHERE}, namespace default did not answer: " in said
    assert "start it, or set address below [temporal] in fleet.toml" in said
    assert "fleet check" not in said


def test_settings_that_nothing_can_go_by_are_named(shell: Shell, app: App) -> None:
    settings(shell, "[fleet]\nbeat = 0\n")

    assert "beat must be at least 1" in rows(shell)["settings"]["trouble"]


def test_a_missing_library_of_temporal_is_no_trouble_of_the_database(
    shell: Shell, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "temporalio", None)

    found = rows(shell)

    assert "pip install 'lockgate[temporal]'" in found["Temporal"]["trouble"]
    assert "temporalio" not in found["database"]["trouble"]


def test_a_namespace_that_is_not_there_is_made_by_the_command_in_the_message(
    shell: Shell, app: App, tmp_path: Path
) -> None:
    with temporal_server(tmp_path) as (address, _):
        settings(shell, "", address, "fleet-one")

        said = rows(shell)["Temporal"]["trouble"]

        assert "fleet-one" in said.partition("(")[0]
        command, or_else, _ = said.partition("(")[2].partition("; or ")
        assert or_else
        argv = command.split()
        subprocess.run([must_have_temporal(), *argv[1:]], check=True, capture_output=True)
        until(lambda: not rows(shell)["Temporal"]["trouble"])


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.2)


def test_files_for_tls_that_systemd_gives_are_found_and_others_are_named(
    shell: Shell, app: App, tmp_path: Path
) -> None:
    (tmp_path / "temporal.key").write_bytes(b"\xff no key")
    settings(shell, 'key = "$CREDENTIALS_DIRECTORY/temporal.key"\n')

    missing = rows(shell)["Temporal"]["trouble"]
    found = rows(shell, CREDENTIALS_DIRECTORY=str(tmp_path))["Temporal"]["trouble"]

    assert "temporal.key cannot be read: No such file" in missing
    assert "Must have both client cert and private key" in found
    assert "see cert, key and ca of [temporal] in fleet.toml" in found


def test_a_clock_that_differs_from_the_databases_is_named(app: App) -> None:
    late = SystemClock(lambda: app.witness.clock.now() + 3600)
    seen = replace(app, witness=replace(app.witness, clock=late))

    assert "3600 s behind the database's" in check_fleet(lambda: seen)["clock"].trouble
    assert check_fleet(lambda: app)["clock"] == Look()


def test_hosts_of_different_versions_are_named(shell: Shell, app: App) -> None:
    with_hosts(app, H1, replace(H1, name="h2", version="2"))

    assert rows(shell)["hosts"]["trouble"] == "versions differ: 1, 2"


def test_a_job_that_no_host_can_do_is_named(shell: Shell, app: App) -> None:
    with_hosts(app, H1)
    quiet = rows(shell)["jobs"]["trouble"]
    judged = Evaluate(TaskId("t"), ProjectId("p"), "t:1:0")

    SqlLanes(app.store.database).ask(judged, "arm", NOW)

    assert quiet == ""
    assert rows(shell)["jobs"]["trouble"] == "judge t: waits: no host has arm"


def test_a_label_that_a_project_asks_for_and_no_host_has_is_named_before_a_job_waits(
    shell: Shell, app: App
) -> None:
    (shell.repo / ".lockgate" / "config.toml").write_text(f"{CONFIG}\n{NEEDS}")
    subprocess.run(["git", "-C", shell.repo, "commit", "-qam", "needs"], check=True)
    shell.create()
    with_hosts(app, H1)

    said = rows(shell)["labels"]["trouble"]
    hosts = SqlHosts(app.store.database)
    assert hosts.put(replace(H1, labels=("arm",)), hosts.find(H1.name))

    assert said.startswith("repo: no host has arm (give a host the label")
    assert rows(shell)["labels"]["trouble"] == ""


def test_a_project_without_a_hub_is_named_and_that_is_no_fault(shell: Shell, app: App) -> None:
    shell.create()

    found = rows(shell)["projects"]

    assert found["note"] == "no hub, so one host does it all: repo"
    assert found["trouble"] == ""


def test_a_hub_that_is_a_path_is_a_note_and_one_that_is_gone_a_fault(
    shell: Shell, app: App
) -> None:
    hub = a_hub(shell)
    shell.did("fleet", "hub", str(hub))

    found = rows(shell)
    hub.rename(shell.place / "gone.git")
    gone = rows(shell)

    assert "only hosts of this machine reach a path" in found["hubs"]["note"]
    assert found["hubs"]["trouble"] == ""
    assert found["projects"] == {"what": "projects", "trouble": "", "note": ""}
    assert "did not answer" in gone["hubs"]["trouble"]


@pytest.mark.parametrize("atomic", ["true", "false"])
def test_a_fence_that_waits_is_called_weaker(shell: Shell, app: App, atomic) -> None:
    settings(shell, '[fleet]\nfence = "wait"\n')
    shell.did("fleet", "hub", str(a_hub(shell, "receive.advertiseAtomic", atomic)))

    answer = shell.run("fleet", "check")

    [row] = [it for it in answer.out.splitlines() if it.startswith("--  hubs: ")]
    assert 'fence = "wait" is in use' in row
    assert "weaker" in row
