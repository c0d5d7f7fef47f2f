"""What a worker says that was frozen, after another host has its job, is refused and counted."""

import json

import pytest

from tests.fleet.chaos import problems
from tests.fleet.site import Site, Times, must_have_servers, opened, plays

GATE = "sleep 5; ! grep -rq bad n-*"


def refused_at(site: Site, name: str) -> int:
    seen = json.loads(site.told("fleet", "status", "--json"))["hosts"]
    return sum(it["host"]["refused"] for it in seen if it["host"]["name"] == name)


def who_tests(site: Site) -> tuple[str, int]:
    """Who has the test of the train, and how often it was claimed; nobody where there is none."""
    for lane, row in site.lanes().items():
        if lane.startswith("test ") and row["token"]:
            return str(row["host"]), int(str(row["epoch"]))
    return "", 0


@pytest.mark.slow
@pytest.mark.postgres
def test_the_late_answer_of_a_worker_that_was_frozen_is_refused_and_counted(tmp_path) -> None:
    must_have_servers()
    with opened(tmp_path, {"a": plays("a", 0.1)}, command=GATE, times=Times(4, 20)) as site:
        site.started("h1", judges=0)
        for name in ("h2", "h3"):
            site.add(name, more='roles = ["hands"]').start()
        id = site.people.create("a")
        site.until(lambda: who_tests(site)[1] > 0)
        name, epoch = who_tests(site)

        site.hosts[name].freeze()
        taken = site.until(lambda: who_tests(site)[1] > epoch)
        site.hosts[name].thaw()

        assert taken <= 15
        site.until(lambda: refused_at(site, name) > 0)
        site.until_done(id)
        assert "a late answer was refused" in site.hosts[name].log()
        assert problems(site, ("a",)) == []
