"""An orchestrator that does not answer holds up no command for ever, and is named to people."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lockgate.adapters import system
from lockgate.adapters.sessions.runner.command_socket import Answer, Door, Line, Request
from lockgate.core.model.task import Status
from lockgate.faces import client, silence
from tests.e2e.orchestra import PATIENCE, Orchestra


@pytest.fixture
def it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Orchestra]:
    orchestra = Orchestra(tmp_path)
    monkeypatch.setenv("LOCKGATE_HOME", str(orchestra.home))
    yield orchestra
    orchestra.close()


@contextmanager
def stopped(it: Orchestra) -> Generator[int]:
    """The orchestrator's process, stopped by a signal."""
    assert it.process is not None
    it.process.send_signal(signal.SIGSTOP)
    try:
        it.until(lambda: silence.state(it.process.pid) in silence.STOPPED)  # type: ignore[union-attr]  # it runs
        yield it.process.pid
    finally:
        it.process.send_signal(signal.SIGCONT)


def lockgate(it: Orchestra, *argv: str) -> subprocess.CompletedProcess[str]:
    environ = {name: it.environ[name] for name in it.environ if name != "LOCKGATE_NO_ORCHESTRATOR"}
    return subprocess.run(
        [sys.executable, "-m", "lockgate", *argv],
        env=environ,
        cwd=it.root,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_beside_a_stopped_orchestrator_what_looks_goes_on_by_itself_and_says_who_is_silent(
    it,
) -> None:
    id = it.create("one", auto_start=False)
    it.up()
    it.until(lambda: client.call(["wake"]) == 0)
    with stopped(it) as pid:
        shown = lockgate(it, "task", "show", id)

    assert shown.returncode == 0
    assert id in shown.stdout
    told, fix = shown.stderr.splitlines()
    assert told.startswith(
        f"lockgate: this is done without the orchestrator: orchestrator {pid} does not answer; "
        "its process is stopped; its last sign of life was at "
    )
    assert fix == f"  let it go on: kill -CONT {pid}"


def test_beside_a_stopped_orchestrator_what_acts_is_not_done_then_nor_later(
    it, monkeypatch, capfd
) -> None:
    id = it.create("one", auto_start=False)
    it.up()
    it.until(lambda: client.call(["wake"]) == 0)
    monkeypatch.setattr(client, "ANSWERS", 0.5)
    with stopped(it) as pid:
        updated = client.call(["task", "update", id, "--status", "working"])
        woken = client.call(["wake"])
    monkeypatch.undo()
    monkeypatch.setenv("LOCKGATE_HOME", str(it.home))
    it.until(lambda: client.call(["wake"]) == 0)
    told = capfd.readouterr().err

    assert (updated, woken) == (1, 1)
    assert f"lockgate: nothing was done: orchestrator {pid} does not answer" in told
    assert "what you asked for is recorded and waits for the orchestrator" in told
    assert it.task(id).status is Status.PENDING


@contextmanager
def opened(home: Path, answer) -> Generator[Door]:
    home.mkdir(parents=True, exist_ok=True)
    door = Door(str(home / "door.sock"), answer, at_once=2)
    door.serve()
    try:
        yield door
    finally:
        door.close()


def test_where_all_places_are_taken_by_what_does_not_end_others_are_not_held_up(
    home, monkeypatch, capfd
) -> None:
    monkeypatch.setattr(client, "ANSWERS", 0.5)
    free, begun = threading.Event(), threading.Semaphore(0)

    def wedged(_request: Request, _line: Line) -> Answer:
        begun.release()
        free.wait(PATIENCE)
        return Answer(0)

    with opened(home, wedged):
        held = [socket.socket(socket.AF_UNIX) for _ in range(2)]
        for connection in held:
            client.send(connection, str(home / "door.sock"), ["task", "complete"])
            assert begun.acquire(timeout=PATIENCE)
        codes = [client.call(argv) for argv in (["status"], ["gate", "run"], ["checkpoint"])]
        free.set()
        for connection in held:
            connection.close()

    assert codes == [None, None, 1]
    told = capfd.readouterr().err
    assert f"orchestrator {os.getpid()} does not answer" in told
    assert f"end it: kill -9 {os.getpid()}" in told


def test_what_acts_and_has_begun_is_waited_for_and_what_looks_is_not(
    home, monkeypatch, capfd
) -> None:
    monkeypatch.setattr(client, "ANSWERS", 0.3)

    def slow(_request: Request, _line: Line) -> Answer:
        time.sleep(1.0)
        return Answer(5, "done\n")

    with opened(home, slow):
        acting, judging = client.call(["task", "update"]), client.call(["gate", "run"])
        looking = client.call(["status"])

    assert (acting, judging, looking) == (5, 5, None)
    out, err = capfd.readouterr()
    assert out == "done\ndone\n"
    assert err.count("the orchestrator has begun, and is still at it") == 1


def test_a_door_where_too_many_wait_is_not_waited_for_either(home, monkeypatch) -> None:
    monkeypatch.setattr(client, "CONNECTS", 0.3)
    home.mkdir()
    path = str(home / "door.sock")
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as first:
        listening.bind(path)
        listening.listen(0)
        first.connect(path)

        assert client.call(["status"]) is None
        assert client.call(["task", "update"]) == 1


def test_what_an_orchestrator_did_last_is_told_as_it_left_it(tmp_path, monkeypatch) -> None:
    assert system.PULSE == silence.PULSE
    assert system.NAME == silence.LOCK
    unknown = silence.told(str(tmp_path), None)
    (tmp_path / silence.LOCK).write_text("999999999")
    known = silence.told(str(tmp_path), None)
    monkeypatch.setattr(os, "getpid", lambda: 999999999)
    system.pulse(tmp_path, [f"task t{n}" for n in range(5)])
    busy = silence.told(str(tmp_path), None)
    other = silence.told(str(tmp_path), 12)
    (tmp_path / silence.PULSE).write_text("{half")

    assert unknown == ("the orchestrator does not answer", "see: lockgate doctor")
    assert known[0] == "orchestrator 999999999 does not answer"
    assert busy[0].endswith(", at work on task t0, task t1, task t2 and 2 more")
    assert other[0] == "orchestrator 12 does not answer"
    assert silence.told(str(tmp_path), None) == known
