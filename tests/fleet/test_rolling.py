"""Hosts of two releases beside each other: this one, and the one before it."""

import pytest

from tests.fleet.chaos import counters, problems, weathered
from tests.fleet.releases import VERSION
from tests.fleet.site import Times, must_have_servers, opened, plays

pytestmark = [pytest.mark.slow, pytest.mark.postgres]


def test_hosts_of_two_releases_that_break_land_every_task_once(tmp_path) -> None:
    must_have_servers()

    result = weathered(tmp_path, tasks=5, seed=2, seconds=300.0, old=1)

    assert result.wrong == [], f"{result.table()}\n{result.story}"


@pytest.mark.parametrize("old", ["h1", "h2"])  # h1 leads
def test_a_host_of_another_release_than_the_leaders_does_tasks(tmp_path, old: str) -> None:
    """What the leader asks for is carried out, judged and tested by the other one."""
    must_have_servers()
    roles = {"h1": 'roles = ["lead"]', "h2": 'roles = ["hands"]'}
    with opened(tmp_path, {"a": plays("a", 0.1)}, times=Times(4, 8)) as site:
        for name, more in roles.items():
            site.add(name, more=more, before=name == old).start()
        id = site.people.create("a")

        site.until_done(id)
        assert site.leader() == "h1"
        assert f"versions differ: {VERSION}" in site.people.lockgate("fleet", "check").stdout
        assert problems(site, ("a",)) == []


def test_a_host_is_brought_to_the_next_release_while_its_agent_works(tmp_path) -> None:
    must_have_servers()
    with opened(tmp_path, {"a": plays("a", 15)}, times=Times(4, 20)) as site:
        one = site.add("h1", before=True)
        one.start()
        id = site.people.create("a")
        site.until(lambda: any(it.startswith("session ") for it in site.lanes()))
        site.add("h2").start()
        before = site.task(id)
        site.until(lambda: VERSION in site.told("fleet", "status"))

        site.bring_up_to_date(one)

        site.until(lambda: VERSION not in site.told("fleet", "status"))
        site.until_done(id)
        after = site.task(id)
        assert after.generation == before.generation
        assert len(site.people.app.store.sessions(id)) == 1
        assert not any(counters(after).values()), counters(after)
        assert problems(site, ("a",)) == []
