"""Where jobs of a fleet wait, and which of them a host asks for."""

import pytest

from lockgate.core.fleet import Pool, Queue, host_in, needs_at, pool_of, queue_of, queues_of
from lockgate.core.hosts import Host
from lockgate.core.jobs import (
    Anywhere,
    CarryOut,
    Evaluate,
    Here,
    Lead,
    On,
)
from lockgate.core.model.task import ProjectId, TaskId

P, T = ProjectId("p"), TaskId("t")


@pytest.mark.parametrize(
    ("job", "pool"),
    [
        (CarryOut(T, P), Pool.HANDS),
        (Evaluate(T, P, "t:1:0"), Pool.GATES),
        (Lead(), Pool.LEAD),
    ],
)
def test_long_jobs_have_places_of_their_own(job, pool) -> None:
    assert pool_of(job) is pool


@pytest.mark.parametrize(
    ("place", "needs"),
    [
        (On("h1"), "host:h1"),
        (Anywhere(), "any"),
        (Anywhere(("gpu", "arm", "gpu")), "arm+gpu"),
        (Here(), None),
    ],
)
def test_a_place_is_a_class_of_hosts(place, needs) -> None:
    assert needs_at(place) == needs


def test_what_is_bound_to_a_host_waits_in_its_own_queue_whatever_it_is() -> None:
    assert host_in("host:h1") == "h1"
    assert host_in("gpu") == ""
    assert queue_of(Pool.GATES, "host:h1") == "lockgate-own-host:h1"
    assert queue_of(Pool.GATES, "gpu") == "lockgate-gates-gpu"


def test_a_host_serves_its_own_queue_and_the_classes_that_its_labels_cover() -> None:
    host = Host(name="h1", labels=("gpu",), roles=("hands", "lead"))

    served = queues_of(host, ("gpu", "arm", "any", "host:h2", "lead"))

    assert [it.name for it in served] == [
        "lockgate-lead-lead",
        "lockgate-own-host:h1",
        "lockgate-hands-any",
        "lockgate-gates-any",
        "lockgate-hands-gpu",
        "lockgate-gates-gpu",
    ]


def test_a_host_that_only_leads_or_only_answers_does_no_jobs() -> None:
    assert queues_of(Host(name="h1", roles=("lead",)), ()) == (
        Queue("lockgate-lead-lead", Pool.LEAD),
    )
    assert queues_of(Host(name="h1", roles=("api",)), ()) == ()
