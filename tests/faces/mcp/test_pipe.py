"""What the pipe keeps for its client, so that another server can take over in the middle."""

import json
from typing import Any

from lockgate.faces.mcp.answers import MOST, fits, fitted, plain
from lockgate.faces.pipe import LONGEST, Client, Lines

HELLO = {"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
READY = {"method": "notifications/initialized"}


def call(id: int, name: str) -> dict[str, Any]:
    return {"id": id, "method": "tools/call", "params": {"name": name}}


def said(*messages: dict[str, Any]) -> Client:
    client = Client()
    for it in messages:
        client.says(it)
    return client


def test_another_server_hears_who_the_client_is_and_what_it_waits_for() -> None:
    subscribe = {"id": 3, "method": "resources/subscribe", "params": {"uri": "lockgate://board"}}
    client = said(HELLO, READY, subscribe, call(4, "why"), call(5, "list_tasks"))
    for answered in (0, 3, 4):
        assert client.hears({"id": answered, "result": {}})

    again = client.again()

    assert [it["method"] for it in again] == [
        *("initialize", "notifications/initialized", "resources/subscribe", "tools/call")
    ]
    assert again[-1] == call(5, "list_tasks")
    ours = [it["id"] for it in again[:3] if "id" in it]
    assert not any(client.hears({"id": id, "result": {}}) for id in ours)
    changed: Any = client.changed()
    assert [it["params"]["uri"] for it in changed] == ["lockgate://board"]


def test_a_first_message_without_an_answer_is_sent_as_it_was() -> None:
    assert said(HELLO).again() == [HELLO]


def test_what_may_have_been_done_is_not_done_twice() -> None:
    """Of what changes something the client is told that nobody knows; the rest is asked again."""
    client = said(call(1, "create_task"), call(2, "list_tasks"), {"id": 3, "method": "tools/list"})

    told: Any = client.give_up()

    assert [it["id"] for it in told] == [1]
    assert told[0]["result"]["isError"] is True
    assert set(told[0]["result"]["structuredContent"]) == {"what", "why", "fix"}
    assert [it["id"] for it in client.again()] == [2, 3]


def test_without_a_server_everything_is_answered() -> None:
    client = said(HELLO, call(1, "create_task"))

    told: Any = client.give_up("nobody is there")

    assert told[0]["error"] == {"code": -32603, "message": "nobody is there"}
    assert told[1]["result"]["structuredContent"]["why"] == "nobody is there"
    assert client.waiting == {}


def test_a_call_that_was_cancelled_is_not_made_again() -> None:
    client = said(call(1, "why"), {"method": "notifications/cancelled", "params": {"requestId": 1}})

    assert client.again() == []


def test_one_who_listens_goes_on_listening_and_hears_it_once() -> None:
    """By the new protocol: the request stays open, and its acknowledgement comes once."""
    wants = {"notifications": {"resourceSubscriptions": ["lockgate://inbox"]}}
    client = said({"id": 7, "method": "subscriptions/listen", "params": wants})
    meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": 7}}
    heard: dict[str, Any] = {"method": "notifications/subscriptions/acknowledged", "params": meta}

    first, again, second = client.hears(heard), client.again(), client.hears(heard)
    changed: Any = client.changed()

    assert (first, second) == (True, False)
    assert [it["id"] for it in again] == [7]
    assert changed[0]["params"] == {"uri": "lockgate://inbox", **meta}


def test_what_the_server_asks_the_client_goes_through_both_ways() -> None:
    """A form, by the old protocol: a request of the server's, with an id of its own."""
    client = said(call(1, "approve"))

    asked = client.hears({"id": 1, "method": "elicitation/create", "params": {}})
    client.says({"id": 1, "result": {"action": "accept"}})

    assert asked
    assert list(client.waiting) == ["1"]


def test_lines_come_whole_and_one_that_is_too_long_is_left_out() -> None:
    lines = Lines()

    found = [lines.of(b"one\ntw"), lines.of(b"o\n"), lines.of(b"x" * (LONGEST + 1))]
    rest = lines.of(b"more of it\nthree\n")

    assert found == [[b"one"], [b"two"], [None]]
    assert rest == [b"three"]


def test_what_does_not_fit_is_cut_and_says_so() -> None:
    facts = plain({"text": "é" * 60_000, "rows": [{"n": n, "x": "y" * 90} for n in range(500)]})

    cut = fitted(facts)

    assert not fits(facts | {"text": "é" * 60_000})
    assert len(json.dumps(cut, ensure_ascii=False)) <= MOST
    assert cut["cut"]["text"] > 40_000
    assert cut["cut"]["rows"] == 500 - len(cut["rows"])
    assert fitted({"a": 1}) == {"a": 1}
