"""A process of its own that serves connections, which are handed to it as they come.

It is started for the first one, kept, and started again for the next one where it has died.
"""

import json
import socket
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from lockgate.adapters.run import Process, ended_within, start_serving
from lockgate.errors import LockgateError, Unavailable
from lockgate.ports import Taken

PATIENCE = 2.0  # seconds in which it ends that has no call to finish
TRIES = 2  # it may die while it is handed a connection


class ServingChild:
    """`argv` starts it; it gets one more argument, the descriptor of the socket to us."""

    def __init__(self, argv: Sequence[str], log: Path) -> None:
        self._argv, self._log = tuple(argv), log
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._process: Process | None = None
        self._visits = 0

    @property
    def busy(self) -> bool:
        """Whether it has a connection."""
        return self._visits > 0

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process and process.poll() is None else None

    def hand(self, connection: Taken, told: Mapping[str, object]) -> None:
        """The connection is its own from then on; Unavailable where it cannot be started."""
        head = json.dumps(told).encode()
        try:
            for _ in range(TRIES):
                with self._lock:
                    control = self._control or self._started()
                    with suppress(OSError):
                        socket.send_fds(control, [head], [connection.fileno()])
                        self._visits += 1
                        return
                    self._control = None
        finally:
            connection.close()
        raise Unavailable(
            "the connection was not served", why="its process ended at once", fix=f"see {self._log}"
        )

    def warm(self) -> None:
        """Start it before anybody comes; where that fails, the first one who comes is told."""
        with self._lock, suppress(LockgateError):
            if self._control is None:
                self._started()

    def close(self) -> None:
        """It takes nothing more. What it is at, it finishes without us."""
        with self._lock:
            control, process = self._control, self._process
            self._control = None
        if control is not None:
            with suppress(OSError):
                control.shutdown(socket.SHUT_RDWR)
        if process is not None:
            ended_within(process, PATIENCE)

    def _started(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            argv = (*self._argv, str(theirs.fileno()))
            try:
                process = start_serving(argv, theirs.fileno(), self._log)
            except LockgateError:
                ours.close()
                raise
        self._control, self._process, self._visits = ours, process, 0
        threading.Thread(target=self._heed, args=(ours, process), daemon=True).start()
        return ours

    def _heed(self, control: socket.socket, process: Process) -> None:
        """Each word from it is a connection that has ended; no more come when it has died."""
        with control:
            while self._heard(control):
                with self._lock:
                    self._visits -= control is self._control
        with self._lock:
            if self._control is control:
                self._control, self._visits = None, 0
        process.wait()

    @staticmethod
    def _heard(control: socket.socket) -> bool:
        try:
            return bool(control.recv(1))
        except OSError:
            return False
