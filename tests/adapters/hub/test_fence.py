"""A leader that is frozen with its landing under way, while the next one on another host leads."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lockgate.core.train.model import Built
from lockgate.errors import LockgateError
from lockgate.ports import Arrived, Elsewhere, InTheWay, Leave
from tests.adapters.hub.hosts import TASK, Fleet, Host, config

PATIENCE = 30.0
FENCE = "refs/lockgate/fence/main"
# The hub's end of a push: what it has is told at once, what is sent to it waits once.
SLOW = """\
#!/bin/sh
if [ -e "{signs}/on" ] && mkdir "{signs}/once" 2>/dev/null; then
    {{ until [ -e "{signs}/go" ]; do sleep 0.02; done; cat; }} | git-receive-pack "$@"
else
    exec git-receive-pack "$@"
fi
"""


def eventually(true: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < until, "it never came true"
        time.sleep(0.02)


class Landing(threading.Thread):
    """A landing that freezes on its way."""

    def __init__(self, host: Host, built: Built, check: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self.host, self.built, self.check = host, built, check
        self.expected = host.yard.tip(host.target).commit
        self.ended: Arrived | Elsewhere | InTheWay | LockgateError | None = None

    def run(self) -> None:
        leave = Leave(1, 1, self.check)
        try:
            self.ended = self.host.yard.land(
                self.host.target, self.expected, self.built.commit, leave
            )
        except LockgateError as error:
            self.ended = error


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def built_on(fleet: Fleet, host: Host) -> Built:
    task = fleet.task()
    return host.builds((task, host.works(task, "new.txt").commit))


def lands_another(fleet: Fleet, host: Host) -> str:
    task = fleet.task("another-1")
    built = host.builds((task, host.works(task, "another.txt").commit))
    tip = host.yard.tip(host.target).commit
    assert host.yard.land(host.target, tip, built.commit, Leave(2, 2)) == Arrived()
    return built.commit


@pytest.mark.parametrize("lands", [False, True], ids=["", "and another lands"])
def test_a_leader_frozen_before_its_push_moves_nothing_when_it_wakes(fleet, lands) -> None:
    one, two = fleet.host("one"), fleet.host("two")
    built, start = built_on(fleet, one), fleet.at_hub()
    frozen, go, looks = threading.Event(), threading.Event(), list[int]()

    def look() -> None:
        """The first look is before the fence is taken, the second before the branch is pushed."""
        looks.append(1)
        if len(looks) == 2:
            frozen.set()
            go.wait(PATIENCE)

    landing = Landing(one, built, look)
    landing.start()
    assert frozen.wait(PATIENCE)
    fence = fleet.at_hub(FENCE)

    assert two.yard.shut_out(two.target, Leave(2, 1))
    assert fleet.at_hub(FENCE) != fence
    assert not two.yard.has(two.target, built.commit)
    expected = lands_another(fleet, two) if lands else start
    go.set()
    landing.join(PATIENCE)

    assert landing.ended == Elsewhere()
    assert fleet.at_hub() == expected


@pytest.mark.parametrize("lands", [False, True], ids=["", "and another lands"])
def test_a_leader_frozen_between_what_the_hub_told_and_what_it_sends_moves_nothing(
    fleet, tmp_path, lands
) -> None:
    one, two = fleet.host("one"), fleet.host("two")
    built, start = built_on(fleet, one), fleet.at_hub()
    signs = tmp_path / "signs"
    signs.mkdir()
    slow = tmp_path / "slow-receive-pack"
    slow.write_text(SLOW.format(signs=signs))
    slow.chmod(0o755)
    assert one.yard.shut_out(one.target, Leave(1, 1))
    config(one.mirror, "remote.origin.receivepack", str(slow))
    (signs / "on").touch()
    landing = Landing(one, built, lambda: None)
    landing.start()
    eventually((signs / "once").exists)
    time.sleep(0.3)  # the hub has told what it has; were it too short, the lease would refuse

    assert two.yard.shut_out(two.target, Leave(2, 1))
    expected = lands_another(fleet, two) if lands else start
    (signs / "go").touch()
    landing.join(PATIENCE)

    assert landing.ended == Elsewhere()
    assert fleet.at_hub() == expected
    assert "epoch: 2" in fleet.message(FENCE)


def test_each_landing_moves_the_fence(fleet) -> None:
    one = fleet.host("one")
    first = lands_another(fleet, one)
    fence = fleet.at_hub(FENCE)

    task = fleet.task(TASK)
    built = one.builds((task, one.works(task, "new.txt").commit))
    assert one.yard.land(one.target, one.yard.tip(one.target).commit, built.commit) == Arrived()

    assert fleet.at_hub(FENCE) != fence
    assert fleet.at_hub() == built.commit != first
