"""Who approved is known to the end: two people through a proxy's socket, in the landed evidence."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from lockgate.core.model.people import Right
from lockgate.core.model.task import Status
from lockgate.faces.web.serve import Listening
from tests.e2e.orchestra import COMPLETE, Orchestra, hands_off, worker, writes
from tests.faces.web.home import Home
from tests.faces.web.serving import serving, unix_answer
from tests.faces.web.test_acts import said

HOST = "board.example"
CONFIG = """\
[project]
agent = "scripted"
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "true"
[[gates.list]]
name = "sign_off"
type = "human"
prompt = "Is it good?"
approvers = ["ann"]
"""
FORM = "Content-Type: application/x-www-form-urlencoded\r\n"


@pytest.fixture
def orchestra(tmp_path: Path) -> Iterator[Orchestra]:
    script = worker(writes("good"), hands_off("good"), COMPLETE)
    it = Orchestra(tmp_path / "o", config=CONFIG, scripts={"a": script})
    yield it
    it.close()


def posted(path: Path, who: str, page: str, **fields: str) -> bytes:
    """As a proxy passes on what that person sends from a page of ours."""
    named = f"X-Remote-User: {who}\r\n"
    new = unix_answer(path, said(HOST, "/new", named)).decode()
    key = new.partition('data-csrf="')[2].partition('"')[0]
    more = f"{named}Origin: https://{HOST}\r\n{FORM}"
    return unix_answer(path, said(HOST, page, more, urlencode({**fields, "csrf": key})))


def test_verify_prints_who_approved_and_who_let_it_land(orchestra, tmp_path) -> None:
    it, path = orchestra, tmp_path / "board.sock"
    for who in ("ann", "bob"):
        it.app.members.add(who, Right.LAND, None, it.app.caller)
    id = it.create("a")
    it.up()
    it.until(lambda: it.task(id).waiting == "sign_off")
    patch = it.task(id).patch
    at = Listening(path=path, url=f"https://{HOST}", header="X-Remote-User")

    with serving(Home(tmp_path, it.app), at):
        refused = posted(path, "bob", f"/t/{id}/approve", patch=patch)
        approved = posted(path, "ann", f"/t/{id}/approve", patch=patch)
        it.wake()
        it.until_status(id, Status.REVIEWING)
        landed = posted(path, "bob", f"/t/{id}/land", patch=patch)
        it.wake()
        it.until_status(id, Status.DONE)

    assert b"takes a yes of ann alone" in refused
    assert approved.startswith(b"HTTP/1.1 303")
    assert landed.startswith(b"HTTP/1.1 303")
    told = it.lockgate("verify", "HEAD").stdout
    assert "ann" in told, told
    assert "bob" in told, told
    [change] = json.loads(it.lockgate("verify", "HEAD", "--json").stdout)["evidence"]["changes"]
    assert [yes["by"] for yes in change["approvals"]] == ["ann", "bob"]
