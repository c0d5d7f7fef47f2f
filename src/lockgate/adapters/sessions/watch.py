"""Waits for the end of many sessions at once, by event."""

import contextlib
import os
import selectors
import threading

from lockgate.core.model.task import SessionId


class Watch:
    """`wake` may be called from any thread; everything else from the one that waits."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._woken, self._waking = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waking, False)
        self._open = True
        self._guard = threading.Lock()
        self._selector.register(self._woken, selectors.EVENT_READ, None)

    def add(self, id: SessionId, descriptor: int) -> None:
        """The descriptor is ours from here on."""
        self._selector.register(descriptor, selectors.EVENT_READ, id)

    def watched(self) -> frozenset[SessionId]:
        return frozenset(it.data for it in self._selector.get_map().values() if it.data)

    def wake(self) -> None:
        with self._guard:
            if self._open:
                with contextlib.suppress(BlockingIOError):  # it is going to wake anyway
                    os.write(self._waking, b"!")

    def wait(self, seconds: float | None) -> tuple[SessionId, ...]:
        """The sessions whose runners have ended; empty when woken or when the time is over."""
        ended = list[SessionId]()
        for key, _ in self._selector.select(seconds):
            if key.data is None:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._woken, 4096)
            else:
                self._forget(key.fd)
                ended.append(key.data)
        return tuple(ended)

    def close(self) -> None:
        with self._guard:
            self._open = False
            for descriptor in [it.fd for it in self._selector.get_map().values()]:
                self._forget(descriptor)
            os.close(self._waking)
            self._selector.close()

    def _forget(self, descriptor: int) -> None:
        self._selector.unregister(descriptor)
        os.close(descriptor)
