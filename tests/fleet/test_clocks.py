"""Hosts whose clocks are wrong, and a database that has forgotten its last commits."""

import psycopg
import pytest

from lockgate.core.model.task import Status
from tests.fleet.chaos import counters, problems
from tests.fleet.site import Site, Times, git_says, must_have_servers, opened, plays

pytestmark = [pytest.mark.slow, pytest.mark.postgres]
TIMES = Times(beat=4, lost=8)
HOUR = 3600.0
RESTS = 20.0  # seconds, at most, that a lane rests whose hub is down
SOON = 15.0  # seconds, at most, until another host leads


def test_hosts_whose_clocks_are_an_hour_wrong_rest_take_over_and_land_as_others(tmp_path) -> None:
    must_have_servers()
    scripts = {"a": plays("a", 3), "b": plays("b", 1)}
    with opened(tmp_path, scripts, times=TIMES) as site:
        (slow,) = site.started("h1", more='roles = ["lead"]', ahead=-HOUR)
        fast = site.add("h2", ahead=HOUR)
        fast.start()
        one = site.people.create("a")
        site.until(lambda: site.task(one).host == "h2" and bool(_alive(site)))

        site.servers.hub.kill()
        site.until(lambda: not _alive(site))
        site.until(lambda: bool(_rests(site)))
        assert 0 < max(_rests(site)) <= RESTS
        site.servers.hub.start()
        site.until_done(one, seconds=60.0)

        shown = site.told("fleet", "status")
        assert "the clock of h1 is 3600 s behind the database's" in shown
        assert "the clock of h2 is 3600 s ahead of the database's" in shown
        assert "silent" not in shown
        assert "the clock of h2 is 3600 s ahead" in fast.log()
        slow.power_off()
        two = site.people.create("b")
        assert site.until(lambda: site.leader() == "h2") <= SOON
        site.until_done(two)
        assert not any(any(counters(site.task(id)).values()) for id in (one, two))
        assert problems(site, ("a", "b")) == []


def _alive(site: Site) -> list[object]:
    return list(site.people.app.store.ids_alive())


def _rests(site: Site) -> list[float]:
    """For how many seconds more each lane rests, by the database's clock."""
    asked = "SELECT until - extract(epoch FROM clock_timestamp()) FROM lanes WHERE until > 0"
    with psycopg.connect(site.servers.database) as connection:
        return [float(left) for (left,) in connection.execute(asked)]


def test_what_a_database_forgot_in_a_failover_is_done_again_and_lands_once(tmp_path) -> None:
    must_have_servers()
    scripts = {"a": plays("a", 4), "b": plays("b", 30), "c": plays("c", 1)}
    with opened(tmp_path, scripts, times=TIMES) as site:
        site.started("h1")
        site.add("h2").start()
        ids = [site.people.create(it) for it in "ab"]
        site.until(lambda: len(_alive(site)) == len(ids))

        site.servers.postgres.keep()
        site.until_done(ids[0])
        landed = site.on_main()
        site.servers.postgres.kill()
        site.servers.postgres.fail_over()

        assert landed == ["a"]
        assert site.task(ids[0]).status is Status.WORKING
        site.until_done(*ids, site.people.create("c"))
        assert sorted(site.on_main()) == ["a", "b", "c"]
        assert len(_landings(site)) == len(set(_landings(site))) == len("abc")
        assert problems(site, ("a", "b", "c")) == []


def _landings(site: Site) -> list[str]:
    """The tasks that merges of the hub's main name, the newest first."""
    shown = ("--merges", "--first-parent", "--format=%(trailers:key=Lockgate-Task,valueonly)")
    return git_says(site.repository, "log", *shown, "main").split()
