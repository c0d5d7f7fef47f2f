"""The feed of a real orchestrator: every event to everybody who follows, whatever happens."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from lockgate.adapters.sessions.runner.command_socket import Request, ask
from lockgate.core.model.task import TaskId
from lockgate.faces import client
from lockgate.faces.feed_client import FeedRefused, follow, read
from lockgate.services.orchestrator.feed import MOST
from tests.e2e.feeding import Reader, reads, writes
from tests.e2e.orchestra import PATIENCE, Orchestra, worker
from tests.store.samples import moved

pytestmark = pytest.mark.measured

LONG = 300.0  # seconds for many processes on a busy machine
WRITERS = 3


@pytest.fixture
def it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Orchestra]:
    orchestra = Orchestra(tmp_path)
    monkeypatch.setenv("LOCKGATE_HOME", str(orchestra.home))
    monkeypatch.setenv("LOCKGATE_NO_ORCHESTRATOR", "1")
    yield orchestra
    orchestra.close()


def up(it: Orchestra, *more: str) -> None:
    it.up(*more)
    it.until(lambda: client.call(["wake"]) == 0)


def tasks(it: Orchestra, count: int = WRITERS) -> list[str]:
    return [it.create(f"task-{n}", auto_start=False) for n in range(count)]


def finished(it: Orchestra, readers: list[Reader]) -> None:
    it.until(lambda: all(reader.said[-1:] == ["end"] for reader in readers), LONG)


def everything_once(readers: list[Reader], last: int) -> None:
    for reader in readers:
        assert reader.seqs == list(range(1, last + 1))
        assert "resync" not in reader.said
        assert "wrong row" not in reader.said


@pytest.mark.parametrize(
    ("readers", "events"),
    [
        pytest.param(6, 300, id="6 readers, 300 events"),
        pytest.param(64, 10_000, id="64 readers, 10,000 events", marks=pytest.mark.slow),
    ],
)
def test_everybody_gets_every_event_once_and_in_order_also_over_a_kill(
    it, tmp_path, readers, events
) -> None:
    ids = tasks(it)
    up(it)
    last = it.app.store.head() + events // WRITERS * WRITERS
    follow = [reads(it.home, tmp_path / f"{n}", last) for n in range(readers)]
    it.until(lambda: all(reader.said for reader in follow), LONG)
    writers = [writes(it.home, id, events // WRITERS) for id in ids]
    it.until(lambda: it.app.store.head() > last // 3, LONG)
    it.kill()
    it.until(lambda: it.app.store.head() > last // 2, LONG)
    up(it)
    assert [writer.wait(LONG) for writer in writers] == [0] * WRITERS
    it.wake()
    finished(it, follow)
    for reader in follow:
        reader.end()

    everything_once(follow, last)
    assert all("lost" in reader.said and "back" in reader.said for reader in follow)


def test_a_frozen_reader_delays_nobody_and_is_told_to_look_again(it, tmp_path) -> None:
    (id,) = tasks(it, 1)
    up(it)
    last = it.app.store.head() + 2500
    frozen, other = (reads(it.home, tmp_path / it_, last, every=False) for it_ in ("one", "two"))
    it.until(lambda: "hello" in frozen.said and "hello" in other.said)
    frozen.freeze()
    try:
        assert writes(it.home, id, 2500, at_once=50).wait(LONG) == 0
        finished(it, [other])
        assert frozen.said[-1] != "end"
    finally:
        frozen.thaw()
    it.until(lambda: "resync" in frozen.said)
    frozen.end()
    other.end()

    everything_once([other], last)
    assert len(frozen.seqs) < 2500


def test_with_all_feeds_open_commands_are_answered_and_one_more_is_refused_in_words(it) -> None:
    tasks(it, 1)
    up(it)
    path = str(it.home / "door.sock")
    open_feeds = list[socket.socket]()
    for _ in range(MOST):
        connection = socket.socket(socket.AF_UNIX)
        client.send(connection, path, ["feed"])
        connection.settimeout(PATIENCE)
        assert connection.recv(4).startswith(b"o\0")
        open_feeds.append(connection)

    status = ask(path, Request(token="", cwd="/", stdin="", argv=("status",)), patience=PATIENCE)
    with pytest.raises(FeedRefused, match=f"no feed was opened: {MOST} are open already"):
        next(iter(follow()))
    open_feeds.pop().close()
    it.until(lambda: _is_let_in(path))
    for connection in open_feeds:
        connection.close()

    assert status is not None
    assert status.code == 0


def _is_let_in(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        client.send(connection, path, ["feed"])
        connection.settimeout(PATIENCE)
        said = b""
        while chunk := connection.recv(100):
            said += chunk
            if b"hello" in said:
                return True
    return False


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_who_follows_opens_no_database(it, tmp_path) -> None:
    (id,) = tasks(it, 1)
    up(it)
    trace = tmp_path / "trace"
    argv = ["strace", "-D", "-f", "-e", "trace=open,openat", "-o", str(trace)]
    environ = os.environ | {"LOCKGATE_HOME": str(it.home)}
    with subprocess.Popen(
        [*argv, sys.executable, "-m", "lockgate", "events", "--follow", "--json"],
        env=environ,
        stdout=subprocess.PIPE,
    ) as following:
        assert following.stdout is not None
        first = json.loads(following.stdout.readline())
        following.terminate()

    assert first["task"] == id
    opened = trace.read_text()
    assert "feed_client" in opened
    assert "lockgate.db" not in opened


def test_a_sessions_token_gets_no_feed(it) -> None:
    up(it)
    asked = Request(token="a-token-of-nobody", cwd="/", stdin="", argv=("feed",))  # noqa: S106 - of nobody

    answer = ask(str(it.home / "door.sock"), asked, patience=PATIENCE)

    assert answer is not None
    assert answer.code == 1
    assert "the token in LOCKGATE_TOKEN belongs to no session" in answer.err


@pytest.mark.parametrize(
    "argv", [["--since", "x"], ["--since", "9" * 40], ["--what"], ["--since"], ["--output", "../x"]]
)
def test_what_is_no_feed_is_refused_in_words(it, argv) -> None:
    up(it)
    asked = Request(token="", cwd="/", stdin="", argv=("feed", *argv))

    answer = ask(str(it.home / "door.sock"), asked, patience=PATIENCE)

    assert answer is not None
    assert answer.code == 1
    assert answer.err.startswith("no feed was opened: ")


def test_an_open_feed_is_a_visit_and_the_end_of_the_orchestrator_is_told(it) -> None:
    up(it, "--idle", "1")
    following = follow()
    items = iter(following)
    assert "hello" in next(items)
    time.sleep(2.5)
    assert it.process is not None
    assert it.process.poll() is None

    it.down()
    told = next(item for item in items if "lost" in item)
    up(it)
    back = next(item for item in items if "back" in item)
    following.close()
    items.close()

    assert told == {"lost": "the orchestrator was stopped; start it: lockgate up"}
    assert back["back"]["pid"] == it.process.pid
    assert it.process.poll() is None


def test_the_first_who_follows_starts_an_orchestrator_and_many_start_one(it, monkeypatch) -> None:
    monkeypatch.delenv("LOCKGATE_NO_ORCHESTRATOR")
    monkeypatch.setenv("HOME", str(it.place))
    several = [iter(follow()) for _ in range(3)]

    pids = {next(item for item in items if "hello" in item)["hello"]["pid"] for items in several}

    assert len(pids) == 1
    log = (it.home / "logs" / "orchestrator.log").read_text()
    assert log.count("is up") == 1
    assert "one is running already" not in log
    for items in several:
        items.close()
    assert it.lockgate("down").returncode == 0


def test_an_orchestrator_that_does_not_come_up_is_told_and_tried_again(
    tmp_path, monkeypatch
) -> None:
    starts = list[str]()
    monkeypatch.setattr("lockgate.faces.feed_client.STARTS", 0.3)
    monkeypatch.setattr(
        "lockgate.faces.feed_client._Starter._start_one", lambda it: starts.append(it._home)
    )
    following = follow(str(tmp_path / "home"))
    items = iter(following)

    told = next(items)
    ends = threading.Timer(3.0, following.close)
    ends.start()
    rest = list(items)

    assert told == {"lost": f"no orchestrator comes up; see {tmp_path}/home/logs/orchestrator.log"}
    assert rest == []
    assert len(starts) > 1


def test_a_stopped_orchestrator_is_told_to_who_follows_and_goes_on_by_itself(
    it, monkeypatch
) -> None:
    monkeypatch.setattr("lockgate.faces.feed_client.TICK", 0.2)
    (id,) = tasks(it, 1)
    up(it)
    assert it.process is not None
    items = iter(follow(since=it.app.store.head()))
    assert "hello" in next(items)
    it.process.send_signal(signal.SIGSTOP)
    try:
        told = next(item for item in items if "lost" in item)
    finally:
        it.process.send_signal(signal.SIGCONT)
    assert writes(it.home, id, 1).wait(PATIENCE) == 0
    back = next(items)
    event = next(item for item in items if "event" in item)
    items.close()

    assert f"orchestrator {it.process.pid} does not answer; its process is stopped" in told["lost"]
    assert f"kill -CONT {it.process.pid}" in told["lost"]
    assert "back" in back
    assert event["event"]["task"] == id
    assert event["row"]["id"] == id


def test_what_needs_a_human_is_told_when_it_comes_and_when_it_goes(it) -> None:
    (id,) = tasks(it, 1)
    up(it)
    with subprocess.Popen(
        [sys.executable, "-m", "lockgate", "events", "--follow", "--needs"],
        env=os.environ,
        stdout=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout is not None
        note(it, id, "git fails")
        came = following.stdout.readline()
        note(it, id, "")
        went = following.stdout.readline()
        following.send_signal(signal.SIGINT)
        assert following.wait(PATIENCE) == 130

    assert came.startswith(f"+ {id}  trouble  ")
    assert "git fails" in came
    assert went.startswith(f"- {id}  trouble  ")


def note(it: Orchestra, id: str, troubled: str) -> None:
    """As another process would: the orchestrator is only woken."""
    task = it.task(TaskId(id))
    it.app.store.commit(moved(task, troubled=troubled))
    it.wake()


def test_the_output_of_a_session_comes_as_its_agent_says_it(tmp_path, monkeypatch) -> None:
    says = worker('{ say = "hello out there" }', "{ sleep = 300 }")
    it = Orchestra(tmp_path, scripts={"talk": says})
    monkeypatch.setenv("LOCKGATE_HOME", str(it.home))
    id = it.create("talk")
    up(it)
    it.until(lambda: bool(it.app.store.sessions(id)))
    session = it.app.store.sessions(id)[-1].id
    items = iter(follow(output=[session]))

    told = list[str]()
    while not any("hello out there" in line for line in told):
        output = next(items).get("live", {}).get("output", {"lines": []})
        assert output.get("session", session) == session
        told += output["lines"]

    items.close()
    it.close()


def test_types_and_projects_are_picked(it) -> None:
    (id,) = tasks(it, 1)
    up(it)
    it.lockgate("task", "cancel", id)

    def first(*argv: str) -> str:
        with subprocess.Popen(
            [sys.executable, "-m", "lockgate", "events", "--follow", *argv],
            env=os.environ,
            stdout=subprocess.PIPE,
            text=True,
            cwd=it.root,
        ) as following:
            assert following.stdout is not None
            line = following.stdout.readline()
            following.terminate()
        return line

    stored = it.lockgate("events", "--json", "--type", "status.*", "--project", ".").stdout
    assert first("--json", "--type", "status.*", "--project", ".") == stored
    assert "status.changed" in first("--type", "status.*", id)


def test_one_answer_is_read_without_a_database_of_ones_own(it) -> None:
    up(it)
    assert it.process is not None

    assert read(["status"])["orchestrator"] == it.process.pid
    with pytest.raises(FeedRefused, match="was not found"):
        read(["task", "show", "nosuch"])
