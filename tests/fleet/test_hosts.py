"""Two hosts do the tasks of one project, and go on when the one that leads is killed."""

import os
import re
import shutil
import signal
import subprocess
import time
import tomllib
from pathlib import Path

import pytest
import yaml

from lockgate.core.model.task import Role, Status
from tests.adapters.engine.fleet_yard import must_have_temporal
from tests.e2e.orchestra import COMPLETE, CONFIG, REVIEWER, hands_off, worker, writes
from tests.e2e.test_traces import Collector
from tests.fleet.fleet import SCRIPT, Fleet, opened
from tests.store import postgres_cluster

DOCS = Path(__file__).parents[2] / "docs" / "fleet"
TAKEN_OVER = 15.0  # seconds, at most
AT_WORK = 15.0  # seconds, at most, from when a host is declared lost


SLOW = worker(writes("good"), "{ sleep = 8 }", hands_off("x"), COMPLETE) + REVIEWER


def must_have_servers() -> None:
    must_have_temporal()
    why = postgres_cluster.missing()
    if why:
        pytest.skip(why)


@pytest.mark.measured
@pytest.mark.postgres
def test_tasks_are_done_by_hosts_and_land_after_the_leader_was_killed(
    tmp_path,
) -> None:
    must_have_servers()
    with opened(tmp_path, SCRIPT, SCRIPT) as fleet:
        fleet.start("h1")
        fleet.start("h2")
        people = fleet.people
        ids = [people.create(f"b{it}") for it in range(2)]

        fleet.until(lambda: all(people.task(id).status is Status.REVIEWING for id in ids))
        assert {people.task(id).host for id in ids} <= {"h1", "h2"}

        first = fleet.leader()
        fleet.hosts[first].kill()
        seconds = fleet.until(lambda: fleet.leader() not in {"", first})
        assert seconds <= TAKEN_OVER

        for id in ids:
            fleet.told("queue", "approve", id)
        fleet.until(lambda: all(people.task(id).status is Status.DONE for id in ids))


def begins_at(clone: Path, commit: str) -> bool:
    """Whether the work in a clone goes on from this commit."""
    git = ("git", "-c", "safe.directory=*", "-C", clone)  # a sandbox may give it another owner
    argv = (*git, "merge-base", "--is-ancestor", commit, "HEAD")
    return subprocess.run(argv, check=False, capture_output=True).returncode == 0


@pytest.mark.slow
@pytest.mark.postgres
def test_a_host_that_does_not_lead_cleans_its_own_home(tmp_path) -> None:
    must_have_servers()
    with opened(tmp_path) as fleet:
        homes = [tmp_path / "h1", tmp_path / "h2"]
        for home in homes:
            (home / "logs").mkdir(parents=True)
            for name, changed in (("old.log", 0), ("new.log", time.time())):
                (home / "logs" / name).touch()
                os.utime(home / "logs" / name, (changed, changed))
        fleet.start("h1")
        fleet.until(lambda: fleet.leader() == "h1")
        fleet.start("h2", "--role", "hands")
        fleet.until(
            lambda: not any((home / "logs" / "old.log").exists() for home in homes), seconds=40
        )
        assert all((home / "logs" / "new.log").exists() for home in homes)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_task_whose_host_lost_power_goes_on_at_another_and_no_counter_moves(tmp_path) -> None:
    must_have_servers()
    with opened(tmp_path, SLOW) as fleet:
        fleet.start("h1")
        people = fleet.people
        id = people.create("b0")
        fleet.until(lambda: people.task(id).host == "h1" and fleet.agents_at("h1") == 1)
        fleet.start("h2")
        before = people.task(id)
        fleet.until(lambda: bool(fleet.refs(f"changes/{id}")))  # what it has done until now

        [kept] = {it.rpartition("/")[2] for it in fleet.refs(f"snapshots/{id}")}

        fleet.cut_power("h1")

        fleet.until(lambda: people.task(id).host != "h1")  # it is declared lost
        seconds = fleet.until(lambda: people.task(id).host == "h2" and fleet.agents_at("h2") == 1)
        assert seconds <= AT_WORK
        [second] = [it for it in people.app.store.sessions(id) if it.host == "h2"]
        assert begins_at(Path(second.directory or ""), kept)
        fleet.until(lambda: people.task(id).status is Status.REVIEWING)
        after = people.task(id)
        assert after.generation > before.generation
        assert (after.crash_count, after.iteration) == (before.crash_count, before.iteration)


