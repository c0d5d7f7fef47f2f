"""One thread writes to all who follow the feed; a slow reader waits alone."""

import contextlib
import os
import select
import threading
import time

from lockgate.ports import FeedSource, Taken

GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


class Broadcast:
    """Runs from `start` to `close`; `wake` may be called from any thread and takes no time."""

    def __init__(self, source: FeedSource) -> None:
        self._source = source
        self._readers = dict[int, _Reader]()  # by descriptor
        self._woken, self._waking = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waking, False)
        self._guard, self._closed = threading.Lock(), False
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        with self._guard:
            if not self._closed:
                with contextlib.suppress(BlockingIOError):  # it is going to wake anyway
                    os.write(self._waking, b"!")

    def close(self, patience: float = 5.0) -> None:
        """Each reader who can take it is told that this is the end."""
        with self._guard:
            self._closed = True
            with contextlib.suppress(OSError):
                os.write(self._waking, b"!")
        if self._thread.is_alive():
            self._thread.join(patience)

    def _run(self) -> None:
        pause = 0.0
        while not self._closed:
            for descriptor in self._wait(pause):
                self._drop(descriptor)
            pause = self._source.look(time.monotonic())
            self._let_in()
            if self._write_to_all():
                pause = 0.0
        self._let_in()
        for reader in self._readers.values():
            reader.end(self._source.farewell())
        os.close(self._woken)
        os.close(self._waking)

    def _wait(self, seconds: float) -> list[int]:
        """Until somebody wakes us, or a reader who could not take more can; those who left."""
        waiting = select.poll()
        waiting.register(self._woken, select.POLLIN)
        for descriptor, reader in self._readers.items():
            waiting.register(descriptor, select.POLLOUT if reader.full else 0)
        left = list[int]()
        for descriptor, event in waiting.poll(seconds * 1000):
            if descriptor == self._woken:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._woken, 1 << 16)
            elif event & GONE:
                left.append(descriptor)
            else:
                self._readers[descriptor].full = False
        return left

    def _let_in(self) -> None:
        for connection in self._source.arrived():
            os.set_blocking(connection.fileno(), False)
            self._readers[connection.fileno()] = _Reader(connection)

    def _write_to_all(self) -> bool:
        """One piece each; whether one of them may get another at once."""
        again = False
        for descriptor, reader in list(self._readers.items()):
            if reader.full:
                continue
            if not reader.pending:
                reader.pending = self._source.more(descriptor)
            if not reader.pending:
                continue
            if not reader.write():
                self._drop(descriptor)
            again = again or not reader.full
        return again

    def _drop(self, descriptor: int) -> None:
        reader = self._readers.pop(descriptor, None)
        if reader:
            self._source.left(descriptor)
            reader.connection.close()


class _Reader:
    """`full` says that the connection takes no more for now."""

    __slots__ = ("connection", "full", "pending")

    def __init__(self, connection: Taken) -> None:
        self.connection, self.pending, self.full = connection, b"", False

    def write(self) -> bool:
        """False where the reader has gone."""
        try:
            wrote = os.write(self.connection.fileno(), self.pending)
        except BlockingIOError:
            wrote = 0
        except OSError:
            return False
        self.pending = self.pending[wrote:]
        self.full = bool(self.pending)
        return True

    def end(self, said: bytes) -> None:
        if not self.pending:
            with contextlib.suppress(OSError):
                os.write(self.connection.fileno(), said)
        self.connection.close()
