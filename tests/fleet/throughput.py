"""How much more three hosts test than one, and what each engine costs in CPU.

`python -m tests.fleet.throughput`: every gate sleeps for 20 seconds, so that the machine's cores do
not count. What is counted are trees of the train, which any host may test; the effects that tasks
asked for, and the jobs that hosts claimed. The same work is done by `lockgate up` with the engine
`local` first. Prints one table; it ends by itself.
"""

import argparse
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg

from lockgate.core.model.task import Status
from tests.e2e.orchestra import Orchestra
from tests.fleet.site import CONFIG, Site, Times, must_have_servers, opened, plays

GATE = "sleep {seconds:g}; ! grep -rq bad n-*"
JUDGES = 2
AT_LEAST = 2.5
IDLE = 10.0  # seconds of nothing to do, to see what that costs
HEAD = (
    "engine     hosts  trees  seconds  trees/h  idle/s  effects  CPU/effect  jobs  CPU/job"
    "  server idle/s  server CPU/job"
)

# What counts, in the database itself: nothing of the program knows of it.
IN_POSTGRES = """
CREATE SEQUENCE effects_asked MINVALUE 0 START 0;
CREATE SEQUENCE jobs_claimed MINVALUE 0 START 0;
SELECT nextval('effects_asked'), nextval('jobs_claimed');
CREATE FUNCTION one_effect() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM nextval(''effects_asked''); RETURN NULL; END';
CREATE FUNCTION one_job() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM nextval(''jobs_claimed''); RETURN NULL; END';
CREATE TRIGGER counted AFTER INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION one_effect();
CREATE TRIGGER counted AFTER UPDATE ON lanes FOR EACH ROW
    WHEN (NEW.epoch > OLD.epoch) EXECUTE FUNCTION one_job();
"""
IN_SQLITE = """
CREATE TABLE effects_asked (n INTEGER NOT NULL);
INSERT INTO effects_asked VALUES (0);
CREATE TRIGGER counted AFTER INSERT ON outbox BEGIN UPDATE effects_asked SET n = n + 1; END;
"""


@dataclass(frozen=True)
class Used:
    """CPU in seconds, and what was done, from a start until now."""

    at: float
    workers: float
    server: float
    effects: int
    jobs: int

    def since(self, before: "Used") -> "Used":
        return Used(
            self.at - before.at,
            self.workers - before.workers,
            self.server - before.server,
            self.effects - before.effects,
            self.jobs - before.jobs,
        )


@dataclass(frozen=True)
class Rate:
    engine: str
    hosts: int
    trees: int
    seconds: float  # from the first tree under test to the last landing
    idle: Used
    busy: Used  # from the first task on

    @property
    def an_hour(self) -> float:
        return self.trees / self.seconds * 3600 if self.seconds else 0.0

    @property
    def cpu(self) -> float:
        """Seconds of all workers, without what the same time costs with nothing to do."""
        return self.busy.workers - self.idle.workers / self.idle.at * self.busy.at

    def row(self) -> str:
        idle, busy, of_workers = self.idle, self.busy, self.cpu
        workers, server = idle.workers / idle.at, idle.server / idle.at
        of_server = busy.server - server * busy.at
        return (
            f"{self.engine:9}  {self.hosts:5}  {self.trees:5}  {self.seconds:7.1f}"
            f"  {self.an_hour:7.0f}  {_ms(workers, 1):>6}  {busy.effects:7}"
            f"  {_ms(of_workers, busy.effects):>10}  {busy.jobs or '-':>4}"
            f"  {_ms(of_workers, busy.jobs):>7}  {_ms(server, busy.jobs and 1):>13}"
            f"  {_ms(of_server, busy.jobs):>14}"
        )


