"""Events as they leave the program: the sources' names and keys, and the chain they are in."""

import json
from typing import get_args

import pytest
from msgspec.structs import replace

from lockgate.core.model.events import (
    TYPES,
    AgentCrashed,
    AutoAdvanced,
    Escalation,
    Event,
    GateFailedRetrying,
    StatusChanged,
    payload,
    type_of,
)
from lockgate.core.model.facts import FIRST_PREV, StoredEvent, event_hash, event_line
from lockgate.core.model.task import Actor, Cause, Status
from tests.given import FEEDBACK, ID, NOW

S = Status


def test_every_event_has_a_type_of_its_own() -> None:
    assert set(TYPES) == set(get_args(Event))
    assert len(set(TYPES.values())) == len(TYPES)


@pytest.mark.req("R95")
def test_an_auto_advance_is_told_as_s2_tells_it() -> None:
    event = AutoAdvanced(S.WORKING, S.AGENT_REVIEW, "done")

    assert type_of(event) == "auto.advanced"
    assert payload(event) == {"from": "WORKING", "to": "AGENT_REVIEW", "reason": "done"}


@pytest.mark.req("R101")
def test_a_crash_is_told_as_s2_tells_it() -> None:
    event = AgentCrashed(timestamp="t", status=S.WORKING, crash_count=1, reason="no ## Handoff")

    assert type_of(event) == "agent.crashed"
    assert payload(event) == {
        "timestamp": "t",
        "status": "WORKING",
        "crash_count": 1,
        "reason": "no ## Handoff",
    }


@pytest.mark.req("R186")
def test_an_escalation_is_told_as_s4_tells_it() -> None:
    event = Escalation(ID, 5)

    assert type_of(event) == "escalation"
    assert payload(event) == {
        "taskId": ID,
        "attemptCount": 5,
        "state": "PAUSED_FOR_INTERVENTION",
    }


def test_a_failed_gate_carries_its_feedback_as_plain_data() -> None:
    event = GateFailedRetrying(task_id=ID, gate_name="tests", feedback=FEEDBACK, iteration=1)

    data = json.loads(json.dumps(payload(event)))

    assert data["task_id"] == ID
    assert data["feedback"]["findings"][0]["priority"] == "P0"


def test_a_change_of_status_says_who_and_why() -> None:
    event = StatusChanged(
        source=S.WORKING,
        target=S.STUCK,
        actor=Actor.ORCHESTRATOR,
        cause=Cause.BUDGET,
        reason="5.02 of 5.00 USD",
    )

    assert payload(event)["cause"] == "budget"
    assert payload(event)["to"] == "STUCK"


def test_a_line_of_the_log_has_the_public_keys_in_order() -> None:
    event = StoredEvent(
        seq=1, time=NOW, task=ID, type="x", prev=FIRST_PREV, data={"b": 1, "a": "é"}
    )

    assert list(json.loads(event_line(event))) == ["seq", "time", "task", "type", "prev", "data"]
    assert event_line(event).endswith('"data":{"a":"é","b":1}}')


def test_any_change_to_an_event_changes_its_hash() -> None:
    event = StoredEvent(seq=1, time=NOW, task=ID, type="x", prev=FIRST_PREV, data={})

    others = (
        replace(event, seq=2),
        replace(event, time=NOW + 1),
        replace(event, type="y"),
        replace(event, prev="1" * 64),
        replace(event, data={"a": None}),
    )
    assert len({event_hash(it) for it in (event, *others)}) == 6
