"""The program that starts services and becomes the command, with servers that a test writes."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lockgate.adapters.sandbox.services import serving

pytestmark = pytest.mark.measured

PROGRAM = (sys.executable, "-m", "lockgate.adapters.sandbox.services.serving")
STAYS = "exec sleep 86131"
# Each notes how it was called, for the test to read.
INITDB = 'echo "initdb $*" >> "$CALLS"; touch "$2/made"'
POSTGRES = (
    'echo "postgres $*" >> "$CALLS"; printf "1\\nready\\n" > "$2/postmaster.pid"; exec sleep 86131'
)
PSQL = 'cat >> "$CALLS"'
REDIS = """\
import os, signal, socket, sys
words = sys.argv[1:]
if words[words.index("--save") + 1]:
    signal.signal(signal.SIGTERM, lambda *_: (open("data/dump.rdb", "w").close(), os._exit(0)))
with socket.create_server(("127.0.0.1", int(words[words.index("--port") + 1]))) as server:
    while True:
        with server.accept()[0] as client:
            said = client.recv(100).decode()
            client.sendall(b"PONG" if words[-1] in said else b"NOAUTH")
"""


@dataclass
class Served:
    code: int
    out: str
    err: str


@dataclass
class Box:
    place: Path
    prepared: str = ""
    ports: str = ""
    within: float = 30.0
    services: list[serving.Asked] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.place / "bin").mkdir()
        self.calls.touch()

    @property
    def calls(self) -> Path:
        return self.place / "calls"

    def installs(self, name: str, script: str, by: str = "/bin/sh") -> None:
        file = self.place / "bin" / name
        file.write_text(f"#!{by}\n{script}\n")
        file.chmod(0o755)

    def asks(self, name: str, **more: object) -> None:
        asked = {"kind": "", "command": "", "ready": "", "port": 0, "env": {}, "prepare": ""}
        self.services.append({"name": name, **asked, **more})  # type: ignore[typeddict-item]  # a test's own

    def runs(self, *command: str) -> Served:
        order: serving.Order = {
            "place": str(self.place / "place"),
            "told": str(self.place / "told"),
            "prepared": self.prepared,
            "within": self.within,
            "ports": self.ports,
            "services": self.services,
        }
        path = f"{self.place / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            (*PROGRAM, json.dumps(order), *command),
            env=os.environ | {"PATH": path, "CALLS": str(self.calls)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Served(done.returncode, done.stdout, done.stderr)

    def told(self, name: str) -> str:
        file = self.place / "told" / name
        return file.read_text() if file.exists() else ""


@pytest.fixture
def box(tmp_path: Path) -> Box:
    place = tmp_path / "box"
    place.mkdir()
    return Box(place)


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_command_finds_its_service_by_variables_and_its_data_is_gone_afterwards(box) -> None:
    started = f'echo "$PORT" > "$DATA/port"; touch "$SCRATCH/here"; {STAYS}'
    box.asks(
        "my-queue", command=started, ready='test -s "$DATA/port"', env={"AT": "x:$MY_QUEUE_PORT"}
    )

    done = box.runs("sh", "-c", 'echo "$MY_QUEUE_HOST $MY_QUEUE_PORT $AT"; exit 3')

    host, port, at = done.out.split()
    assert (done.code, host, at) == (3, "127.0.0.1", f"x:{port}")
    until(lambda: not (box.place / "place").exists())
    assert box.told("ended") == ""


def test_a_service_that_ends_while_the_command_runs_is_told_of(box) -> None:
    box.asks(
        "queue", command='until test -e "$CALLS.go"; do sleep 0.01; done; echo no disk; exit 4'
    )
    seen = f"{box.place}/told/ended"

    done = box.runs("sh", "-c", f'touch "$CALLS.go"; until test -e "{seen}"; do sleep 0.01; done')

    assert done.code == 0
    assert box.told("ended") == "queue ended with exit code 4; it said: no disk"


def test_a_service_that_starts_another_in_the_background_may_end(box) -> None:
    box.asks("queue", command="true")

    done = box.runs("sh", "-c", "sleep 0.1")

    assert (done.code, box.told("ended")) == (0, "")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (
            {"command": "echo no disk; exit 4", "ready": "false"},
            "queue ended with exit code 4; it said: no disk",
        ),
        (
            {"command": STAYS, "ready": "false"},
            "queue was not ready within 0.3 s; it said: nothing",
        ),
        (
            {"command": STAYS, "ready": "sleep 9"},
            "queue was not ready within 0.3 s; it said: nothing",
        ),
        ({"command": "kill -9 $$", "ready": "false"}, "queue was ended by signal 9"),
    ],
)
def test_where_a_service_does_not_start_its_command_does_not_either(box, asked, why) -> None:
    box.within = 0.3
    box.asks("first", command=STAYS)
    box.asks("queue", **asked)

    done = box.runs("echo", "started")

    assert (done.code, done.out) == (serving.NOT_READY, "")
    assert why in done.err
    assert box.told("failed") == done.err.rstrip("\n")


def test_a_port_that_another_program_took_first_is_given_up_for_the_next_one(box) -> None:
    once = 'test -e "$DATA/tried" || { touch "$DATA/tried"; echo port in use; exit 1; }; '
    box.asks("queue", command=f'{once} touch "$DATA/up"; {STAYS}', ready='test -e "$DATA/up"')

    assert box.runs("true").code == 0


def test_a_port_of_its_own_is_used_where_it_is_free_and_refused_where_it_is_not(box) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        box.asks("queue", command=STAYS, port=port)
        refused = box.runs("true")
    (box.place / "told" / "failed").unlink()

    done = box.runs("sh", "-c", 'echo "$QUEUE_PORT"')

    assert refused.code == serving.NOT_READY
    assert f"queue wants port {port}, and another program listens there" in refused.err
    assert (done.code, done.out) == (0, f"{port}\n"), done.err


def test_the_command_that_lets_ports_through_comes_first(box) -> None:
    box.asks(
        "queue",
        command=f'cat "{box.place}/told/.ports" > "$CALLS"; {STAYS}',
        ready='test -s "$CALLS"',
    )
    box.ports = "echo let through"
    assert box.runs("true").code == 0
    assert box.calls.read_text() == "let through\n"

    box.ports = "echo no such port; exit 1"
    (box.place / "told" / "ready").unlink()
    done = box.runs("true")

    assert (done.code, done.err) == (
        serving.NOT_READY,
        "the ports that are let through: no such port\n",
    )


def test_data_is_made_once_and_each_command_starts_from_a_copy(box) -> None:
    box.asks("queue", command=STAYS, prepare='echo one > "$DATA/rows"')
    made = box.runs()
    assert made.code == 0, made.err
    (box.place / "place").rename(box.place / "made")
    box.prepared = str(box.place / "made")
    box.services[0]["command"] = f'cat "$DATA/rows" > "$CALLS"; echo two > "$DATA/rows"; {STAYS}'
    box.services[0]["ready"] = 'test -s "$CALLS"'

    assert box.runs("true").code == 0
    assert box.calls.read_text() == "one\n"
    assert (box.place / "made" / "queue" / "data" / "rows").read_text() == "one\n"


def test_data_whose_preparation_fails_is_not_made(box) -> None:
    box.asks("queue", command=STAYS, prepare="echo bad rows; exit 5")

    done = box.runs()

    assert (done.code, done.err) == (
        serving.NOT_READY,
        "prepare of queue exited 5; it said: bad rows\n",
    )


def test_postgres_is_started_for_this_machine_only_and_gets_its_password_by_its_socket(box) -> None:
    for name, script in (("initdb", INITDB), ("postgres", POSTGRES), ("psql", PSQL)):
        box.installs(name, script)
    box.asks("db", kind="postgres")

    done = box.runs("sh", "-c", 'echo "$DATABASE_URL $DB_URL $PGPASSWORD $PGPORT"')

    url, same, password, port = done.out.split()
    assert url == same == f"postgresql://postgres:{password}@127.0.0.1:{port}/app"
    initdb, postgres, *sql = box.calls.read_text().splitlines()
    assert "--auth-host=scram-sha-256" in initdb
    assert f"-p {port}" in postgres
    assert "listen_addresses=127.0.0.1" in postgres
    assert sql == [f"ALTER ROLE postgres PASSWORD '{password}';", "CREATE DATABASE app;"]


def test_a_database_whose_password_cannot_be_set_is_not_used(box) -> None:
    for name, script in (("initdb", INITDB), ("postgres", POSTGRES)):
        box.installs(name, script)
    box.installs("psql", "echo no socket >&2; exit 2")
    box.asks("db", kind="postgres")

    done = box.runs("true")

    assert done.err == "db was not started: its password was not set: no socket\n"


def test_redis_lets_in_who_knows_the_password_and_saves_only_what_is_kept(box) -> None:
    box.installs("redis-server", REDIS, by=sys.executable)
    box.asks("cache", kind="redis")

    made = box.runs()
    kept = (box.place / "place" / "cache" / "data" / "dump.rdb").exists()
    (box.place / "place").rename(box.place / "made")
    done = box.runs("sh", "-c", 'echo "$REDIS_URL $REDIS_PASSWORD $REDIS_PORT"')

    assert (made.code, kept) == (0, True), made.err
    url, password, port = done.out.split()
    assert url == f"redis://default:{password}@127.0.0.1:{port}/0"