def _ms(seconds: float, n: int) -> str:
    return f"{seconds / n * 1000:.0f} ms" if n else "-"


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.fleet.throughput")
    parser.add_argument("--trees", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=20.0, help="that a gate sleeps")
    asked = parser.parse_args()
    rates = [local(asked.trees, asked.seconds)]
    rates += [measured(hosts, asked.trees, asked.seconds) for hosts in (1, 3)]
    print("\n".join((HEAD, *(it.row() for it in rates))))
    for it in rates[1:]:
        more = _ms(it.cpu - rates[0].cpu, it.busy.jobs)
        print(f"with {it.hosts} hosts a job costs {more} of CPU more than the same work by local")
    gain = rates[2].an_hour / rates[1].an_hour
    print(f"three hosts test {gain:.2f} times what one does; at least {AT_LEAST} is asked for")
    return 0 if gain >= AT_LEAST else 1


def local(trees: int, seconds: float) -> Rate:
    """One `lockgate up`, as it is without a fleet."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        config = CONFIG.format(command=GATE.format(seconds=seconds))
        branches = [f"t{number}" for number in range(trees)]
        it = Orchestra(Path(folder), config, {name: plays(name, 0.1) for name in branches})
        it.app.store.head()  # the database is there
        with closing(sqlite3.connect(it.home / "lockgate.db")) as database:
            database.executescript(IN_SQLITE)
        it.up()
        assert it.process is not None
        pid = it.process.pid

        def counted(asked: str) -> int:
            with closing(sqlite3.connect(it.home / "lockgate.db")) as database:
                return int(database.execute(asked).fetchone()[0])

        def used() -> Used:
            effects = counted("SELECT n FROM effects_asked")
            return Used(time.monotonic(), cpu_of(pid), 0.0, effects, 0)

        def tests() -> bool:
            return bool(counted("SELECT count(*) FROM train_candidates"))

        it.until((it.home / "door.sock").exists)
        try:
            return _rate("local", it, 1, branches, used, tests)
        finally:
            it.close()


def measured(hosts: int, trees: int, seconds: float) -> Rate:
    names = [f"h{number + 1}" for number in range(hosts)]
    branches = [f"t{number}" for number in range(trees)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        scripts = {it: plays(it, 0.1) for it in branches}
        gate = GATE.format(seconds=seconds)
        with opened(Path(folder), scripts, command=gate, times=Times(10, 60)) as site:
            with psycopg.connect(site.servers.database) as connection:
                connection.execute(IN_POSTGRES)
            site.started(*names, slots=trees, judges=JUDGES)

            def tests() -> bool:
                return any(it.startswith("test ") for it in site.lanes())

            return _rate("temporal", site.people, hosts, branches, lambda: used_by(site), tests)


def used_by(site: Site) -> Used:
    with psycopg.connect(site.servers.database) as connection:
        asked = "SELECT (SELECT last_value FROM effects_asked), last_value FROM jobs_claimed"
        effects, jobs = connection.execute(asked).fetchone() or (0, 0)
    server = site.servers.temporal.process
    return Used(
        time.monotonic(),
        sum(it.cpu() for it in site.hosts.values()),
        cpu_of(server.pid) if server else 0.0,
        int(effects),
        int(jobs),
    )


def _rate(
    engine: str,
    people: Orchestra,
    hosts: int,
    branches: list[str],
    used: Callable[[], Used],
    under_test: Callable[[], bool],
) -> Rate:
    time.sleep(IDLE / 2)  # its start is over
    first = used()
    time.sleep(IDLE)
    begun = used()
    tasks, began = [people.create(it) for it in branches], 0.0
    if engine == "local":
        people.wake()
    last = time.monotonic() + 1800
    while any(people.task(it).status is not Status.DONE for it in tasks):
        assert time.monotonic() < last, people.story()
        began = began or (time.monotonic() if under_test() else 0.0)
        time.sleep(0.2)
    took = time.monotonic() - began if began else 0.0
    return Rate(engine, hosts, len(branches), took, begun.since(first), used().since(begun))


def cpu_of(pid: int) -> float:
    """Seconds that one process has used, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    must_have_servers()
    sys.exit(main())
