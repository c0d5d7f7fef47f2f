"""What hosts offer, why a job waits for one, and who may use a name."""

import pytest
from msgspec.structs import replace

from lockgate.core.hosts import (
    FULL_RESTS,
    FULL_TIMES,
    FULL_WITHIN,
    LEAST_FREE,
    Disk,
    Host,
    HostState,
    agents_in,
    another_may_lead,
    clock_trouble,
    free_slots,
    looked_at,
    name_lost,
    name_taken,
    next_look_at_hubs,
    offers,
    state_at_start,
    was_full,
    why_drained,
    why_not_taken,
    why_waiting,
    zero_of,
)

ONE = Host(name="h1", labels=("gpu",), agents=("claude",), roles=("hands", "lead"), boot="b1")
DRAINED = Host(name="h2", labels=("arm",), state=HostState.DRAINING)
GONE = Host(name="h3", labels=("fpga",), state=HostState.GONE)


def test_a_host_offers_its_labels_its_roles_its_agents_and_itself() -> None:
    assert offers(ONE) == {"gpu", "hands", "lead", "agent:claude", "host:h1"}


def test_a_host_that_only_leads_offers_no_agent_and_no_label() -> None:
    leads = Host(name="h1", labels=("gpu",), agents=("claude",), roles=("lead",))

    assert offers(leads) == {"lead"}
    assert why_waiting("agent:claude", (leads,)) == "waits: no host has agent:claude"


@pytest.mark.parametrize(
    ("of_class", "why"),
    [
        ("any", ""),
        ("agent:claude+gpu", ""),
        ("lead", ""),
        ("host:h1", ""),
        ("host:h2", ""),  # what is there already goes on
        ("host:h3", "waits: host h3 is gone"),
        ("host:h4", "waits: host h4 is gone"),
        ("arm", "waits: h2 may get nothing new"),
        ("arm+gpu", "waits: no host has arm and gpu"),
        ("fpga", "waits: no host has fpga"),
        ("gpu+host:h1", ""),  # the only one that has the commits
        ("fpga+host:h1", "waits: no host has fpga and the name h1"),
        ("host:h1+linux", "waits: no host has the name h1 and linux"),
    ],
)
def test_what_nobody_can_do_says_why_it_waits(of_class: str, why: str) -> None:
    assert why_waiting(of_class, (ONE, DRAINED, GONE)) == why


@pytest.mark.parametrize(
    ("at_work", "lacking", "why"),
    [
        (0, (), ""),
        (1, (), ""),
        (2, (), "host h1 has 2 agents at work, and as many slots"),
        (3, (), "host h1 has 3 agents at work, and 2 slots"),
        (0, ("claude",), "host h1 has no claude that is installed and logged in"),
    ],
)
def test_a_host_takes_a_task_while_it_has_a_slot_and_its_agents(at_work, lacking, why) -> None:
    host = replace(ONE, slots=2)

    assert why_not_taken(host, at_work, lacking) == why
    assert free_slots(host, at_work) == max(0, 2 - at_work)


def test_the_agents_of_a_class_are_those_that_it_names() -> None:
    assert agents_in("agent:claude+agent:codex+gpu") == ("claude", "codex")
    assert agents_in("any") == agents_in("host:h1") == ()


def test_without_any_host_everything_waits() -> None:
    assert why_waiting("any", ()) == "waits: no host is there"
    assert why_waiting("any", (DRAINED,)) == "waits: h2 may get nothing new"


def test_a_job_that_only_a_host_without_hands_could_do_says_so() -> None:
    leads = Host(name="h1", roles=("lead",))

    for of_class in ("host:h1", "hands+host:h1", "gpu+hands+host:h1"):
        assert why_waiting(of_class, (leads,)) == "waits: host h1 does not have the role hands"
    assert why_waiting("hands+host:h1", (ONE,)) == ""
    gone = replace(leads, state=HostState.GONE)
    assert why_waiting("host:h1", (gone,)) == "waits: host h1 is gone"


def test_who_was_drained_is_drained_still_when_it_starts_again() -> None:
    assert state_at_start(DRAINED) is HostState.DRAINING
    assert state_at_start(GONE) is HostState.UP
    assert state_at_start(None) is HostState.UP


