"""A database of its own for each gate: how soon it can be used, beside PostgreSQL by hand.

The peer copies the same data directory and starts it with `pg_ctl`, without a sandbox.
"""

import itertools
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from bench.harness import AtMost, Measure, Work, clocked, interleave, main, say
from lockgate.adapters.gate_commands import CommandGates
from lockgate.adapters.reports import read_reports
from lockgate.adapters.sandbox import owner, trouble
from lockgate.adapters.sandbox.service_making import Making, make
from lockgate.adapters.sandbox.services import serving
from lockgate.core.config.settings import SandboxSettings, Service, ServiceKind
from lockgate.core.model.gates import CommandGate, Placement, Where
from lockgate.ports import GateRun

ROUNDS = 30
SECONDS = 60
DATABASE = Service("db", kind=ServiceKind.POSTGRES)
READY, WITHOUT = "a gate with a database, ready and used", "the same gate without one"
PEER = "cp -a and pg_ctl start"


def bench(where: Path) -> list[Measure]:
    say("\na database for each gate")
    why = trouble() or serving.missing("postgres")
    if why:
        say(f"  not measured: {why}")
        return []
    where.chmod(0o711)  # as root the peer runs as another user
    data = where / "data"
    begin = time.perf_counter()
    make(Making(services=(DATABASE,), target=data))
    say(f"  the data that all start from, made once: {time.perf_counter() - begin:.1f} s")
    contenders = {
        READY: clocked(_gate(where, 'psql -qc "select 1"', (DATABASE,), data)),
        WITHOUT: clocked(_gate(where, "true", (), None)),
        PEER: _by_hand(where, data / "db" / "data"),
    }
    found = interleave(contenders, ROUNDS)
    ours = found[READY]
    return [
        Measure(name=READY, ours=ours, peer="2 seconds", theirs=2.0, target=AtMost(1)),
        Measure(name=READY, ours=ours, peer=PEER, theirs=found[PEER], target=AtMost(2)),
        Measure(name=READY, ours=ours, peer=WITHOUT, theirs=found[WITHOUT]),
    ]


def _gate(
    where: Path, command: str, services: tuple[Service, ...], data: Path | None
) -> Callable[[], object]:
    checkout = where / "checkout"
    checkout.mkdir(exist_ok=True)
    place = Placement(serial=True, on=(Where.CHANGE,))
    gate = CommandGate(name="tests", place=place, command=command, timeout=SECONDS)
    run = GateRun(
        checkout=checkout,
        base=where,
        commit="",
        tree="",
        config_hash="",
        sandbox=SandboxSettings(),
        services=services,
        data=data,
    )
    gates = CommandGates(read_reports)

    def attempt() -> None:
        done = gates.attempt(gate, run, lambda: False)
        if done.exit_code != 0:
            raise RuntimeError(done.why or done.err)

    return attempt


def _by_hand(where: Path, data: Path) -> Work:
    """As the user that the sandbox has, for PostgreSQL does not run as root."""
    uid, gid = owner()
    place = where / "by-hand"
    place.mkdir()
    os.chown(place, uid, gid)
    control = Path(serving.program("postgres") or "").resolve().with_name("pg_ctl")
    numbers = itertools.count()

    def run(*argv: str) -> None:
        subprocess.run(
            argv, check=True, user=uid, group=gid, extra_groups=[], cwd="/",
            stdout=subprocess.DEVNULL, timeout=SECONDS,
        )  # fmt: skip

    def start() -> float:
        copy = place / str(next(numbers))
        begin = time.perf_counter()
        run("cp", "-a", "--reflink=auto", str(data), str(copy))
        options = f"-k {place} -c listen_addresses= -c fsync=off"
        run(str(control), "start", "-w", "-s", "-D", str(copy), "-l", f"{copy}.log", "-o", options)
        seconds = time.perf_counter() - begin
        run(str(control), "stop", "-m", "immediate", "-s", "-D", str(copy))
        shutil.rmtree(copy)
        return seconds

    return start


if __name__ == "__main__":
    main(bench)