@pytest.mark.slow
@pytest.mark.postgres
def test_an_agent_outlives_its_killed_worker_and_the_next_one_takes_it_up(tmp_path) -> None:
    must_have_servers()
    with opened(tmp_path, SLOW) as fleet:
        fleet.start("h1")
        people = fleet.people
        id = people.create("b0")
        fleet.until(lambda: people.task(id).host == "h1" and fleet.agents_at("h1") == 1)
        before = people.task(id)

        fleet.hosts["h1"].kill()
        fleet.hosts["h1"].wait()
        fleet.start("h1")

        fleet.until(lambda: people.task(id).status is Status.REVIEWING)
        assert people.task(id).generation == before.generation
        workers = [it for it in people.app.store.sessions(id) if it.role is Role.WORKER]
        assert len(workers) == 1


@pytest.mark.slow
@pytest.mark.postgres
def test_a_burst_of_tasks_puts_no_more_to_work_than_a_host_has_slots(tmp_path) -> None:
    must_have_servers()
    script = worker(writes("good"), "{ sleep = 4 }", hands_off("x"), COMPLETE) + REVIEWER
    with opened(tmp_path, *[script] * 5) as fleet:
        people, most = fleet.people, 0
        ids = [people.create(f"b{it}") for it in range(5)]
        fleet.start("h1", "--slots", "2")

        def all_handed_in() -> bool:
            nonlocal most
            tasks = [people.task(id) for id in ids]
            most = max(most, sum(it.status is Status.WORKING and it.host == "h1" for it in tasks))
            return all(it.status is Status.REVIEWING for it in tasks)

        fleet.until(all_handed_in)
        assert most == 2


@pytest.mark.slow
@pytest.mark.postgres
def test_a_forgotten_host_ends_its_agents_and_then_itself_while_its_tasks_go_on_elsewhere(
    tmp_path,
) -> None:
    must_have_servers()
    script = SLOW.replace("sleep = 8", "sleep = 60", 1)
    with opened(tmp_path, script) as fleet:
        fleet.start("h1")
        people = fleet.people
        id = people.create("b0")
        fleet.until(lambda: people.task(id).host == "h1" and fleet.agents_at("h1") == 1)
        fleet.start("h2")
        fleet.until(lambda: "h2" in fleet.told("fleet", "status"))

        fleet.told("fleet", "forget", "h1")

        fleet.hosts["h1"].wait(60)
        assert fleet.runners("h1") == []
        fleet.until(lambda: people.task(id).host == "h2")
        assert [it.host for it in people.app.store.sessions(id) if it.ended is not None] == ["h1"]


@pytest.mark.slow
@pytest.mark.postgres
def test_a_host_that_was_forgotten_while_it_was_down_ends_its_lost_agents_when_it_starts(
    tmp_path,
) -> None:
    must_have_servers()
    script = SLOW.replace("sleep = 8", "sleep = 60", 1)
    with opened(tmp_path, script) as fleet:
        fleet.start("h1")
        people = fleet.people
        id = people.create("b0")
        fleet.until(lambda: people.task(id).host == "h1" and fleet.agents_at("h1") == 1)
        fleet.start("h2")
        fleet.until(lambda: "h2" in fleet.told("fleet", "status"))

        fleet.hosts["h1"].kill()
        fleet.hosts["h1"].wait()
        fleet.told("fleet", "forget", "h1")
        assert fleet.runners("h1")
        fleet.start("h1", "--slots", "0")  # what runs there is of before

        fleet.until(lambda: fleet.runners("h1") == [], seconds=50)
        assert [it.host for it in people.app.store.sessions(id) if it.ended is not None] == ["h1"]


