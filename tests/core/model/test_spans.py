"""A task's events as spans: ids that follow from the task, each span inside of another."""

import pytest

from lockgate.core.model.facts import FIRST_PREV, StoredEvent
from lockgate.core.model.spans import UNTRACED, Story, ended_after, told_by
from lockgate.core.model.task import TaskId


def event(seq: int, type: str, **data: object) -> StoredEvent:
    return StoredEvent(
        seq=seq, time=100.0 + seq, task=TaskId("t"), type=type, prev=FIRST_PREV, data=data
    )


def moved(seq: int, to: str) -> StoredEvent:
    return event(seq, "status.changed", **{"from": "PENDING", "to": to})


LIFE = [
    event(1, "task.created"),
    moved(2, "WORKING"),
    event(3, "session.started", session="s1"),
    event(4, "session.ended", session="s1", agent="a", tokens=7, usd=0.5, role="worker"),
    event(5, "GateFailedRetrying"),
    event(6, "session.ended", session="s2", crashed=True),
    moved(7, "WORKING"),
    event(8, "AllGatesPassed"),
    moved(9, "REVIEWING"),
    event(10, "change.landed"),
    moved(11, "DONE"),
]


def test_each_span_has_its_place_and_its_time() -> None:
    spans = list(ended_after(0, LIFE))

    found = {it.at.id: it for it in spans}
    told = [
        (it.name, found[it.parent].name if it.parent else "", it.start, it.end, it.failed)
        for it in spans
    ]
    iteration, session = "lockgate.iteration", "lockgate.session"
    assert told == [
        (session, iteration, 103, 104, False),
        (iteration, "lockgate.task", 102, 105, True),
        (session, iteration, 106, 106, True),
        (iteration, "lockgate.task", 105, 108, False),
        ("lockgate.landing", "lockgate.task", 109, 110, False),
        ("lockgate.task", "", 101, 111, False),
    ]
    assert dict(spans[0].facts) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "a",
        "gen_ai.usage.total_tokens": 7,
        "gen_ai.usage.cost_usd": 0.5,
        "lockgate.role": "worker",
    }


def test_only_what_ended_since_is_told_and_with_the_same_ids() -> None:
    assert list(ended_after(9, LIFE)) == list(ended_after(0, LIFE))[-2:]


@pytest.mark.parametrize("to", ["CANCELLED", "DONE"])
def test_an_iteration_that_the_end_of_its_task_cut_short_ends_with_it(to: str) -> None:
    spans = list(ended_after(0, [*LIFE[:2], moved(3, to)]))

    assert [(it.name, it.failed) for it in spans] == [
        ("lockgate.iteration", True),
        ("lockgate.task", to == "CANCELLED"),
    ]


def test_a_landing_that_nobody_was_ready_for_takes_no_time() -> None:
    [span] = ended_after(0, [event(1, "landing.unjudged")])

    assert (span.start, span.end) == (101, 101)


def test_a_program_is_told_the_span_that_will_be_told_of_it() -> None:
    before = told_by(LIFE[:3])
    [session] = ended_after(3, LIFE[:4])

    assert before.session("s1") == session.at
    assert before.iteration.id == session.parent
    assert dict(session.at.environment) == {
        "TRACEPARENT": f"00-{session.at.trace}-{session.at.id}-01"
    }
    assert len(session.at.trace) == 32
    assert len(session.at.id) == 16


def test_what_is_untraced_has_no_spans_and_tells_nobody() -> None:
    assert UNTRACED.inside("x") == UNTRACED
    assert dict(UNTRACED.environment) == {}
    assert Story().iteration == UNTRACED
