"""`lockgate fleet` and `lockgate worker`: hosts are seen and steered; what cannot be is refused."""

import subprocess
from collections.abc import Generator
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.store import shared_text
from lockgate.adapters.store.hosts import SqlHosts
from lockgate.adapters.store.lanes import SqlLanes
from lockgate.adapters.task_file import TaskFiles
from lockgate.bootstrap import App
from lockgate.core.fleet import FleetSettings, HostRole, OwnFacts
from lockgate.core.hosts import Host, HostState
from lockgate.core.jobs import Attend, HostLost, Lead
from lockgate.core.lifecycle import moves
from lockgate.core.model.task import ProjectId, Role, Status, Task, TaskId
from lockgate.errors import Refused
from lockgate.faces.cli.operate.fleet import board_of
from lockgate.services.agents.spawner import Monitor
from lockgate.services.orchestrator.hosts import HostWork
from tests.faces.shell import HANDOFF, Shell

NOW = 4102444800.0  # far off, so that no host is silent
H1 = Host(name="h1", labels=("gpu",), roles=("hands", "lead"), slots=4, judges=2, seen=NOW)


@pytest.fixture
def app(shell: Shell) -> Generator[App]:
    """What the test itself looks at."""
    found = shell.app()
    yield found
    found.close()


def with_host(it: App, host: Host = H1) -> None:
    hosts = SqlHosts(it.store.database)
    assert hosts.put(host, hosts.find(host.name))


def work_of(it: App) -> HostWork:
    return HostWork(
        store=it.store,
        attendance=it.attendance,
        monitor=Monitor(it.store, it.attendance, it.sessions, it.harnesses, it.configuration),
        sessions=it.sessions,
        workspaces=it.workspaces,
        clock=it.witness.clock,
        wait=lambda _: None,
    )


def counters(task: Task) -> tuple[int, ...]:
    return (task.iteration, task.review_round, task.crash_count, task.failed_attempts)


def test_a_fleet_without_hosts_says_how_to_start_one(shell: Shell) -> None:
    assert "lockgate worker" in shell.did("fleet", "status")


def test_hosts_are_listed_drained_used_again_and_forgotten(shell: Shell, app: App) -> None:
    with_host(app)
    lanes = SqlLanes(app.store.database)
    lanes.ask(Lead(), "lead", 1.0)
    lanes.claim("lead", "h1", "token", 2.0)

    lanes.ask(HostLost(TaskId("t"), ProjectId("p"), "h2"), "any", NOW - 10)
    assert "h1 leads (epoch 1) for " in shell.did("fleet", "status")
    assert shell.run("fleet", "status", "--json").facts["led"] > 0
    assert "gets nothing new" in shell.did("fleet", "drain", "h1")
    assert "draining" in shell.did("fleet", "status")
    shell.did("fleet", "undrain", "h1")
    assert shell.run("fleet", "status", "--json").facts["hosts"][0]["host"]["state"] == "up"
    assert "0 tasks go on elsewhere" in shell.did("fleet", "forget", "h1")
    assert "h1 " not in shell.did("fleet", "status")


def test_late_answers_that_were_refused_are_counted_for_each_host(shell: Shell, app: App) -> None:
    with_host(app)
    hosts = SqlHosts(app.store.database)
    hosts.seen(H1, NOW, 2)
    hosts.seen(H1, NOW, 1)
    with_host(app)  # it starts again

    assert shell.run("fleet", "status", "--json").facts["hosts"][0]["host"]["refused"] == 3
    assert "REFUSED" in shell.did("fleet", "status")


@pytest.mark.parametrize("command", ["drain", "undrain", "forget"])
def test_a_host_that_is_not_there_is_refused(shell: Shell, command) -> None:
    answer = shell.run("fleet", command, "h9")

    assert answer.code == 1
    assert "there is no host 'h9'" in answer.err


def test_a_job_that_no_host_can_do_is_shown_with_what_is_missing(shell: Shell, app: App) -> None:
    with_host(app, replace(H1, labels=()))
    SqlLanes(app.store.database).ask(Lead(), "arm", NOW)

    assert "waits: no host has arm" in shell.did("fleet", "status")