@pytest.mark.slow
@pytest.mark.postgres
def test_a_host_whose_name_another_machine_took_while_it_was_silent_says_so_and_stops(
    tmp_path,
) -> None:
    must_have_servers()
    with opened(tmp_path, SCRIPT) as fleet:
        fleet.start("h1")
        fleet.until(lambda: fleet.leader() == "h1")
        first = fleet.hosts["h1"]
        fleet.start("h2", "--name", "h1")
        assert fleet.hosts["h2"].wait(60) == 1
        assert "another machine has the name 'h1'" in (tmp_path / "h2.log").read_text()

        first.send_signal(signal.SIGSTOP)
        fleet.until(lambda: "silent" in fleet.told("fleet", "status"), 40)
        fleet.start("h2", "--name", "h1")
        fleet.until(lambda: "silent" not in fleet.told("fleet", "status"), 40)
        first.send_signal(signal.SIGCONT)

        assert first.wait(60) == 1
        said = (tmp_path / "h1.log").read_text()
        assert "the host stops: another machine has the name 'h1' now" in said
        assert "--name NAME" in said
        assert fleet.hosts["h2"].poll() is None


@pytest.mark.slow
@pytest.mark.postgres
def test_a_gate_that_needs_a_label_waits_for_a_host_that_has_it(tmp_path) -> None:
    must_have_servers()
    config = CONFIG.replace("attempts = 1\n", 'attempts = 1\nneeds = ["gpu"]\n')
    with opened(tmp_path, SCRIPT, config=config) as fleet:
        fleet.start("h1")
        people = fleet.people
        id = people.create("b0")

        fleet.until(lambda: "waits: no host has gpu" in fleet.told("fleet", "status"))
        fleet.until(lambda: "no host has gpu" in people.task(id).troubled)
        assert "no host has gpu" in fleet.told("status")
        assert people.task(id).host == "h1"

        fleet.start("h2", "--label", "gpu", "--slots", "0")
        fleet.until(lambda: people.task(id).status is Status.REVIEWING)
        assert people.task(id).troubled == ""


@pytest.mark.slow
@pytest.mark.postgres
def test_two_evaluations_on_one_host_never_run_gates_of_the_same_word_together(tmp_path) -> None:
    must_have_servers()
    command = f"mkdir {tmp_path}/taken && sleep 6 && rmdir {tmp_path}/taken"
    with opened(tmp_path, SCRIPT, SCRIPT, config=gated(command, 'exclusive = "taken"')) as fleet:
        agree(fleet)
        fleet.start("h1")
        people = fleet.people
        ids = [people.create(f"b{it}") for it in range(2)]

        fleet.until(lambda: all(people.task(id).status is Status.REVIEWING for id in ids))

        assert [people.task(id).iteration for id in ids] == [1, 1]  # no gate found `taken` there


@pytest.mark.slow
@pytest.mark.postgres
def test_a_change_whose_tests_are_killed_twice_goes_back_to_its_agent(tmp_path) -> None:
    must_have_servers()
    with opened(tmp_path, SCRIPT + SCRIPT, config=gated("exit 137")) as fleet:
        agree(fleet)
        fleet.start("h1")
        people = fleet.people
        id = people.create("b0")

        fleet.until(lambda: people.task(id).iteration == 2)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_host_of_a_fleet_tells_one_trace_of_a_task_with_its_sessions_and_gates(tmp_path) -> None:
    must_have_servers()
    collector = Collector()
    with opened(tmp_path, SCRIPT) as fleet:
        fleet.people.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url
        fleet.start("h1")
        fleet.people.create("b0")

        wanted = {f"lockgate.{it}" for it in ("session", "evaluation", "gate", "attempt")}
        fleet.until(lambda: wanted <= {it["name"] for it in collector.spans()})

        assert len({it["trace"] for it in collector.spans()}) == 1
    collector.close()


