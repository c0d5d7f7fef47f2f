"""What fails in a fleet, and what follows: the rows that chaos does not show by itself."""

import json
import time

import psycopg
import pytest
from psycopg.rows import dict_row

from lockgate.adapters.engine.connection import Connection
from lockgate.adapters.engine.flows import FLOWS, Asked, LaneFlow
from lockgate.core.fleet import Cluster
from lockgate.core.model.task import Status, TaskId
from tests.fleet.chaos import counters, problems
from tests.fleet.site import Site, Times, git_says, must_have_servers, opened, plays

pytestmark = [pytest.mark.slow, pytest.mark.postgres]
TIMES = Times(beat=4, lost=8)
SOON = 15.0  # seconds, at most, until a fleet goes on after a server came back


def at_work(site: Site, id: TaskId) -> str:
    """The host of its session, once its agent is at work."""
    site.until(
        lambda: any(it.startswith("session ") and row["token"] for it, row in site.lanes().items())
    )
    return str(site.task(id).host)


def sessions_of(site: Site, id: TaskId) -> int:
    return len(site.people.app.store.sessions(id))


def hosts_of(site: Site, id: TaskId) -> list[str]:
    """Where its agents worked."""
    return [it.host for it in site.people.app.store.sessions(id)]


def test_with_temporal_down_what_runs_ends_and_the_rest_waits_until_it_is_back(tmp_path) -> None:
    must_have_servers()
    with opened(tmp_path, {"a": plays("a", 4), "b": plays("b", 0.1)}, times=TIMES) as site:
        site.started("h1", "h2")
        one = site.people.create("a")
        at_work(site, one)

        site.servers.temporal.kill()
        two = site.people.create("b")
        alive = site.people.app.store.ids_alive
        site.until(lambda: not list(alive()))  # what runs is recorded
        assert "pending" in site.told("status") or site.task(two).host == ""
        assert site.task(one).status is not Status.DONE
        assert site.task(two).status is not Status.DONE
        site.servers.temporal.start()

        assert site.until(lambda: site.task(two).host != "") <= SOON
        site.until_done(one, two)
        assert problems(site, ("a", "b")) == []


def test_with_postgresql_down_an_agent_goes_on_and_its_end_is_recorded_later(tmp_path) -> None:
    must_have_servers()
    with opened(tmp_path, {"a": plays("a", 3)}, times=TIMES) as site:
        (host,) = site.started("h1")
        id = site.people.create("a")
        at_work(site, id)
        before = site.task(id)

        site.servers.postgres.kill()
        sessions = host.own / "home" / "sessions"
        site.until(lambda: any(sessions.glob("*/exit.json")))
        site.postgres_up()

        site.until_done(id)
        after = site.task(id)
        assert after.generation == before.generation
        assert not any(counters(after).values()), counters(after)
        assert sessions_of(site, id) == 1
        assert problems(site, ("a",)) == []


def test_with_the_hub_down_nothing_is_handed_over_and_the_reason_is_shown(tmp_path) -> None:
    must_have_servers()
    with opened(tmp_path, {"a": plays("a", 3)}, times=TIMES) as site:
        site.started("h1")
        id = site.people.create("a")
        at_work(site, id)

        site.servers.hub.kill()
        site.until(lambda: not list(site.people.app.store.ids_alive()))
        site.until(lambda: any("hub" in str(it["why"]) for it in site.lanes().values()))
        assert "hub" in site.told("fleet", "status")
        assert site.task(id).candidate == ""
        site.servers.hub.start()

        site.until_done(id)
        assert problems(site, ("a",)) == []


def test_a_job_that_no_host_has_an_agent_for_waits_and_says_so(tmp_path) -> None:
    must_have_servers()
    with opened(tmp_path, {"a": plays("a", 0.1)}, times=TIMES) as site:
        site.started("h1", more='roles = ["lead"]')
        id = site.people.create("a")

        site.until(lambda: "no host has agent:scripted" in site.told("fleet", "status"))
        assert site.task(id).host == ""
        site.add("h2", more='roles = ["hands"]').start()

        site.until_done(id)
        assert site.task(id).host in {"", "h2"}
        assert site.leader() == "h1"


