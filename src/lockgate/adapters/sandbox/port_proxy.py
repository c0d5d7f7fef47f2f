"""Carries connections between two sockets.

Inside a box it runs by path and alone: `port_proxy.py DIRECTORY PORT…`. There each port of the
box's own localhost leads to a socket in the directory, where we listen.
"""

import os
import selectors
import socket
import sys
from collections.abc import Callable, Iterable

CHUNK = 1 << 16
WAIT = 5.0  # seconds for a connection to be made

Connect = Callable[[], socket.socket]


class Way:
    """One direction of a connection: what was read at one end and not yet written at the other."""

    def __init__(self, source: socket.socket, sink: socket.socket) -> None:
        self.source, self.sink = source, sink
        self.left, self.over = b"", False

    def carry(self) -> None:
        try:
            if not self.left and not self.over:
                self.left = self.source.recv(CHUNK)
                self.over = not self.left
            self.left = self.left[self.sink.send(self.left) :] if self.left else b""
            if self.over:
                self.sink.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            return
        except OSError:
            self.left, self.over = b"", True


class Relay:
    """Serves until what `stop` reads from has something to read, or is closed."""

    def __init__(self, doors: Iterable[tuple[socket.socket, Connect]], stop: int | None) -> None:
        self._selector = selectors.DefaultSelector()
        self._doors = dict(doors)
        self._pairs: dict[socket.socket, tuple[Way, Way]] = {}
        for door in self._doors:
            door.setblocking(False)  # noqa: FBT003 - its only argument
            self._selector.register(door, selectors.EVENT_READ)
        if stop is not None:
            self._selector.register(stop, selectors.EVENT_READ, None)

    def serve(self) -> None:
        try:
            while self._turn():
                pass
        finally:
            self._selector.close()
            for end in (*self._pairs, *self._doors):
                end.close()

    def _turn(self) -> bool:
        for key, _ in self._selector.select():
            end = key.fileobj
            if not isinstance(end, socket.socket):
                return False
            if end in self._doors:
                self._accept(end, self._doors[end])
            elif end in self._pairs:
                self._carry(end)
        return True

    def _accept(self, door: socket.socket, connect: Connect) -> None:
        try:
            near, _ = door.accept()
        except OSError:
            return
        try:
            far = connect()
        except OSError:
            near.close()
            return
        pair = (Way(near, far), Way(far, near))
        for end in (near, far):
            end.setblocking(False)  # noqa: FBT003 - its only argument
            self._pairs[end] = pair
            self._selector.register(end, selectors.EVENT_READ)

    def _carry(self, end: socket.socket) -> None:
        pair = self._pairs[end]
        for way in pair:
            way.carry()
        if all(way.over and not way.left for way in pair):
            for each in (pair[0].source, pair[0].sink):
                if each in self._selector.get_map():
                    self._selector.unregister(each)
                del self._pairs[each]
                each.close()
            return
        for way in pair:
            self._watch(way, pair)

    def _watch(self, way: Way, pair: tuple[Way, Way]) -> None:
        """An end is read when nothing of it waits, and written when something waits for it."""
        back = pair[1] if way is pair[0] else pair[0]
        reads = selectors.EVENT_READ if not way.left and not way.over else 0
        writes = selectors.EVENT_WRITE if back.left else 0
        wanted = reads | writes
        known = way.source in self._selector.get_map()
        if wanted and known:
            self._selector.modify(way.source, wanted)
        elif wanted:
            self._selector.register(way.source, wanted)
        elif known:
            self._selector.unregister(way.source)


def to_tcp(host: str, port: int) -> Connect:
    return lambda: socket.create_connection((host, port), WAIT)


def to_unix(path: str) -> Connect:
    def connect() -> socket.socket:
        far = socket.socket(socket.AF_UNIX)
        far.connect(path)
        return far

    return connect


def main(directory: str, *ports: str) -> None:
    """Listen, then continue in the background: when the parent exits, the port is open."""
    doors = [
        (socket.create_server(("127.0.0.1", int(port))), to_unix(f"{directory}/{port}"))
        for port in ports
    ]
    if os.fork():
        os._exit(0)
    os.setsid()
    Relay(doors, None).serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
