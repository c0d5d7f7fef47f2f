"""A fleet: hosts in namespaces, the servers that they share, and the people who give it tasks."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import dict_row

from lockgate.bootstrap import open_app
from lockgate.core.model.task import Status, Task, TaskId
from lockgate.errors import LockgateError
from lockgate.ports import Project, TaskFilter
from tests.adapters.engine.fleet_yard import free_port
from tests.e2e.orchestra import COMPLETE, Orchestra, hands_off, worker
from tests.fleet import hub_ssh
from tests.fleet.hosts import Host, Relays
from tests.fleet.releases import release_before
from tests.fleet.servers import Servers, running
from tests.scenarios.world import git
from tests.store import postgres_cluster

HUB = "ssh://hub.test/hub.git"
ENDED = frozenset({Status.DONE, Status.CANCELLED})
MANY = 100_000
CONFIG = """\
[project]
agent = "scripted"
slots = 12
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "{command}"
attempts = 1
[merge]
mode = "auto"
window = 12
"""
FILE = """\
[temporal]
address = "127.0.0.1:{temporal}"
[host]
name = "{name}"
slots = {slots}
judges = {judges}
{more}
[fleet]
beat = {beat:g}
sessions_lost_after = {lost:g}
"""
Row = Mapping[str, object]
GATE = "! grep -rq bad n-*"


@dataclass(frozen=True)
class Times:
    """Of `[fleet]`, in seconds."""

    beat: float = 10.0
    lost: float = 20.0


def needs_namespaces() -> None:
    """The test is skipped where hosts cannot have namespaces of their own."""
    if sys.platform != "linux" or not Path("/proc/self/ns/net").exists():
        pytest.skip("needs Linux with namespaces")
    with suppress(OSError):
        if Path("/proc/self/status").read_text().find("Uid:\t0\t") >= 0:
            return
    pytest.skip("needs root, for namespaces of a host's own")


def plays(branch: str, seconds: float) -> str:
    """A worker that writes a file of its own, works for a while and hands in."""
    steps = (f'{{ write = "n-{branch}", text = "good\\n" }}', f"{{ sleep = {seconds:.1f} }}")
    return worker(*steps, hands_off(branch), COMPLETE)


@dataclass
class Site:
    place: Path
    servers: Servers
    relays: Relays
    scripts: Mapping[str, str]  # by branch
    command: str = GATE
    times: Times = Times()
    hosts: dict[str, Host] = field(default_factory=dict[str, Host])
    ports: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.ports = {it: free_port() for it in ("postgres", "temporal")}
        self.ports["hub"] = self.servers.hub.port
        config = CONFIG.format(command=self.command)
        self.people = Orchestra(self.place / "people", config, dict(self.scripts))
        self.people.app.close()
        with_ssh(self.people.environ, self.place / "people" / "bin", self.servers.hub.port)
        os.environ["PATH"] = self.people.environ["PATH"]  # the people's program is this one too
        self.people.environ["LOCKGATE_DATABASE"] = self.servers.database
        self.people.app = open_app(self.people.environ)
        self.repository = self.servers.repositories / "hub.git"
        git(self.people.root, "clone", "--quiet", "--bare", ".", str(self.repository))
        self.told("fleet", "hub", HUB)
        self.people.app.configuration.agree(self.project)

    def add(
        self,
        name: str,
        *,
        slots: int = 4,
        judges: int = 2,
        more: str = "",
        disk: str = "",
        shown: tuple[Path, ...] = (),
        before: bool = False,
        ahead: float = 0.0,
    ) -> Host:
        """A host that has power, and no worker yet; `before`: of the release before this one.

        Its clock is so many seconds ahead.
        """
        own = self.place / name
        environ = {
            **self.people.environ,
            "HOME": str(own / "user"),
            "LOCKGATE_HOME": str(own / "home"),
            "LOCKGATE_TRUST": self._agreed,
            "LOCKGATE_DATABASE": self.servers.database_at(self.ports["postgres"]),
        }
        if before:
            release = release_before(self.place / "before")
            environ["PYTHONPATH"], shown = str(release), (*shown, release)
        with_ssh(environ, own / "bin", self.ports["hub"])
        if ahead:
            with_clock(environ, own / "lib", ahead)
        (own / "user").mkdir()
        (own / "home").mkdir()
        settings = FILE.format(
            temporal=self.ports["temporal"],
            name=name,
            slots=slots,
            judges=judges,
            more=more,
            beat=self.times.beat,
            lost=self.times.lost,
        )
        (own / "home" / "fleet.toml").write_text(settings)
        self.hosts[name] = host = Host(
            name=name,
            own=own,
            wires={
                self.ports["postgres"]: self.servers.postgres_socket,
                self.ports["temporal"]: self.servers.temporal.port,
                self.ports["hub"]: self.servers.hub.port,
            },
            relays=self.relays,
            environ=environ,
            hide=(self.place, Path(tempfile.gettempdir()), Path("/dev/shm")),  # noqa: S108 - no file
            disk=disk,
            shown=shown,
        )
        host.power_on()
        return host

    def bring_up_to_date(self, host: Host) -> None:
        """Its worker stops, and starts as this release; its agents work on."""
        host.stop()
        self.until(lambda: not host.alive())
        usual = self.people.environ.get("PYTHONPATH", "")
        host.environ = {**host.environ, "PYTHONPATH": usual}
        host.start()

    @property
    def project(self) -> Project:
        return self.people.app.projects.here(self.people.root)

    @property
    def _agreed(self) -> str:
        """What people said yes to, for the hosts: that their repository lands by itself."""
        known = self.people.app.configuration
        commit = known.base_of(self.project).commit
        settings = known.settings_at(self.project, commit)
        return known.trust.question(self.project, commit, settings).digest

    # What people do and see.

    def told(self, *argv: str) -> str:
        done = self.people.lockgate(*argv)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def task(self, id: TaskId) -> Task:
        return self.people.task(id)

    def all_tasks(self) -> list[Task]:
        return list(self.people.app.store.page(TaskFilter(), None, MANY).tasks)

    def open_tasks(self) -> list[Task]:
        return [it for it in self.all_tasks() if it.status not in ENDED]

    def lanes(self) -> dict[str, Row]:
        """The rows as they are, past the program; none where PostgreSQL is down."""
        with suppress(psycopg.Error), psycopg.connect(self.servers.database) as connection:
            found = connection.cursor(row_factory=dict_row).execute("SELECT * FROM lanes")
            return {str(it["lane"]): it for it in found}
        return {}

    def leader(self) -> str:
        """Who has the claim of the lane `lead`."""
        row = self.lanes().get("lead")
        return str(row["host"]) if row and row["token"] else ""

    def until(self, true: Callable[[], bool], seconds: float = 120.0) -> float:
        """How long it took; what cannot be looked at now is not true yet."""
        began = time.monotonic()
        while True:
            with suppress(LockgateError):
                if true():
                    return time.monotonic() - began
            assert time.monotonic() - began < seconds, self.story()
            time.sleep(0.1)

    def until_done(self, *ids: TaskId, seconds: float = 180.0) -> float:
        return self.until(lambda: all(self.task(id).status is Status.DONE for id in ids), seconds)

    def started(self, *names: str, **facts: object) -> tuple[Host, ...]:
        """Hosts with workers, once one of them leads."""
        # The facts are those of `add`.
        made = tuple(self.add(name, **facts) for name in names)  # type: ignore[arg-type]
        for it in made:
            it.start()
        self.until(lambda: bool(self.leader()))
        return made

    # The servers.

    def postgres_up(self) -> None:
        """The children of one that was killed may hold its memory for a moment."""
        for _ in range(50):
            try:
                self.servers.postgres.start()
            except RuntimeError:
                time.sleep(0.2)
            else:
                return
        self.servers.postgres.start()

    # The end.

    def on_main(self) -> list[str]:
        """The branches whose files a commit of the hub's main brought, one for each commit."""
        argv = ("log", "--first-parent", "--diff-filter=A", "--name-only", "--format=", "main")
        lines = git_says(self.repository, *argv).splitlines()
        return [it.removeprefix("n-") for it in lines if it.startswith("n-") and it != "n-0"]

    def refused(self) -> tuple[int, int]:
        """Late answers, by the hosts' logs, and as `fleet status` counts them."""
        said = sum(it.log().count("a late answer was refused") for it in self.hosts.values())
        with psycopg.connect(self.servers.database) as connection:
            row = connection.execute("SELECT coalesce(sum(refused), 0) FROM hosts").fetchone()
        return said, int(row[0]) if row else 0

    def story(self) -> str:
        """What happened, for who reads a failure."""
        told = [f"--- {it.name}:\n{it.log()[-3000:]}" for it in self.hosts.values()]
        told += [f"{it.id} {it.status} at {it.host}" for it in self.open_tasks()]
        told += [str(it) for it in self.lanes().values()]
        with suppress(Exception):
            told.append(self.told("fleet", "status"))
        store = self.people.app.store
        with suppress(LockgateError):
            for it in store.events(None, max(0, store.head() - 40), 40):
                told.append(f"{it.seq} {it.task} {it.type} {str(dict(it.data))[:200]}")
        return "\n".join(told)

    def close(self) -> None:
        for it in self.hosts.values():
            it.power_off()
        self.people.app.close()