def test_tasks_of_a_forgotten_host_go_on_elsewhere_and_no_counter_moves(
    shell: Shell, app: App
) -> None:
    with_host(app)
    id = shell.create()
    shell.bring(id, Status.WORKING)
    shell.begin(id, Role.WORKER)
    work = work_of(app)
    work.place(id, "h1")
    before = app.store.load(id)

    assert "1 tasks go on elsewhere" in shell.did("fleet", "forget", "h1")
    [row] = SqlLanes(app.store.database).rows()
    assert isinstance(row.job, HostLost)
    work.host_lost(row.job)

    after = app.store.load(id)
    assert (before.host, after.host) == ("h1", "")
    assert after.generation > before.generation
    assert all(it.ended is not None for it in app.store.sessions(id))
    assert (after.status, counters(after)) == (before.status, counters(before))


def test_a_drained_host_gives_its_tasks_away_itself(shell: Shell, app: App) -> None:
    with_host(app)
    id = shell.create()
    shell.bring(id, Status.WORKING)
    work_of(app).place(id, "h1")

    assert "1 tasks go on elsewhere" in shell.did("fleet", "drain", "h1", "--move")

    [row] = SqlLanes(app.store.database).rows()
    assert row.needs == "host:h1"
    assert row.job == HostLost(id, app.store.load(id).project, "h1", moves=True)


def test_a_host_that_drained_itself_says_why(shell: Shell, app: App) -> None:
    with_host(app)
    SqlHosts(app.store.database).mark("h1", HostState.DRAINING, "its disk was full 3 times")

    assert "draining: its disk was full 3 times" in shell.did("fleet", "status")
    checked = shell.run("fleet", "check").out
    assert "h1 gets nothing new: its disk was full 3 times (free space" in checked

    shell.did("fleet", "undrain", "h1")
    assert "full" not in shell.did("fleet", "status")


def test_work_that_a_lost_host_had_not_handed_over_is_done_again(shell: Shell, app: App) -> None:
    with_host(app)
    id = shell.create()
    shell.bring(id, Status.AGENT_REVIEW)
    work = work_of(app)
    work.place(id, "h1")
    before = app.store.load(id)

    work.host_lost(HostLost(id, before.project, "h1"))

    after = app.store.load(id)
    assert (after.host, after.status) == ("", Status.WORKING)
    assert after.generation > before.generation


def of_home(it: App, home: Path) -> App:
    """The same database, as a host with a home of its own uses it."""
    files = TaskFiles(home, partial(shared_text, it.store))
    return replace(it, witness=replace(it.witness, files=files))


def test_the_handoff_of_lost_work_goes_and_may_be_written_again(
    shell: Shell, app: App, tmp_path: Path
) -> None:
    """Though the host that records the loss has an older TASK.md of the task in its home."""
    with_host(app)
    id = shell.create()
    older = of_home(app, tmp_path / "h2")
    older.coordinator.turn(id, moves.started)
    shell.write(id, HANDOFF)
    shell.did("task", "update", id, "--status", "agent-review")
    work_of(app).place(id, "h1")
    before = app.store.load(id)
    text = app.store.body(id) or ""

    work_of(older).host_lost(HostLost(id, before.project, "h1"))

    after = app.store.load(id)
    types = [it.type for it in app.views.all_events(id)]
    assert "artifact.tampered" not in types
    assert "## Handoff" in text
    assert "## Handoff" not in (app.store.body(id) or "")
    assert (before.spent - after.spent, after.status) == (before.spent, Status.WORKING)
    shell.write(id, HANDOFF)
    shell.did("task", "update", id, "--status", "agent-review")
    assert app.store.load(id).status is Status.AGENT_REVIEW


def test_a_session_that_was_ended_elsewhere_is_not_attended_to(shell: Shell, app: App) -> None:
    id = shell.create()
    shell.bring(id, Status.WORKING)
    shell.begin(id, Role.WORKER)
    work = work_of(app)
    [session] = app.store.sessions(id)
    job = Attend(session.id, id, app.store.load(id).project)
    work.host_lost(HostLost(id, job.project, ""))

    assert work.attend(job, lambda: False) == 0.0
    assert work.attend(job, lambda: True) == 0.0
    assert work.lead(lambda: True) == 0.0


def test_a_host_on_a_database_in_a_file_is_refused(shell: Shell) -> None:
    answer = shell.run("worker", "--name", "h1")

    assert answer.code == 2
    assert "several hosts cannot share a database in a file" in answer.err


