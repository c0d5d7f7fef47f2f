"""What looking costs: 304s while nothing happens, and a bounded number of requests else."""

import time
from collections.abc import Generator

import pytest

from lockgate.adapters.forge.github.client import Client, Wires
from lockgate.adapters.forge.github.forge import GithubForge
from lockgate.core.forge.model import Seen
from tests.forge.hub import TOKEN, Hub
from tests.forge.state import Outcome

PULLS = 20
LOOKS_FOR_PEOPLE, LOOKS_FOR_CI = 3600 // 120, 3600 // 30  # in an hour


@pytest.fixture
def forge(hub: Hub) -> Generator[GithubForge]:
    wires = Wires(elapsed=time.monotonic, sleep=lambda _seconds: None)
    client = Client(api=f"{hub.url}/", token=lambda: TOKEN, wires=wires)
    yield GithubForge(client=client, repository="octo/demo")
    if client._http:
        client._http.close()


def offered(hub: Hub) -> list[int]:
    hub.people.ci("build", Outcome())
    bare, base = hub.state.bare, str(hub.state.bare.tip("main"))
    for number in range(PULLS):
        made = bare.commit({f"{number}.txt": "x\n"}, parents=(base,), message="x", author="bot")
        bare.move(f"lockgate/{number}", made)
        hub.people.opens("lockgate[bot]", f"lockgate/{number}")
    return list(hub.state.pulls)


def test_twenty_idle_pull_requests_cost_nothing(hub: Hub, forge: GithubForge) -> None:
    numbers = offered(hub)
    first = forge.look(numbers)
    before, left = len(hub.log), {name: it.remaining for name, it in hub.buckets.items()}

    second = forge.look(numbers)

    assert all(isinstance(it, Seen) for it in (*first.values(), *second.values()))
    assert {it.status for it in hub.log[before:]} == {304}
    assert {name: it.remaining for name, it in hub.buckets.items()} == left


def test_twenty_pull_requests_that_people_talk_about_stay_within_the_budget(
    hub: Hub, forge: GithubForge
) -> None:
    """One of them moves at every look for CI, all of them at every look for people."""
    numbers = offered(hub)
    forge.look(numbers)

    def paid(*moved: int) -> int:
        for number in moved:
            hub.people.says("ben", number, "hm")
        before = hub.buckets["core"].remaining
        forge.look(numbers)
        return before - hub.buckets["core"].remaining

    an_hour = LOOKS_FOR_PEOPLE * paid(*numbers) + LOOKS_FOR_CI * paid(numbers[0])

    assert an_hour < 2500