def with_ssh(environ: dict[str, str], where: Path, port: int) -> None:
    """Git finds the hub by it: see `hub_ssh`."""
    where.mkdir(parents=True, exist_ok=True)
    program = Path(hub_ssh.__file__).read_text().replace("PORT = 0", f"PORT = {port}")
    (where / "ssh").write_text(f"#!{sys.executable} -IS\n{program}")
    (where / "ssh").chmod(0o755)
    environ["PATH"] = f"{where}:{environ['PATH']}"


def with_clock(environ: dict[str, str], where: Path, ahead: float) -> None:
    """Every Python program that is started so has a clock of the day that is wrong."""
    where.mkdir(parents=True)
    shifted = f"import time\nright = time.time\ntime.time = lambda: right() + {ahead!r}\n"
    (where / "sitecustomize.py").write_text(shifted)
    environ["PYTHONPATH"] = f"{where}:{environ.get('PYTHONPATH', '')}".rstrip(":")


def git_says(repository: Path, *argv: str) -> str:
    argv = ("git", "-c", "safe.directory=*", "--git-dir", str(repository), *argv)
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


@contextmanager
def opened(
    place: Path, scripts: Mapping[str, str], *, command: str = GATE, times: Times = Times()
) -> Generator[Site]:
    relays, path = Relays(), os.environ["PATH"]
    with running(place) as servers:
        site = Site(place, servers, relays, scripts, command, times)
        try:
            yield site
        finally:
            os.environ["PATH"] = path
            site.close()
            relays.close()


def must_have_servers() -> None:
    needs_namespaces()
    why = postgres_cluster.missing()
    if why:
        pytest.skip(why)
