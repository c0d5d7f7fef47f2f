"""What looking costs: 304s while nothing happens, and a bounded number of requests else."""

from collections.abc import Generator

import pytest

from lockgate.adapters.forge.github.client import Client, Wires
from lockgate.adapters.forge.github.forge import GithubForge
from lockgate.core.forge.model import Seen
from tests.forge.hub import TOKEN, Hub
from tests.forge.state import Outcome

PROMISED = 20  # pull requests
MOST = 2500  # requests of an hour, half of GitHub's limit
LOOKS_FOR_PEOPLE, LOOKS_FOR_CI = 3600 // 120, 3600 // 30  # in an hour


@pytest.fixture
def forge(hub: Hub) -> Generator[GithubForge]:
    wires = Wires(elapsed=lambda: 0.0, sleep=lambda _seconds: None)
    client = Client(api=f"{hub.url}/", token=lambda: TOKEN, wires=wires)
    yield GithubForge(client=client, repository="octo/demo")
    if client._http:
        client._http.close()


def offered(hub: Hub, pulls: int) -> list[int]:
    hub.people.ci("build", Outcome())
    bare, base = hub.state.bare, str(hub.state.bare.tip("main"))
    for number in range(pulls):
        message = f"change {number}"
        bare.move(
            f"lockgate/{number}",
            bare.commit({}, parents=(base,), message=message, author="bot"),
        )
        hub.people.opens("lockgate[bot]", f"lockgate/{number}")
    return list(hub.state.pulls)


@pytest.mark.parametrize("pulls", [2, pytest.param(PROMISED, marks=pytest.mark.slow)])
def test_idle_pull_requests_cost_nothing_and_busy_ones_half_a_limit_at_most(
    hub: Hub, forge: GithubForge, pulls: int
) -> None:
    """One moves at every look for CI, all at every look for people; each costs what one costs."""
    numbers = offered(hub, pulls)
    first = forge.look(numbers)
    before, left = len(hub.log), {name: it.remaining for name, it in hub.buckets.items()}

    second = forge.look(numbers)

    assert all(isinstance(it, Seen) for it in (*first.values(), *second.values()))
    assert {it.status for it in hub.log[before:]} == {304}
    assert {name: it.remaining for name, it in hub.buckets.items()} == left

    def paid(*moved: int) -> int:
        for number in moved:
            hub.people.says("ben", number, "hm")
        before = hub.buckets["core"].remaining
        forge.look(numbers)
        return before - hub.buckets["core"].remaining

    for_people = paid(*numbers) * PROMISED // pulls
    an_hour = LOOKS_FOR_PEOPLE * for_people + LOOKS_FOR_CI * paid(numbers[0])

    assert an_hour < MOST
