"""How a host is set up, where jobs of a fleet wait, which a host asks for, and what people see."""

import pytest
from msgspec.structs import replace

from lockgate.core.config.settings import Settings
from lockgate.core.fleet import (
    Asked,
    FleetSettings,
    HostRole,
    LaneRow,
    Needed,
    OwnFacts,
    Pool,
    Queue,
    Shared,
    asked_of_host,
    host_at_work,
    host_with_files,
    hosts_have_agents,
    is_able,
    is_at_work,
    labels_lacking,
    needs_at,
    needs_of,
    next_snapshot,
    pool_of,
    problem_in,
    queue_of,
    queues_of,
    seen_by,
    task_with_files,
    trouble_among,
    ways_to,
    why_held,
)
from lockgate.core.hosts import Host, HostState, clock_trouble, host_in
from lockgate.core.jobs import (
    LEAD,
    Anywhere,
    Attend,
    CarryOut,
    Evaluate,
    Here,
    HostLost,
    Job,
    Lead,
    On,
    TestTree,
    TurnTrain,
    lane_of,
)
from lockgate.core.model.gates import (
    CommandGate,
    HumanGate,
    MultipassReviewGate,
    ParallelReviewGate,
    Placement,
    Where,
)
from lockgate.core.model.task import ProjectId, Role, Session, SessionId, Status, TaskId
from lockgate.core.train.model import Built, Commit, Tree
from tests.given import a_session, a_task

P, T = ProjectId("p"), TaskId("t")
JUDGED = Evaluate(T, P, "t:1:0")
ATTENDED = Attend(SessionId("s"), T, P)
TESTED = TestTree(P, "main", Commit("c"), Built(Commit("d"), Tree("e")))
H1 = Host(name="h1")
HUMANS = Placement(serial=True, on=(Where.CHANGE,))


def gate(name: str, on: Where, *needs: str) -> CommandGate:
    return CommandGate(name=name, place=Placement(serial=True, on=(on,)), command="x", needs=needs)


LABELLED = Settings(
    formula="none",
    needs=("arm",),
    gates=(gate("a", Where.CHANGE, "gpu"), gate("b", Where.TRAIN, "fpga"), HumanGate("c", HUMANS)),
)