@pytest.mark.parametrize(
    ("known", "why"),
    [
        (None, ""),
        (Host(name="h1", boot="b1", seen=99.0), ""),  # it starts again
        (Host(name="h1", boot="b2", seen=99.0), "another machine has the name 'h1'"),
        (Host(name="h1", boot="b2", seen=120.0), "was seen 0 s ago"),  # its clock is ahead
        (Host(name="h1", boot="b2", seen=85.0), ""),
        (Host(name="h1", boot="b2", seen=99.0, state=HostState.GONE), ""),
    ],
)
def test_two_machines_do_not_use_one_name_at_once(known: Host | None, why: str) -> None:
    said = name_taken(known, "b1", now=100.0)

    assert bool(said) == bool(why)
    assert why in said


def test_a_host_that_is_not_known_any_more_was_forgotten_or_lost_its_name() -> None:
    another = Host(name="h1", boot="b2")

    assert name_lost(None, "b1") == ""
    assert name_lost(another, "b2") == ""
    assert "another machine has the name 'h1' now" in name_lost(another, "b1")


def test_a_host_whose_disk_is_full_for_the_third_time_drains_itself() -> None:
    disk, now = Disk(), 100.0
    for times in range(1, FULL_TIMES + 1):
        disk = looked_at(disk, LEAST_FREE - 1, now)
        assert looked_at(disk, 0, now + FULL_RESTS - 1) == disk  # it rests already
        assert (len(disk.times), disk.drains) == (times, times == FULL_TIMES)
        now = disk.until

    assert why_drained(disk) == "its disk was full 3 times"


def test_a_disk_with_room_and_one_that_was_full_long_ago_drain_no_host() -> None:
    assert looked_at(Disk(), LEAST_FREE, 1.0) == Disk()

    old = Disk((1.0, 2.0), 17.0)
    assert looked_at(old, 0, 2.0 + FULL_WITHIN).times == (2.0 + FULL_WITHIN,)


def test_a_job_says_that_it_failed_for_want_of_space() -> None:
    assert was_full("the workspace was not made: fatal: write error: No space left on device")
    assert not was_full("the hub did not answer")


@pytest.mark.parametrize(
    ("other", "may"),
    [
        (Host(name="h2", roles=("lead",), seen=9.0), True),
        (Host(name="h2", roles=("hands",), seen=9.0), False),
        (Host(name="h2", roles=("lead",), seen=-90.0), False),
        (Host(name="h2", roles=("lead",), seen=9.0, state=HostState.DRAINING), False),
        (Host(name="h1", roles=("lead",), seen=9.0), False),  # itself
    ],
)
def test_a_host_leaves_the_lead_to_another_only_where_one_is_there(other: Host, may: bool) -> None:
    assert another_may_lead("h1", (other,), 10.0) is may


@pytest.mark.parametrize(
    ("known", "told", "zero"),
    [
        (None, 1001.0, 990.0),
        (990.5, 1001.0, 990.5),  # the answer may have been on its way for so long
        (992.5, 1001.0, 990.0),  # one of the two clocks was set
        (-2600.0, 1001.0, 990.0),
    ],
)
def test_the_time_of_the_database_is_known_as_well_as_its_answer_was_quick(
    known, told, zero
) -> None:
    assert zero_of(known, sent=10.0, told=told, received=12.0) == zero


def test_a_clock_that_differs_much_is_named_with_what_to_do() -> None:
    assert clock_trouble("h1", 5.0) == clock_trouble("h1", -4.9) == ""
    assert "the clock of h1 is 3600 s ahead of the database's" in clock_trouble("h1", 3600.0)
    assert "7 s behind the database's" in clock_trouble("h1", -7.0)
    assert "timedatectl set-ntp true" in clock_trouble("h1", -7.0)


@pytest.mark.parametrize(
    ("hosts", "leads", "seconds"),
    [(1, False, 5.0), (3, False, 5.0), (1000, False, 1000.0), (1, True, 5.0), (1000, True, 5.0)],
)
def test_all_hosts_together_ask_a_hub_about_once_a_second_and_the_leader_every_five(
    hosts, leads, seconds
) -> None:
    assert next_look_at_hubs(hosts, leads=leads) == seconds
