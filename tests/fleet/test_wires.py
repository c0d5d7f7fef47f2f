"""The hub by a real sshd and by https: what hosts hand over there, and what they are told."""

import os
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from lockgate.adapters.hub import GitTrial
from lockgate.core.hub import Tried
from lockgate.errors import Unavailable
from lockgate.ports import Arrived, Elsewhere, Leave
from tests.adapters.hub.hosts import Fleet
from tests.fleet.hub_servers import by_https, by_ssh

pytestmark = pytest.mark.slow
WIRES = {"ssh": by_ssh, "https": by_https}
DENIED = {"ssh": "Permission denied", "https": "could not read Username"}


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def fleet(tmp_path: Path, wire: str) -> Generator[Fleet]:
    made, place = Fleet(tmp_path), tmp_path / "server"
    place.mkdir(mode=0o700)
    with WIRES[wire](made.hub, place, Path(os.environ["HOME"])) as url:
        made.url = url
        yield made


def test_a_hub_by_this_wire_will_do(fleet) -> None:
    assert GitTrial().tried(fleet.url) == Tried(branches=1)

    assert fleet.refs("refs") == ["refs/heads/main"]


def test_what_one_host_made_is_judged_by_another_and_landed_by_a_third(fleet) -> None:
    one, two, three = (fleet.host(it) for it in ("one", "two", "three"))
    task = fleet.task()

    made = one.works(task, "new.txt", "x\n" * 2_000_000)
    there = two.candidate(task, made.commit)
    assert two.workspaces.changed_files(there) == ("new.txt",)
    built = two.builds((task, made.commit))
    assert three.yard.shut_out(three.target, Leave(1, 1))
    tip = three.yard.tip(three.target).commit

    assert three.yard.land(three.target, tip, built.commit, Leave(1, 1)) == Arrived()
    assert fleet.at_hub() == built.commit
    one.exchange.follow(one.project)
    assert one.repository.commit_of(one.project, "main") == built.commit


def test_a_leader_that_another_has_shut_out_lands_nothing(fleet) -> None:
    one, two = fleet.host("one"), fleet.host("two")
    task, start = fleet.task(), fleet.at_hub()
    built = one.builds((task, one.works(task, "new.txt").commit))
    tip = one.yard.tip(one.target).commit
    assert one.yard.shut_out(one.target, Leave(1, 1))

    def overtaken() -> None:
        if not overtaken_by:
            overtaken_by.append("two")
            assert two.yard.shut_out(two.target, Leave(2, 1))

    overtaken_by = list[str]()
    landed = one.yard.land(one.target, tip, built.commit, Leave(1, 1, overtaken))

    assert (landed, fleet.at_hub()) == (Elsewhere(), start)
    assert overtaken_by == ["two"]


def test_who_has_no_key_or_password_is_told_so_and_asked_for_nothing(fleet, wire, tmp_path) -> None:
    (tmp_path / "server" / "authorized").write_text("")
    settings = ("git", "config", "--global", "--unset-all", "credential.helper")
    subprocess.run(settings, check=wire == "https")
    one = fleet.host("one")

    tried = GitTrial().tried(fleet.url)
    with pytest.raises(Unavailable) as seen:
        one.workspaces.prepare(one.project, fleet.task())

    assert DENIED[wire] in tried.read
    assert DENIED[wire] in seen.value.why
    assert f"git ls-remote {fleet.url}" in seen.value.fix
