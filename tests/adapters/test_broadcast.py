"""One thread that writes to all who follow: nobody waits for a reader who does not read."""

import socket
import threading
import time
from collections.abc import Callable, Generator, Sequence

import pytest

from lockgate.adapters.broadcast import Broadcast
from lockgate.ports import Taken

PIECE = b"x" * (1 << 16) + b"\n"
PATIENCE = 30.0


class Lines:
    """A source that has the same lines for everybody."""

    def __init__(self) -> None:
        self.told, self.pieces = list[bytes](), dict[int, int]()
        self.gone = list[int]()
        self._came, self._guard = list[Taken](), threading.Lock()

    def joins(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.settimeout(PATIENCE)
        with self._guard:
            self.pieces[theirs.fileno()] = 0
            self._came.append(theirs)
        return ours

    def look(self, now: float) -> float:
        return PATIENCE

    def arrived(self) -> Sequence[Taken]:
        with self._guard:
            came, self._came = self._came, []
        return came

    def more(self, reader: int) -> bytes:
        at = self.pieces[reader]
        if at >= len(self.told):
            return b""
        self.pieces[reader] = at + 1
        return self.told[at]

    def left(self, reader: int) -> None:
        self.gone.append(reader)

    def farewell(self) -> bytes:
        return b"bye\n"


@pytest.fixture
def source() -> Lines:
    return Lines()


@pytest.fixture
def writer(source: Lines) -> Generator[Broadcast]:
    broadcast = Broadcast(source)
    broadcast.start()
    yield broadcast
    broadcast.close()


def until(done: Callable[[], bool]) -> None:
    last = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < last
        time.sleep(0.005)


def received(connection: socket.socket, length: int) -> bytes:
    got = b""
    while len(got) < length:
        chunk = connection.recv(length - len(got))
        assert chunk
        got += chunk
    return got


def test_everybody_gets_every_line_in_order(source, writer) -> None:
    readers = [source.joins() for _ in range(10)]
    source.told += [b"%d\n" % n for n in range(1000)]
    writer.wake()
    whole = b"".join(source.told)

    assert [received(it, len(whole)) for it in readers] == [whole] * 10
    for it in readers:
        it.close()


def test_a_reader_who_does_not_read_delays_nobody_and_goes_on_when_it_does(source, writer) -> None:
    frozen, other = source.joins(), source.joins()
    source.told += [PIECE] * 30
    writer.wake()

    assert received(other, 30 * len(PIECE)) == PIECE * 30
    stuck_at = min(source.pieces.values())
    assert stuck_at < 30
    assert received(frozen, 30 * len(PIECE)) == PIECE * 30
    frozen.close()
    other.close()


def test_a_reader_who_hangs_up_is_gone_and_the_others_stay(source, writer) -> None:
    leaves, stays = source.joins(), source.joins()
    writer.wake()
    leaves.shutdown(socket.SHUT_WR)  # as a client does that has sent its request
    source.told.append(b"one\n")
    writer.wake()
    assert received(leaves, 4) == b"one\n"
    assert source.gone == []
    leaves.close()

    until(lambda: len(source.gone) == 1)
    source.told.append(b"two\n")
    writer.wake()
    assert received(stays, 8) == b"one\ntwo\n"
    stays.close()


def test_the_end_is_told_to_who_can_hear_it(source) -> None:
    writer = Broadcast(source)
    writer.start()
    listening, frozen = source.joins(), source.joins()
    writer.wake()
    source.told += [PIECE] * 30
    writer.wake()
    received(listening, 30 * len(PIECE))

    writer.close()

    assert listening.recv(100) == b"bye\n"
    assert listening.recv(100) == b""
    listening.close()
    frozen.close()
    writer.wake()  # after the end it is nothing