def test_a_host_serves_people_where_it_is_told_to_in_the_role_api(app: App) -> None:
    told = OwnFacts(listen="127.0.0.1:0")

    def served(own: OwnFacts) -> bool:
        return board_of(app, FleetSettings(host=own)) is not None

    assert served(told)
    assert not served(OwnFacts())
    assert not served(replace(told, roles=(HostRole.LEAD,)))
    with pytest.raises(Refused, match="is not HOST:PORT"):
        served(replace(told, listen="8443"))


def test_the_server_of_a_host_is_told_the_address_by_which_other_hosts_reach_it(app: App) -> None:
    def told(api: str) -> tuple[str, ...]:
        own = OwnFacts(listen="127.0.0.1:0", api=api)
        found = board_of(app, FleetSettings(host=own))
        assert isinstance(found, partial)
        said: tuple[str, ...] = found.args[-1]
        return said[3:]

    assert told("https://H1.lan:443/") == ("--api", "https://h1.lan")
    assert told("") == ()
    with pytest.raises(Refused, match="has more than a host and a port"):
        told("https://h1.lan/lockgate")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[host]\nslots = 'many'\n", "fleet.toml was not read"),
        ("[hots]\n", "fleet.toml was not read"),
        ("[fleet]\nbeat = 0\n", "beat must be at least 1"),
    ],
)
def test_settings_that_nothing_can_go_by_are_refused(shell: Shell, text, why) -> None:
    shell.home.mkdir(parents=True, exist_ok=True)
    (shell.home / "fleet.toml").write_text(text)

    answer = shell.run("up", "--engine", "temporal")

    assert answer.code == 2
    assert why in answer.err


def test_an_orchestrator_does_not_start_beside_a_fleet(shell: Shell, app: App) -> None:
    with_host(app)

    answer = shell.program("up", seconds=60)

    assert answer.code == 1
    assert "no orchestrator was started" in answer.err
    assert "host h1 of a fleet" in answer.err


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (["--install"], "--install"),
        (["--uninstall"], "--uninstall"),
        (["--detach"], "--detach"),
        (["--once"], "--once"),
        (["--idle", "5"], "--idle"),
        (["--web"], "--web"),
        (["--web-port", "8441"], "--web-port"),
        (["--detach", "--web"], "--detach, --web"),
    ],
)
def test_an_option_of_an_orchestrator_alone_is_refused_for_a_host_of_a_fleet(
    shell: Shell, more, named
) -> None:
    answer = shell.run("up", "--engine", "temporal", *more)

    assert answer.code == 2
    assert f"--engine temporal cannot be used with {named}" in answer.err
    assert "lockgate-worker.service" in answer.err


def test_a_project_is_given_a_hub_and_loses_it_again(shell: Shell, app: App, tmp_path) -> None:
    hub = tmp_path / "hub.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", shell.repo, hub], check=True)

    assert "has the hub" in shell.did("fleet", "hub", str(hub))
    [project] = app.store.projects()
    assert project.url == str(hub)
    assert "has no hub" in shell.did("fleet", "hub", "none")


def test_a_check_names_what_is_missing(shell: Shell) -> None:
    answer = shell.run("fleet", "check")

    assert answer.code == 1
    assert "ok  settings" in answer.out
    assert "!!  database: no fleet can use this home" in answer.out
    assert "nobody leads" in answer.out


def test_a_hub_without_atomic_push_is_taken_only_where_the_hosts_wait(
    shell: Shell, tmp_path
) -> None:
    hub = tmp_path / "hub.git"
    subprocess.run(["git", "clone", "-q", "--bare", shell.repo, hub], check=True)
    subprocess.run(["git", "-C", hub, "config", "receive.advertiseAtomic", "false"], check=True)

    refused = shell.run("fleet", "hub", str(hub))
    (shell.home / "fleet.toml").write_text('[fleet]\nfence = "wait"\n', encoding="utf-8")

    assert refused.code == 1
    assert 'without atomic pushes set fence = "wait"' in refused.err
    assert "has the hub" in shell.did("fleet", "hub", str(hub))


def test_a_host_whose_clock_is_wrong_is_named(shell: Shell, app: App) -> None:
    with_host(app, replace(H1, ahead=3600.0))

    assert "the clock of h1 is 3600 s ahead" in shell.did("fleet", "status")
    checked = shell.run("fleet", "check").out
    assert "ok  clock" in checked
    assert "the clock of h1 is 3600 s ahead" in checked
