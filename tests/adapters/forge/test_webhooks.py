"""Webhooks are reasons to look: forged ones none, doubled ones once."""

import hashlib
import hmac
import http.client
import json
import time
from collections.abc import Iterator
from threading import Thread

import pytest

from lockgate.adapters.forge import webhooks
from lockgate.adapters.forge.webhooks import Deliveries, listener, repository_of
from tests.forge.contract import need

SECRET = b"it is a secret"
USED = frozenset(
    {"check_run", "check_suite", "issue_comment", "issues", "label", "merge_group", "pull_request"}
    | {"pull_request_review", "pull_request_review_comment", "pull_request_review_thread"}
    | {"push", "status", "workflow_run"}
)
BODY = json.dumps({"repository": {"full_name": "octo/demo"}}).encode()


def signed(body: bytes, secret: bytes = SECRET) -> str:
    return "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()


@pytest.fixture
def looks() -> list[str]:
    return []


@pytest.fixture
def port(looks: list[str]) -> Iterator[int]:
    server = listener(0, Deliveries(SECRET, "octo/demo"), lambda: looks.append("look"))
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def post(port: int, body: bytes, signature: str, delivery: str = "1") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {"X-Hub-Signature-256": signature, "X-GitHub-Delivery": delivery}
    connection.request("POST", "/", body, headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_genuine_delivery_is_a_look_and_a_doubled_one_is_none(port, looks):
    assert post(port, BODY, signed(BODY)) == 202
    assert post(port, BODY, signed(BODY)) == 202
    assert post(port, BODY, signed(BODY), "2") == 202

    last = time.monotonic() + 10  # the answer comes before the look
    while len(looks) < 2 and time.monotonic() < last:
        time.sleep(0.01)
    assert looks == ["look", "look"]


@pytest.mark.parametrize("signature", ["", "sha256=0", signed(BODY, b"another")])
def test_a_forged_delivery_is_refused(port, looks, signature):
    assert post(port, BODY, signature) == 403
    assert looks == []


def test_another_repository_is_no_reason_to_look(port, looks):
    other = BODY.replace(b"demo", b"other")

    assert post(port, other, signed(other)) == 202
    assert looks == []


def test_a_delivery_that_is_too_large_is_not_read(port, looks, monkeypatch):
    monkeypatch.setattr(webhooks, "MOST", 10)

    assert post(port, BODY, signed(BODY)) == 413
    assert looks == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"repository": 1}', b"[" * 100_000])
def test_a_body_that_names_no_repository_names_none(body):
    assert repository_of(body) == ""


def test_old_deliveries_are_forgotten():
    known = Deliveries(SECRET, "octo/demo")
    for n in range(webhooks.REMEMBERED + 1):
        assert known.counts(BODY, signed(BODY), str(n))

    assert known.counts(BODY, signed(BODY), "0")
    assert known.counts(BODY, signed(BODY), str(webhooks.REMEMBERED)) is False


def test_every_example_of_the_used_events_parses():
    rows = json.loads(need("webhooks.json").read_text(encoding="utf-8"))
    used = [one for row in rows if row["name"] in USED for one in row["examples"]]

    assert len(used) > 50
    assert all("/" in repository_of(json.dumps(one).encode()) for one in used)
