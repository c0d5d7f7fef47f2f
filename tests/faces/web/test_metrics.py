"""Figures for Prometheus: every family of a home, in its text format, and no task in them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.events import Event, GateCompleted, StatusChanged
from lockgate.core.model.task import Actor, Cause, Status, Task
from tests.faces.test_hosts import with_fleet
from tests.faces.web.home import a_home, a_shop
from tests.faces.web.serving import Board, serving

FAMILIES = {
    "tasks": "gauge",
    "needs": "gauge",
    "oldest_need_seconds": "gauge",
    "sessions_alive": "gauge",
    "events_total": "counter",
    "gate_results_total": "counter",
    "gate_seconds": "histogram",
    "landed_total": "counter",
    "dropped_total": "counter",
    "queue_length": "gauge",
    "cost_usd_total": "counter",
    "tokens_total": "counter",
}
LINE = re.compile(r'(lockgate_\w+)(\{\w+="[^"]*"(,\w+="[^"]*")*\})? (-?[\d.]+)')


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Board]:
    home = a_home(tmp_path)
    with serving(home) as served:
        yield served
    home.app.close()


def figures(board: Board) -> dict[str, float]:
    answer = board.get("/metrics")
    assert answer.status == 200
    lines = [it for it in answer.text.splitlines() if not it.startswith("#")]
    found = [LINE.fullmatch(it) for it in lines]
    assert all(found), lines
    return {f"{it[1]}{it[2] or ''}": float(it[4]) for it in found if it}


def told(board: Board, task: Task, *events: Event) -> None:
    store = board.home.app.store
    found = store.load(task.id)
    store.commit(Decision(replace(found, rev=found.rev + 1), events, ()))


def test_every_family_is_there_with_its_kind_and_no_task_is_a_label(board: Board) -> None:
    text = board.get("/metrics").text
    ids = [it.id for it in board.home.app.boards.board().rows]

    kinds = dict(re.findall(r"# TYPE lockgate_(\w+) (\w+)", text))

    assert kinds == FAMILIES
    assert figures(board)['lockgate_needs{kind="approve"}'] == 1
    assert [it for it in ids if it in text] == []


def test_the_seconds_of_gates_are_a_histogram_that_grows(own: Board) -> None:
    task = own.home.started("a", "A")
    for seconds in (0.4, 3.0, 7000.0):
        told(own, task, GateCompleted(task.id, "tests", "passed", "", seconds, 1))

    found = figures(own)

    name = "lockgate_gate_seconds"
    assert found[f'{name}_bucket{{gate="tests",le="1"}}'] == 1
    assert found[f'{name}_bucket{{gate="tests",le="4"}}'] == 2
    assert found[f'{name}_bucket{{gate="tests",le="4096"}}'] == 2
    assert found[f'{name}_bucket{{gate="tests",le="+Inf"}}'] == 3
    assert found[f'{name}_count{{gate="tests"}}'] == 3
    assert found[f'{name}_sum{{gate="tests"}}'] == pytest.approx(7003.4)
    told(own, task, GateCompleted(task.id, "tests", "passed", "", 1.5, 1))
    assert figures(own)[f'{name}_bucket{{gate="tests",le="2"}}'] == 2


def test_what_did_not_land_is_counted_by_its_reason(own: Board) -> None:
    task = own.home.started("a", "A")
    moved = StatusChanged(
        source=Status.REVIEWING,
        target=Status.WORKING,
        actor=Actor.ORCHESTRATOR,
        cause=Cause.DROPPED_FROM_TRAIN,
        reason="",
    )
    told(own, task, moved)
    own.home.put(own.home.load(task.id), Status.CANCELLED)

    found = figures(own)

    assert found['lockgate_dropped_total{reason="cancelled"}'] == 1
    assert found['lockgate_dropped_total{reason="merge queue"}'] == 1


def test_the_length_of_the_merge_queues_is_told_by_standing(tmp_path: Path) -> None:
    home = a_shop(tmp_path)
    with serving(home) as board:
        found = figures(board)
        assert {k: n for k, n in found.items() if "queue_length" in k} == {
            'lockgate_queue_length{standing="held"}': 1
        }
    home.app.close()


def test_a_fleet_has_its_hosts_the_leaders_age_and_the_oldest_job_that_waits(own: Board) -> None:
    alone = own.get("/metrics").text
    with_fleet(own.home.app)

    found = figures(own)

    assert "lockgate_hosts" not in alone
    assert found['lockgate_hosts{state="up"}'] == found['lockgate_hosts{state="draining"}'] == 1
    assert found['lockgate_host_silent_seconds{host="h1"}'] == 0
    assert found["lockgate_leader_seconds"] > 1000
    assert found["lockgate_oldest_job_seconds"] > 1000
    assert found['lockgate_refused_answers_total{host="h1"}'] == 0
