"""A process that serves connections: started when first needed, kept, started again once dead."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lockgate.adapters.serving_child import ServingChild
from lockgate.errors import Unavailable

pytestmark = pytest.mark.measured

# Answers each connection with its pid and who called, and waits for the other end to go.
ECHO = """\
import os, socket, sys
control = socket.socket(fileno=int(sys.argv[1]))
while True:
    head, descriptors, _, _ = socket.recv_fds(control, 65536, 1)
    if not head:
        break
    with socket.socket(fileno=descriptors[0]) as connection:
        connection.sendall(f"{os.getpid()} {head.decode()}".encode())
        connection.recv(1)
    control.send(b"-")
"""


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def child(tmp_path: Path) -> ServingChild:
    (tmp_path / "echo.py").write_text(ECHO)
    return ServingChild((sys.executable, str(tmp_path / "echo.py")), tmp_path / "log")


def handed(child: ServingChild, who: str) -> tuple[socket.socket, str]:
    ours, theirs = socket.socketpair()
    child.hand(theirs, {"who": who})
    return ours, ours.recv(1000).decode()


def test_one_process_serves_all_and_says_when_it_has_none(child) -> None:
    before = (child.pid, child.busy)
    first, one = handed(child, "ann")
    busy = child.busy
    first.close()
    second, two = handed(child, "bob")
    second.close()

    assert before == (None, False)
    assert busy
    until(lambda: not child.busy)
    assert one.split()[0] == two.split()[0] == str(child.pid)
    assert '"who": "bob"' in two
    child.close()
    until(lambda: child.pid is None)


def test_where_it_has_died_the_next_connection_starts_another(child) -> None:
    first, one = handed(child, "ann")
    os.kill(child.pid, signal.SIGKILL)
    assert first.recv(1) == b""  # whoever was served sees the end
    until(lambda: child.pid is None)
    second, two = handed(child, "bob")

    assert one.split()[0] != two.split()[0]
    for it in (first, second):
        it.close()
    child.close()
    until(lambda: child.pid is None)


def test_a_program_that_cannot_be_started_is_told(tmp_path) -> None:
    ours, theirs = socket.socketpair()

    with pytest.raises(Unavailable), ours:
        ServingChild((str(tmp_path / "nothing"),), tmp_path / "log").hand(theirs, {})

    assert theirs.fileno() == -1  # it was closed


def test_one_that_is_warm_serves_the_first_who_comes(child: ServingChild) -> None:
    child.warm()
    before = child.pid
    child.warm()
    assert before is not None
    assert not child.busy

    connection, _ = handed(child, "ann")

    assert child.pid == before
    connection.close()
    child.close()


def test_one_that_cannot_be_started_is_no_trouble_before_somebody_comes(tmp_path: Path) -> None:
    child = ServingChild((str(tmp_path / "nothing"),), tmp_path / "log")

    child.warm()

    assert child.pid is None
