"""Lanes on disk: one job each, one claim that counts, and nothing from who lost it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.adapters.store import job_forms, open_store
from lockgate.adapters.store.database import copied, put_in
from lockgate.adapters.store.fenced import FencedDatabase
from lockgate.adapters.store.hosts import SqlHosts
from lockgate.adapters.store.job_forms import UnknownForm, job_from_json, job_to_json
from lockgate.adapters.store.json_forms import Fields
from lockgate.adapters.store.lanes import SqlLanes
from lockgate.adapters.store.sql_store import SqlStore
from lockgate.core.hosts import Host, HostState
from lockgate.core.jobs import CarryOut, Evaluate, Job, Lead, lane_of
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.task import ProjectId, Status, TaskId
from lockgate.errors import Fenced, Unavailable
from tests.store.conftest import Place
from tests.store.samples import PROJECT, a_session, a_task

JOB = CarryOut(TaskId("t1"), ProjectId("p1"))
LANE = lane_of(JOB)
NEXT = Evaluate(TaskId("t1"), ProjectId("p1"), "t1:1:0")


@pytest.fixture
def store(migrated_place: Place) -> Generator[SqlStore]:
    opened = open_store(migrated_place.location)
    opened.add_project(PROJECT)
    yield opened
    opened.close()


@pytest.fixture
def lanes(store: SqlStore) -> SqlLanes:
    return SqlLanes(store.database)


def test_a_lane_takes_one_job_until_that_is_done(lanes: SqlLanes) -> None:
    assert lanes.ask(JOB, "agent:claude+gpu", 5.0)
    assert not lanes.ask(JOB, "any", 6.0)
    assert lanes.ask(NEXT, "any", 7.0)  # another lane
    waiting, _ = lanes.rows()
    assert (waiting.job, waiting.needs, waiting.epoch, waiting.asked) == (
        JOB,
        "agent:claude+gpu",
        0,
        5.0,
    )

    claimed = lanes.claim(LANE, "h1", "first", 8.0)
    assert claimed is not None
    assert (claimed.epoch, claimed.token, claimed.host, claimed.since) == (1, "first", "h1", 8.0)
    assert not lanes.ask(JOB, "any", 9.0)

    lanes.done(LANE, "first")
    assert lanes.claim(LANE, "h2", "late", 9.0) is None  # it was answered
    assert lanes.ask(JOB, "any", 9.0)


def test_who_claims_last_has_it_alone(lanes: SqlLanes) -> None:
    lanes.ask(JOB, "any", 1.0)
    lanes.claim(LANE, "h1", "first", 2.0)
    taken = lanes.claim(LANE, "h2", "second", 3.0)

    assert taken is not None
    assert (taken.epoch, taken.host) == (2, "h2")
    with pytest.raises(Fenced, match="task t1"):
        lanes.done(LANE, "first")
    with pytest.raises(Fenced):
        lanes.rest(LANE, "first", 9.0, "waits for a slot")
    lanes.done(LANE, "second")
    assert lanes.rows() == ()


def test_a_lane_that_rests_says_why_and_takes_the_next_job(lanes: SqlLanes) -> None:
    lanes.ask(JOB, "any", 1.0)
    lanes.claim(LANE, "h1", "first", 2.0)
    lanes.rest(LANE, "first", 60.0, "waits for a slot")

    [resting] = lanes.rows()
    assert (resting.until, resting.why, resting.host) == (60.0, "waits for a slot", "h1")
    assert lanes.unclaimed(100.0) == ()
    assert lanes.claim(LANE, "h2", "late", 3.0) is None  # a second delivery of what was answered
    with pytest.raises(Fenced):
        lanes.done(LANE, "first")

    assert lanes.ask(JOB, "gpu", 60.0)
    [again] = lanes.unclaimed(61.0)
    assert (again.needs, again.until, again.why, again.host) == ("gpu", 0.0, "", "")
    taken = lanes.claim(LANE, "h2", "second", 61.0)
    assert taken is not None
    assert taken.epoch == 2


def test_what_nobody_has_claimed_in_time_is_put_again(lanes: SqlLanes) -> None:
    lanes.ask(JOB, "any", 1.0)
    lanes.ask(NEXT, "any", 2.0)
    lanes.ask(Lead(), "lead", 8.0)
    lanes.claim(LANE, "h1", "first", 3.0)

    assert [it.job for it in lanes.unclaimed(5.0)] == [NEXT]


def test_lanes_are_found_by_their_name_and_what_they_need(lanes: SqlLanes) -> None:
    lanes.ask(JOB, "gpu", 1.0)
    lanes.ask(NEXT, "any", 2.0)
    lanes.ask(Lead(), "any", 3.0)
    lanes.claim(LANE, "h1", "first", 4.0)

    found = lanes.find("lead")
    assert found is not None
    assert found.job == Lead()
    assert lanes.find("lead of nobody") is None
    assert lanes.classes() == {"gpu", "any"}


def test_a_job_that_was_called_off_has_no_claim_any_more(lanes: SqlLanes) -> None:
    lanes.ask(JOB, "any", 1.0)
    lanes.claim(LANE, "h1", "first", 2.0)

    lanes.call_off(LANE)
    lanes.call_off(LANE)

    assert lanes.rows() == ()
    with pytest.raises(Fenced):
        lanes.done(LANE, "first")


def test_a_job_of_a_newer_program_is_handed_back_and_keeps_no_other_from_going_on(
    lanes: SqlLanes, migrated_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes.ask(NEXT, "any", 1.0)
    monkeypatch.setattr(job_forms, "FORM", 4)
    lanes.ask(JOB, "any", 2.0)
    monkeypatch.undo()

    with pytest.raises(UnknownForm, match="form 3 and this lockgate reads forms 0 to 2") as refused:
        lanes.claim(LANE, "h1", "first", 3.0)
    assert "same version" in refused.value.fix
    found = migrated_place.execute("SELECT token, epoch, why FROM lanes WHERE lane = 'task t1'")
    assert [tuple(it) for it in found] == [
        (
            "",
            0,
            "host h1 cannot do it: it is written in form 3 and this lockgate reads forms 0 to 2",
        )
    ]
    assert [it.job for it in lanes.rows()] == [NEXT]
    assert [*lanes.set_aside()] == [LANE]

    monkeypatch.setattr(job_forms, "FORM", 4)
    claimed = lanes.claim(LANE, "h2", "second", 3.0)
    assert claimed is not None
    assert claimed.job == JOB


def test_a_row_that_nobody_can_read_is_set_aside_with_its_why(
    lanes: SqlLanes, migrated_place: Place
) -> None:
    for n, job in enumerate(
        ("", '{"form": 1, "kind": "dance"}', '{"form": 1, "kind": "evaluate"}')
    ):
        migrated_place.execute(
            f"INSERT INTO lanes (lane, job, class, asked) VALUES ('l{n}', '{job}', 'any', 1)"  # noqa: S608
        )
    lanes.ask(JOB, "any", 2.0)

    assert [it.job for it in lanes.rows()] == [JOB]
    aside = lanes.set_aside()
    assert [*aside] == ["l0", "l1", "l2"]
    assert "no kind of job 'dance'" in aside["l1"]
    assert "missing required field" in aside["l2"]
    with pytest.raises(Unavailable):
        lanes.claim("l1", "h1", "first", 3.0)


@pytest.mark.parametrize(("writes", "reads"), [(-1, 0), (0, 0), (0, -1)])
def test_a_job_of_one_release_is_read_by_the_releases_beside_it(
    monkeypatch: pytest.MonkeyPatch, writes: int, reads: int
) -> None:
    now = job_forms.FORM
    monkeypatch.setattr(job_forms, "FORM", now + writes)
    written = job_to_json(JOB)
    monkeypatch.setattr(job_forms, "FORM", now + reads)

    assert job_from_json(LANE, Fields("it", {"job": written})) == JOB


@given(st.from_type(Job))  # type: ignore[arg-type]  # a union
def test_every_job_is_read_as_it_was_written(job: Job) -> None:
    assert job_from_json("it", Fields("it", {"job": job_to_json(job)})) == job


def test_a_copy_of_the_database_has_no_claim_and_no_host(store: SqlStore, lanes: SqlLanes) -> None:
    lanes.ask(JOB, "any", 1.0)
    lanes.claim(LANE, "h1", "first", 2.0)
    SqlHosts(store.database).put(Host(name="h1"))

    copy = copied(store.database)
    put_in(store.database, copy)

    assert not {"lanes", "hosts"} & set(copy)
    assert lanes.rows() == ()
    with pytest.raises(Fenced):
        lanes.done(LANE, "first")


def test_a_host_has_at_work_its_agents_and_the_tasks_whose_agents_begin(store: SqlStore) -> None:
    begins: dict[str, object] = {"status": Status.WORKING, "host": "h1"}
    there: dict[str, dict[str, object]] = {
        "begins": begins,
        "rests": {**begins, "not_before": 90.0},  # until a usage limit ends
        "dead": {**begins, "dead": True},
        "waits": {"status": Status.REVIEWING, "host": "h1"},
        "elsewhere": {**begins, "host": "h2"},
    }
    for id, fields in there.items():
        store.create(Decision(a_task(id, **fields)))
    task = a_task("runs", **begins)
    store.create(Decision(task, session=a_session(task, host="h1")))
    judged = a_task("judged", status=Status.AGENT_REVIEW, host="h1")
    store.create(Decision(judged, session=a_session(judged, "s2", host="h1")))
    hosts = SqlHosts(store.database)

    assert [hosts.at_work(it, 50.0) for it in ("h1", "h2", "h3")] == [3, 1, 0]
    assert hosts.at_work("h1", 90.0) == 4


def test_hosts_are_known_by_name_until_they_are_forgotten(store: SqlStore) -> None:
    hosts = SqlHosts(store.database)
    one = Host(
        name="h1",
        labels=("gpu", "linux-arm"),
        agents=("claude",),
        roles=("hands", "lead"),
        slots=4,
        judges=2,
        boot="b1",
        version="1.2",
        ssh="me@h1",
        api="https://h1",
        seen=5.0,
        ahead=-3600.25,
    )
    assert hosts.put(one)
    assert hosts.put(Host(name="h0"))

    assert hosts.find("h1") == one
    assert [it.name for it in hosts.all()] == ["h0", "h1"]
    assert hosts.seen(one, 9.0, ahead=7.5) is HostState.UP
    assert [it.ahead for it in hosts.all()] == [0.0, 7.5]
    assert hosts.mark("h1", HostState.DRAINING, "its disk is full")
    assert hosts.seen(one, 10.0) is HostState.DRAINING
    assert hosts.put(replace(one, state=HostState.DRAINING, seen=10.0), hosts.find("h1"))
    assert [it.why for it in hosts.all()] == ["", "its disk is full"]
    found = hosts.find("h1")
    assert found is not None
    assert found.seen == 10.0

    assert hosts.equip("h1", ("claude", "codex"))
    assert not hosts.equip("h9", ())
    assert [it.agents for it in hosts.all()] == [(), ("claude", "codex")]

    assert hosts.forget("h1")
    assert not hosts.forget("h1")
    assert not hosts.mark("h1", HostState.UP)
    assert hosts.seen(one, 11.0) is None
    assert hosts.find("h1") is None


def test_of_two_machines_that_ask_for_one_name_at_once_one_gets_it(store: SqlStore) -> None:
    hosts = SqlHosts(store.database)
    first, second = Host(name="h1", boot="b1", seen=5.0), Host(name="h1", boot="b2", seen=5.0)

    assert hosts.put(first)  # neither has found one of this name
    assert not hosts.put(second)
    assert hosts.find("h1") == first

    known = hosts.find("h1")
    hosts.seen(first, 21.0)  # it was silent, and is there again
    assert not hosts.put(replace(second, seen=21.0), known)
    assert hosts.put(replace(second, seen=40.0), hosts.find("h1"))


def test_a_drain_that_comes_while_a_host_starts_is_kept(store: SqlStore) -> None:
    hosts, one = SqlHosts(store.database), Host(name="h1", boot="b1", seen=5.0)
    hosts.put(one)
    known = hosts.find("h1")
    hosts.mark("h1", HostState.DRAINING)

    assert not hosts.put(replace(one, seen=6.0), known)
    assert hosts.seen(one, 7.0) is HostState.DRAINING


def test_a_host_that_lost_its_name_to_another_machine_does_not_count_as_seen(
    store: SqlStore,
) -> None:
    hosts = SqlHosts(store.database)
    first, second = Host(name="h1", boot="b1", seen=5.0), Host(name="h1", boot="b2", seen=40.0)
    hosts.put(first)
    assert hosts.put(second, hosts.find("h1"))

    assert hosts.seen(first, 41.0, 3, 9.0) is None

    assert hosts.find("h1") == second


# --- clocks that differ -------------------------------------------------------------------------


def test_a_machine_whose_clock_is_wrong_has_the_time_of_the_database(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, migrated_place: Place
) -> None:
    """A database in a file has no clock but that of its machine."""
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + 3600.0)
    wrong = 3600.0 if migrated_place.dialect == "sqlite" else 0.0

    fenced = FencedDatabase(store.database, LANE, "first")

    assert abs(store.database.now() - right() - wrong) < 60.0
    assert abs(fenced.now() - store.database.now()) < 60.0


# --- a holder that is frozen in the middle of a transaction -------------------------------------


@pytest.mark.postgres
@pytest.mark.parametrize("migrated_place", ["postgres"], indirect=True)
@pytest.mark.parametrize("limit", [1.0, pytest.param(5.0, marks=pytest.mark.slow)])
def test_a_claim_passes_a_transaction_that_is_frozen_and_what_that_says_late_is_refused(
    store: SqlStore, lanes: SqlLanes, migrated_place: Place, limit: float
) -> None:
    lanes.ask(JOB, "any", 1.0)
    lanes.claim(LANE, "h1", "first", 2.0)
    argv = [sys.executable, "-m", "tests.store.frozen_client", migrated_place.location]
    argv += ["after_an_answer", str(limit), "write", LANE, "first"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as frozen:
        try:
            os.waitpid(frozen.pid, os.WUNTRACED)
            begin = time.monotonic()
            claimed = lanes.claim(LANE, "h2", "second", 3.0)
            took = time.monotonic() - begin
            frozen.send_signal(signal.SIGCONT)
            told, _ = frozen.communicate(timeout=30)
        finally:
            frozen.kill()

    assert claimed is not None
    assert claimed.epoch == 2
    assert took < limit + 1
    assert told == "refused\n"