def test_a_job_in_an_unknown_form_is_handed_back_and_the_old_host_is_named(tmp_path) -> None:
    must_have_servers()
    with opened(tmp_path, {"a": plays("a", 0.1)}, times=TIMES) as site:
        site.started("h1")
        job = json.dumps({"form": 99, "kind": "evaluate"})
        with psycopg.connect(site.servers.database) as connection:
            asked = "INSERT INTO lanes (lane, job, class, asked) VALUES ('judge x', %s, 'any', 1)"
            connection.execute(asked, (job,))
        temporal = Connection(Cluster(address=f"127.0.0.1:{site.servers.temporal.port}"))
        told = Asked("judge x", "lockgate-gates-any", 4.0)
        start = temporal.client.start_workflow(LaneFlow.run, told, id="judge x", task_queue=FLOWS)
        temporal.wait(start)
        id = site.people.create("a")

        site.until(lambda: "host h1 cannot do it" in str(site.lanes()["judge x"]["why"]))
        shown = site.told("fleet", "status") + site.people.lockgate("fleet", "check").stdout
        assert "form 99" in shown
        site.until_done(id)
        temporal.close()


def test_agents_of_a_host_that_was_cut_off_for_long_are_ended_when_it_is_back(tmp_path) -> None:
    must_have_servers()
    with opened(tmp_path, {"a": plays("a", 45)}, times=TIMES) as site:
        one, _two = site.started("h1")[0], None
        id = site.people.create("a")
        assert at_work(site, id) == "h1"
        site.add("h2").start()
        before = site.task(id)
        agents = [it for it in one.processes() if "/sessions/" in it]
        assert agents

        one.network(up=False)
        lost = site.until(lambda: site.task(id).host == "h2")
        assert lost <= TIMES.beat + TIMES.lost + SOON
        assert [it for it in one.processes() if "/sessions/" in it]  # it works for nobody
        one.network(up=True)

        ended = site.until(lambda: not [it for it in one.processes() if "/sessions/" in it])
        assert ended <= SOON * 2
        site.until_done(id)
        after = site.task(id)
        assert after.generation > before.generation
        assert problems(site, ("a",)) == []


def test_a_host_gets_jobs_soon_after_a_long_cut(tmp_path) -> None:
    """It has found out meanwhile that its connection is dead; by itself the library needs 45 s."""
    must_have_servers()
    with opened(tmp_path, {"a": plays("a", 0.1), "b": plays("b", 0.1)}, times=TIMES) as site:
        (host,) = site.started("h1")
        site.until_done(site.people.create("a"))

        host.network(up=False)
        time.sleep(30)
        id = site.people.create("b")
        host.network(up=True)

        assert site.until(lambda: site.task(id).host == "h1") <= SOON / 2
        site.until_done(id)


def test_another_leads_in_time_though_the_host_beside_it_froze_too(tmp_path) -> None:
    """Temporal may give the job to the one that froze first: its connections are open."""
    must_have_servers()
    with opened(tmp_path, {}, times=Times(beat=10, lost=20)) as site:
        names = ("h1", "h2", "h3")
        site.started(*names)
        site.until(lambda: all(it in site.told("fleet", "status") for it in names))
        leader = site.leader()
        beside, last = (it for it in names if it != leader)

        site.hosts[beside].freeze()
        site.hosts[leader].freeze()

        assert site.until(lambda: site.leader() == last) <= SOON


def test_the_late_push_of_a_leader_that_froze_before_it_moves_nothing(tmp_path) -> None:
    must_have_servers()
    gate = "sleep 3; ! grep -rq bad n-*"
    with opened(tmp_path, {"a": plays("a", 0.1)}, command=gate, times=TIMES) as site:
        (one,) = site.started("h1")
        site.add("h2").start()
        id = site.people.create("a")
        site.until(lambda: any(it.startswith("test ") for it in site.lanes()))
        hold = one.own / "bin" / "hold"
        hold.touch()
        site.until(lambda: bool(_intents(site)) and hold.with_name("held").exists())

        one.freeze()
        taken = site.until(lambda: site.leader() == "h2")
        assert taken <= SOON
        site.until_done(id)
        landed = site.on_main()
        hold.unlink()
        one.thaw()

        site.until(lambda: "leads no more" in one.log())
        assert site.on_main() == landed == ["a"]
        assert problems(site, ("a",)) == []