@pytest.mark.parametrize(
    ("job", "pool"),
    [
        (CarryOut(T, P), Pool.HANDS),
        (ATTENDED, Pool.HANDS),
        (JUDGED, Pool.GATES),
        (Lead(), Pool.LEAD),
        (HostLost(T, P, "h1"), Pool.LEAD),
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


def test_without_a_hub_the_host_that_leads_does_what_others_could() -> None:
    task = replace(a_task(), agent="scripted")

    def needs(job: Job, *, hub: bool) -> str | None:
        return needs_of(job, task, (), hub=hub, leader=H1)

    assert needs(CarryOut(T, P), hub=True) == "agent:scripted"
    assert needs(CarryOut(T, P), hub=False) == "host:h1"
    assert needs(Lead(), hub=False) == "lead"
    assert needs(HostLost(T, P, "h2"), hub=False) == "any"
    assert needs(TurnTrain(P), hub=True) is None
    assert needs_of(CarryOut(T, P), replace(task, host="h2"), (), hub=False, leader=H1) == "host:h2"


@pytest.mark.parametrize(
    ("hub", "hosts", "have"),
    [
        ("ssh://hub", (replace(H1, seen=99.0),), True),
        ("", (replace(H1, seen=99.0),), False),  # the leader's host does it all
        ("ssh://hub", (), False),
        ("ssh://hub", (replace(H1, seen=1.0),), False),  # an orchestrator alone by now
    ],
)
def test_hosts_have_the_agents_of_a_project_with_a_hub(hub, hosts, have) -> None:
    assert hosts_have_agents(hub, hosts, 100.0) is have


def test_a_job_waits_for_the_labels_that_its_project_and_its_gates_need() -> None:
    task = replace(a_task(), agent="scripted", candidate="c")

    def needs(job: Job, *, hub: bool, leader: Host = H1) -> str | None:
        return needs_of(job, task, asked_of_host(job, LABELLED), hub=hub, leader=leader)

    assert needs(CarryOut(T, P), hub=True) == "agent:scripted+arm"
    assert needs(JUDGED, hub=True) == "arm+gpu"
    assert needs(TESTED, hub=True) == "arm+fpga"
    assert needs(Lead(), hub=True) == "lead"
    assert needs(JUDGED, hub=False) == "arm+gpu+host:h1"  # nobody else has the commits
    assert needs(JUDGED, hub=False, leader=replace(H1, labels=("arm", "gpu"))) == "host:h1"


def test_a_task_needs_the_agents_of_its_reviewers_on_its_host() -> None:
    review = ParallelReviewGate(name="review", place=HUMANS, reviewer="codex")
    again = MultipassReviewGate("again", HUMANS, reviewer="gemini")
    usual = ParallelReviewGate(name="usual", place=HUMANS)
    rules = Settings(formula="none", needs=("arm",), gates=(review, again, usual))
    task = replace(a_task(), agent="claude")

    asked = asked_of_host(CarryOut(T, P), rules)

    assert set(asked) == {"arm", "agent:codex", "agent:gemini"}
    needs = needs_of(CarryOut(T, P), task, asked, hub=True, leader=H1)
    assert needs == "agent:claude+agent:codex+agent:gemini+arm"
    assert asked_of_host(JUDGED, rules) == ("arm",)


def test_a_host_is_able_to_do_what_its_labels_cover() -> None:
    assert is_able(replace(H1, labels=("gpu",)), ("gpu",))
    assert not is_able(H1, ("gpu",))
    assert is_able(H1, ())


def test_without_a_hub_a_host_that_only_leads_is_given_no_job_that_it_cannot_do() -> None:
    leads, task = replace(H1, roles=("lead",)), replace(a_task(), agent="scripted")

    needs = needs_of(CarryOut(T, P), task, (), hub=False, leader=leads)

    assert not is_able(leads, ())
    assert needs == "hands+host:h1"
    assert host_in(needs) == ""


def test_what_is_bound_to_a_host_waits_in_its_own_queue_whatever_it_is() -> None:
    assert host_in("host:h1") == "h1"
    assert host_in("gpu") == ""
    assert queue_of(Pool.GATES, "host:h1") == "lockgate-own-host:h1"
    assert queue_of(Pool.GATES, "gpu") == "lockgate-gates-gpu"


def test_a_host_serves_its_own_queue_and_the_classes_that_its_labels_cover() -> None:
    host = Host(name="h1", labels=("gpu",), roles=("hands", "lead"))

    served = queues_of(host, ("gpu", "arm", "any", "host:h2", "host:h1", "lead"))

    assert [it.name for it in served] == [
        "lockgate-lead-lead",
        "lockgate-lead-any",
        "lockgate-own-host:h1",
        "lockgate-hands-any",
        "lockgate-gates-any",
        "lockgate-hands-gpu",
        "lockgate-gates-gpu",
    ]


def test_a_host_that_only_leads_or_only_answers_does_no_jobs() -> None:
    leads = queues_of(Host(name="h1", roles=("lead",)), ())
    assert leads[0] == Queue("lockgate-lead-lead", Pool.LEAD)
    assert {it.pool for it in leads} == {Pool.LEAD}
    assert queues_of(Host(name="h1", roles=("api",)), ()) == ()


def test_a_job_that_several_hosts_can_do_is_given_to_two_of_them_within_a_beat() -> None:
    times = Shared(beat=8.0)

    assert times.silence(bound=False) * 2 <= times.beat
    assert times.silence(bound=True) == times.beat


@pytest.mark.parametrize(
    ("own", "times", "why"),
    [
        ({}, {}, ""),
        ({"labels": ("gpu", "agent:mine")}, {}, ""),
        ({"name": "a b"}, {}, "is no name"),
        ({"labels": ("gpu+arm",)}, {}, "is no name"),
        ({"labels": ("lead",)}, {}, "is a word of Lockgate's own"),
        ({"roles": ()}, {}, "roles is empty"),
        ({"slots": -1}, {}, "less than 0"),
        ({"judges": -1}, {}, "less than 0"),
        ({}, {"beat": 0.0}, "beat must be"),
        ({}, {"snapshot_every": -1.0}, "snapshot_every cannot"),
        ({}, {"sessions_lost_after": 5.0}, "beat must be"),
    ],
)
def test_a_host_that_cannot_be_set_up_so_says_why(own, times, why) -> None:
    settings = FleetSettings(host=OwnFacts(**{"name": "h1", **own}), fleet=Shared(**times))

    found = problem_in(settings)

    assert why in found
    assert bool(found) is bool(why)


TOKEN = "of a claim"


def claimed(job: Job, host: str = "", **more) -> LaneRow:
    values = {"needs": "any", "epoch": 1, "asked": 90.0, "until": 0.0, "why": "", **more}
    return LaneRow(lane=lane_of(job), job=job, host=host, token="", since=0.0, **values)


def test_people_see_who_leads_what_runs_where_and_why_something_waits() -> None:
    hosts = [Host(name="h1", roles=tuple(HostRole), seen=98.0), Host(name="h2", seen=200.0)]
    rows = [
        claimed(Lead(), "h1", needs=LEAD, epoch=3),
        claimed(ATTENDED, "h1"),
        claimed(JUDGED, "h2"),
        claimed(CarryOut(T, P), needs="gpu"),
        claimed(TurnTrain(P), "h2", until=120.0, why="the hub is down"),
    ]

    seen = seen_by(hosts, rows, 100.0)

    assert (seen.leader, seen.epoch, seen.led, seen.oldest) == ("h1", 3, 100.0, 10.0)
    assert [(it.agents, it.gates, it.leads, it.silent) for it in seen.hosts] == [
        (1, 0, True, 2.0),
        (0, 1, False, 0.0),
    ]
    assert [(it.lane, it.since, it.why) for it in seen.jobs] == [
        ("task t", 10.0, "waits: no host has gpu"),
        ("train of p", 10.0, "the hub is down"),
    ]


@pytest.mark.parametrize(
    ("needs", "h1", "why"),
    [
        ("gpu", {"seen": 99.0}, ""),
        ("gpu", {"seen": 80.0}, "waits: host h1, which had it, is silent"),
        ("gpu", {"seen": 99.0, "state": HostState.GONE}, "waits: host h1, which had it, is gone"),
        ("any", {"seen": 80.0}, ""),  # h2 goes on with it
        ("host:h1", {"seen": 80.0}, "waits: host h1, which had it, is silent"),
    ],
)
def test_a_job_of_a_host_that_is_silent_waits_where_no_other_can_do_it(needs, h1, why) -> None:
    hosts = (Host(name="h1", labels=("gpu",), **h1), Host(name="h2", seen=99.0))
    row = replace(claimed(JUDGED, "h1", needs=needs), token=TOKEN)

    assert why_held(row, hosts, 100.0) == why
    assert [it.why for it in seen_by(hosts, (row,), 100.0).jobs] == [why] * bool(why)
    assert why_held(replace(row, token=""), hosts, 100.0) == ""
    assert why_held(replace(row, host="h3"), (), 100.0) == "waits: host h3, which had it, is gone"


def test_keeping_what_an_agent_does_takes_a_twentieth_of_the_time_at_most() -> None:
    assert next_snapshot(took=1.0, every=60.0) == 60.0
    assert next_snapshot(took=10.0, every=60.0) == 190.0


@pytest.mark.parametrize(
    ("session", "works"),
    [
        (a_session(), True),
        (a_session(generation=2), False),
        (a_session(ended=1.0), False),
        (a_session(Role.REVIEWER), False),
    ],
    ids=["its worker", "one before it", "one that has ended", "a reviewer"],
)
def test_what_is_in_a_clone_is_the_work_of_the_newest_worker_alone(session, works) -> None:
    assert is_at_work(session, a_task(Status.WORKING, generation=3)) == works


def test_a_host_that_was_seen_a_moment_ago_is_at_work() -> None:
    gone = Host(name="h1", state=HostState.GONE, seen=100.0)
    silent = Host(name="h2", seen=80.0)
    there = Host(name="h3", seen=95.0)

    assert host_at_work((gone, silent, there), 100.0) == "host h3 of a fleet"
    assert host_at_work((gone, silent), 100.0) == ""


def test_what_is_wrong_with_hosts_is_said() -> None:
    leads = (claimed(Lead(), "h1", needs=LEAD),)
    fine = (Host(name="h1", version="1", seen=99.0), Host(name="h2", version="1", seen=99.0))
    odd = (
        Host(name="h1", version="2", seen=99.0, ahead=-60.0),
        Host(name="h2", version="1", seen=9.0),
    )

    assert trouble_among(seen_by(fine, leads, 100.0)) == ()
    assert trouble_among(seen_by(odd, (), 100.0)) == (
        "versions differ: 1, 2",
        "h2 was not seen for long (lockgate fleet forget HOST)",
        clock_trouble("h1", -60.0),
        "nobody leads (lockgate worker --role lead)",
    )


@pytest.mark.parametrize(
    ("argv", "task"),
    [
        (("task", "peek", "fix"), ("fix", Needed.SESSION)),
        (("task", "peek", "--lines", "5", "--session=1", "fix"), ("fix", Needed.SESSION)),
        (("task", "attach", "fix"), ("fix", Needed.SESSION)),
        (("--json", "diff", "fix", "--stat"), ("fix", Needed.CHANGE)),
        (("handback", "-m", "done by hand", "fix"), ("fix", Needed.CLONE)),
        (("shell", "fix", "--", "ls"), ("fix", Needed.CLONE)),
        (("task", "peek"), None),
        (("task", "show", "fix"), None),
        ((), None),
    ],
)
def test_some_commands_need_the_files_of_a_task(argv, task) -> None:
    assert task_with_files(argv) == task


FILES_AT = (Host(name="h1"), Host(name="h2"), Host(name="h3"))


def at(argv: str, host: str, candidate: str = "", *sessions: Session) -> str:
    task = replace(a_task(), host=host, candidate=candidate)
    found = host_with_files(argv.split(), task, sessions, FILES_AT)
    return found.name if found else ""


def test_work_that_was_not_handed_in_is_on_one_host_alone() -> None:
    assert at("diff fix", "h1") == at("handback fix", "h1", "c") == "h1"
    assert at("diff fix", "h1", "c") == at("diff fix", "h9") == at("status", "h1") == ""


def test_files_on_another_host_are_got_at_by_what_that_host_has() -> None:
    asked = Asked("no change is shown", "diff fix", "/t/fix/review")
    by_ssh, by_api = Host(name="h1", ssh="me@h1"), Host(name="h1", api="https://h1")

    assert ways_to(by_ssh, asked) == "ssh -t me@h1 lockgate diff fix"
    assert ways_to(by_api, asked) == (
        "open https://h1/t/fix/review, or log in there, on a laptop: lockgate login https://h1"
    )
    assert ways_to(by_api, Asked("it was not handed back", "handback fix")) == (
        "log in there, on a laptop: lockgate login https://h1"
    )
    assert ways_to(Host(name="h1"), asked) == "on host h1: lockgate diff fix"


def test_what_an_agent_has_said_is_on_the_host_of_its_session() -> None:
    one, two = (
        replace(a_session(), id=SessionId(f"{a_task().id}.{number}"), host=f"h{number}")
        for number in (1, 2)
    )

    assert at("task peek fix", "h3", "c", one, two) == "h2"
    assert at("task peek fix --session 1", "h3", "", one, two) == "h1"
    assert at(f"task peek fix --session={one.id}", "h3", "", one, two) == "h1"
    assert at("task peek fix --session 9", "h3", "", one, two) == "h3"
    assert at("task attach fix", "h3") == "h3"
    assert at("task attach fix", "h3", "", replace(one, host="")) == "h3"


def test_where_nobody_leads_that_is_seen() -> None:
    seen = seen_by((), (), 1.0)

    assert (seen.leader, seen.epoch, seen.hosts, seen.jobs) == ("", 0, (), ())
    assert (seen.led, seen.oldest) == (0.0, 0.0)


def test_a_job_that_rests_is_not_the_oldest_that_waits() -> None:
    rests = claimed(TurnTrain(P), until=120.0, asked=10.0)

    assert seen_by((), (rests, claimed(JUDGED)), 100.0).oldest == 10.0


@pytest.mark.parametrize(
    ("labels", "hub", "why"),
    [
        (("arm", "gpu", "fpga"), True, ()),
        (("arm", "gpu"), True, ("no host has arm and fpga",)),
        ((), True, ("no host has arm", "no host has arm and gpu", "no host has arm and fpga")),
        (("arm", "gpu", "fpga"), False, ("no host has arm",)),
    ],
)
def test_labels_that_no_host_has_are_known_before_a_job_asks_for_them(labels, hub, why) -> None:
    hosts = (H1, Host(name="h2", labels=labels))
    seen = seen_by(hosts, (claimed(Lead(), "h1", needs=LEAD),), 100.0)

    found = labels_lacking(LABELLED, seen, hub=hub)

    assert found[: len(why)] == why
    assert bool(found) is bool(why)
    assert labels_lacking(Settings(formula="none", gates=()), seen, hub=hub) == ()