def gated(command: str, more: str = "") -> str:
    """What the gate runs may write outside of its checkout."""
    told = CONFIG.replace('"grep -q good answer.txt"', f'"{command}"')
    told = told.replace("attempts = 1\n", f"attempts = 1\n{more}\n", 1)
    return f'{told}[sandbox]\nlevel = "none"\n[limits]\ncall_attempts = 1\n'


def agree(fleet: Fleet) -> None:
    """Say yes, for all hosts, to what the repository asks for."""
    known, (project,) = fleet.people.app.configuration, fleet.people.app.store.projects()
    commit = known.base_of(project).commit
    settings = known.settings_at(project, commit)
    digest = known.trust.question(project, commit, settings).digest
    fleet.people.environ["LOCKGATE_TRUST"] = digest


def test_the_unit_of_the_docs_is_one_that_systemd_takes() -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("needs systemd-analyze")

    unit = DOCS / "lockgate-worker.service"
    done = subprocess.run([program, "verify", unit], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


KEYS = {"image", "environment", "ports", "volumes", "healthcheck", "depends_on"}
VALUE = re.compile(
    r"[^$]*(\$\{\w+:\?[^}]*\})?[^$]*"
)  # a variable stops compose where it is not set
PORT = re.compile(r"127\.0\.0\.1:\d+:\d+")
SPAN = re.compile(r"\d+(ms|s|m|h)")


def test_the_compose_file_of_the_docs_says_nothing_that_compose_does_not_take() -> None:
    """There is no compose here: the forms are those of the Compose Specification, where used."""
    told = yaml.safe_load((DOCS / "compose.yaml").read_text())
    services, named = told["services"], told["volumes"]

    for service in services.values():
        assert set(service) <= KEYS
        assert re.fullmatch(r"[\w/-]+:[\w.]+", service["image"])
        assert all(PORT.fullmatch(it) for it in service.get("ports", ()))
        for name, value in service["environment"].items():
            assert name.isidentifier()
            assert isinstance(value, str)
            assert VALUE.fullmatch(value)
        for source, place, *mode in (it.split(":") for it in service["volumes"]):
            assert source in named if source[0] != "." else (DOCS / source).is_file()
            assert place.startswith("/")
            assert mode in ([], ["ro"])
        check = service.get("healthcheck", {"test": ["CMD"], "interval": "1s"})
        assert check["test"][0] in {"CMD", "CMD-SHELL"}
        assert SPAN.fullmatch(check["interval"])
        for other, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}
            assert "healthcheck" in services[other]
    assert all(it is None for it in named.values())


def test_the_trial_of_the_docs_joins_what_compose_serves() -> None:
    """The page's fleet.toml and database for the trial name the namespace and ports of the file."""
    services = yaml.safe_load((DOCS / "compose.yaml").read_text())["services"]
    page = (DOCS.parent / "fleet.md").read_text()
    trial = page.partition("## A trial on one machine")[2].partition("```toml\n")[2]
    settings = tomllib.loads(trial.partition("```")[0])["temporal"]

    assert settings["namespace"] == services["temporal"]["environment"]["DEFAULT_NAMESPACE"]
    assert f"{settings['address']}:7233" in services["temporal"]["ports"]


def test_the_compose_file_of_the_docs_names_its_servers_and_keeps_their_data() -> None:
    told = yaml.safe_load((DOCS / "compose.yaml").read_text())

    assert set(told) == {"services", "volumes"}
    assert set(told["services"]) == {"postgres", "temporal-postgres", "temporal"}
    assert set(told["volumes"]) == {"lockgate-data", "temporal-data"}
    for service in told["services"].values():
        assert all(it.startswith("127.0.0.1:") for it in service.get("ports", ()))
    (mounted,) = told["services"]["temporal"]["volumes"]
    file, place, _ = mounted.split(":")
    assert (DOCS / file).is_file()
    assert place.endswith(told["services"]["temporal"]["environment"]["DYNAMIC_CONFIG_FILE_PATH"])