def _intents(site: Site) -> list[dict[str, object]]:
    with psycopg.connect(site.servers.database) as connection:
        rows = connection.cursor(row_factory=dict_row).execute("SELECT * FROM landings")
        return rows.fetchall()


def test_a_draining_host_gets_nothing_new_and_a_forgotten_one_stops(tmp_path) -> None:
    must_have_servers()
    scripts = {it: plays(it, 1) for it in "abc"}
    with opened(tmp_path, scripts, times=TIMES) as site:
        site.started("h1")
        site.add("h2").start()
        site.until(lambda: "h2" in site.told("fleet", "status"))
        site.told("fleet", "drain", "h1")
        time.sleep(6)  # a host hears of it when it next says that it is there
        ids = [site.people.create(it) for it in "ab"]
        site.until_done(*ids)
        assert {at for id in ids for at in hosts_of(site, id)} == {"h2"}

        site.told("fleet", "forget", "h2")
        site.until(lambda: not site.hosts["h2"].alive())
        site.told("fleet", "undrain", "h1")
        site.until_done(site.people.create("c"))


def test_the_tasks_of_a_host_drained_with_move_go_on_elsewhere_from_a_snapshot(tmp_path) -> None:
    must_have_servers()
    with opened(tmp_path, {"a": plays("a", 12)}, times=TIMES) as site:
        (one,) = site.started("h1")
        id = site.people.create("a")
        assert at_work(site, id) == "h1"
        site.add("h2").start()
        site.until(lambda: "h2" in site.told("fleet", "status"))
        before = site.task(id)
        ref = f"refs/lockgate/changes/{id}/{before.generation}"
        assert _files(site, ref) == []

        assert "1 tasks go on elsewhere" in site.told("fleet", "drain", "h1", "--move")

        site.until(lambda: site.task(id).host == "h2")
        assert "n-a" in _files(site, ref)  # the host has kept it before it gave the task away
        site.until(lambda: not [it for it in one.processes() if "/sessions/" in it])
        site.until_done(id)
        after = site.task(id)
        assert after.generation > before.generation
        assert not any(counters(after).values()), counters(after)
        assert problems(site, ("a",)) == []


def _files(site: Site, ref: str) -> list[str]:
    """None where the hub has no such ref."""
    known = git_says(site.repository, "for-each-ref", "--format=%(refname)", ref).split()
    return git_says(site.repository, "ls-tree", "--name-only", ref).split() if known else []


def test_a_host_whose_disk_is_full_gets_nothing_new_and_drains_itself_in_the_end(tmp_path) -> None:
    must_have_servers()
    scripts = {it: plays(it, 0.1) for it in "abc"}
    with opened(tmp_path, scripts, times=TIMES) as site:
        (one,) = site.started("h1", disk="100m")
        site.add("h2").start()
        site.until(lambda: "h2" in site.told("fleet", "status"))
        filler = f"{one.own}/home/filler"
        one.run("sh", "-c", f"cat /dev/zero > {filler}")

        ids = [site.people.create(it) for it in "ab"]
        site.until_done(*ids)
        assert {at for id in ids for at in hosts_of(site, id)} == {"h2"}
        assert not any(any(counters(site.task(id)).values()) for id in ids)
        site.until(lambda: "draining: its disk was full 3 times" in site.told("fleet", "status"))
        assert site.leader() == "h2"

        one.run("rm", filler)
        site.told("fleet", "undrain", "h1")
        site.told("fleet", "drain", "h2")
        time.sleep(6)  # a host hears of it when it next says that it is there
        id = site.people.create("c")
        site.until_done(id)
        assert problems(site, ("a", "b", "c")) == []
