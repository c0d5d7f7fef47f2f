"""The three servers that hosts share, each of which can be killed and started again."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import yaml

from tests.adapters.engine.fleet_yard import (
    free_port,
    must_have_temporal,
    until_it_listens,
    until_temporal_answers,
)
from tests.store import postgres_cluster

DOCS = Path(__file__).parents[2] / "docs" / "fleet"
SCHEMA = "fleet"


@dataclass
class Program:
    """One that listens at a port; what it knows is in files."""

    argv: tuple[str, ...]
    port: int
    log: Path
    until_ready: Callable[[int, subprocess.Popen[bytes]], None]
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"HOME": str(self.log.parent), "PATH": os.environ["PATH"]},
                start_new_session=True,
            )
        self.until_ready(self.port, self.process)

    def kill(self) -> None:
        """With what it has started."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


@dataclass(frozen=True)
class Servers:
    postgres: postgres_cluster.Server
    temporal: Program
    hub: Program
    repositories: Path  # what the hub has
    database: str  # as one machine with the server reaches it

    @property
    def postgres_socket(self) -> str:
        folder = parse_qs(urlsplit(self.postgres.url).query)["host"][0]
        return f"{folder}/.s.PGSQL.5432"

    def database_at(self, port: int) -> str:
        """As a host reaches it, by a wire that ends at that port."""
        return f"postgresql://postgres@127.0.0.1:{port}/postgres?options=-csearch_path%3D{SCHEMA}"


@contextmanager
def running(place: Path, *settings: str) -> Generator[Servers]:
    """PostgreSQL, Temporal with its file, and a git daemon."""
    repositories = place / "hub"
    repositories.mkdir(parents=True)
    with ExitStack() as stack:
        postgres = stack.enter_context(
            postgres_cluster.server("fsync=off", "max_connections=300", *settings)
        )
        temporal, hub = _temporal(place), _hub(repositories, place / "hub.log")
        for it in (temporal, hub):
            stack.callback(it.kill)
            it.start()
        database = postgres_cluster.with_schema(postgres.url, SCHEMA)
        yield Servers(postgres, temporal, hub, repositories, database)


def _temporal(place: Path) -> Program:
    port = free_port()
    program = (must_have_temporal(), "server", "start-dev", "--headless", "--ip", "127.0.0.1")
    file = ("--db-filename", str(place / "temporal.db"), "--log-level", "error")
    argv = (*program, "--port", str(port), *file, *_advised())
    return Program(argv, port, place / "temporal.log", until_temporal_answers)


def _advised() -> tuple[str, ...]:
    """What our pages advise for Temporal."""
    told = yaml.safe_load((DOCS / "temporal.yaml").read_text())
    values = (
        f"--dynamic-config-value={key}={json.dumps(it[0]['value'])}" for key, it in told.items()
    )
    return tuple(values)


def _hub(repositories: Path, log: Path) -> Program:
    port = free_port()
    where = ("--reuseaddr", "--listen=127.0.0.1", f"--port={port}", f"--base-path={repositories}")
    may = ("--export-all", "--enable=receive-pack", "--max-connections=0")
    return Program(("git", "daemon", *where, *may), port, log, until_it_listens)
