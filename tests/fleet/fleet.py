"""Hosts of a fleet as processes with homes of their own, on real PostgreSQL, Temporal and a hub."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from lockgate.bootstrap import open_app
from tests.adapters.engine.fleet_yard import temporal_server
from tests.e2e.orchestra import (
    COMPLETE,
    CONFIG,
    REVIEWER,
    Orchestra,
    hands_off,
    worker,
    writes,
)
from tests.scenarios.world import git
from tests.store import postgres_cluster

SCRIPT = worker(writes("good"), hands_off("x"), COMPLETE) + REVIEWER
FILE = """\
[temporal]
address = "{address}"
[host]
name = "{name}"
{own}
[fleet]
beat = 4
sessions_lost_after = 8
snapshot_every = 1
"""


class Fleet:
    """One project; its tasks are created from a home that is no host's."""

    def __init__(
        self, place: Path, address: str, database: str, scripts: list[str], config: str
    ) -> None:
        self._place, self._address, self._database = place, address, database
        named = {f"b{number}": script for number, script in enumerate(scripts)}
        self.people = Orchestra(place / "people", config, named)
        self.people.app.close()
        self.people.environ["LOCKGATE_DATABASE"] = database
        self.people.app = open_app(self.people.environ)
        self.hub, self.hosts = place / "hub.git", dict[str, subprocess.Popen[bytes]]()
        self.own = dict[str, str]()  # what hosts say of themselves besides
        git(self.people.root, "clone", "--quiet", "--bare", ".", str(self.hub))
        self.told("fleet", "hub", str(self.hub))

    def start(self, name: str, *more: str) -> None:
        home = self._place / name
        home.mkdir(exist_ok=True)
        settings = FILE.format(address=self._address, name=name, own=self.own.get(name, ""))
        (home / "fleet.toml").write_text(settings)
        environ = {**self.people.environ, "LOCKGATE_HOME": str(home)}
        with (self._place / f"{name}.log").open("ab") as log:
            self.hosts[name] = subprocess.Popen(
                [sys.executable, "-m", "lockgate", "worker", *more],
                env=environ,
                cwd=self._place,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def cut_power(self, name: str) -> None:
        """The worker, its runners and its agents end at once, and none can say a word."""
        home, own = str(self._place / name).encode(), self.hosts[name]
        own.kill()
        own.wait()
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if home in (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)

    def runners(self, name: str) -> list[int]:
        """The processes of agents there."""
        sessions, found = str(self._place / name / "sessions").encode(), list[int]()
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if sessions in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
        return found

    def refs(self, below: str) -> list[str]:
        """Of the hub."""
        asked = ("git", "-C", self.hub, "for-each-ref", "--format=%(refname)")
        told = subprocess.run((*asked, f"refs/lockgate/{below}"), capture_output=True, check=True)
        return told.stdout.decode().split()

    def agents_at(self, name: str) -> int:
        seen = json.loads(self.told("fleet", "status", "--json"))["hosts"]
        return sum(it["agents"] for it in seen if it["host"]["name"] == name)

    def told(self, *argv: str) -> str:
        done = self.people.lockgate(*argv)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def leader(self) -> str:
        return str(json.loads(self.told("fleet", "status", "--json"))["leader"])

    def until(self, true: Callable[[], bool], seconds: float = 120.0) -> float:
        began = time.monotonic()
        while not true():
            assert time.monotonic() - began < seconds, self.story()
            time.sleep(0.1)
        return time.monotonic() - began

    def story(self) -> str:
        logs = [f"{it.name}:\n{it.read_text()[-3000:]}" for it in self._place.glob("*.log")]
        with suppress(Exception):
            logs.append(self.told("fleet", "status"))
        return "\n".join((*logs, self.people.story()))

    def close(self) -> None:
        for process in self.hosts.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.hosts.values():
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.people.app.close()


@contextmanager
def opened(place: Path, *scripts: str, config: str = CONFIG) -> Generator[Fleet]:
    with (
        postgres_cluster.cluster("fsync=off", "max_connections=200") as url,
        temporal_server(place) as (address, _),
    ):
        schema = postgres_cluster.with_schema(url, "fleet")
        fleet = Fleet(place, address, schema, list(scripts), config)
        try:
            yield fleet
        finally:
            fleet.close()
