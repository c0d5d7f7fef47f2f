"""One attempt of a command on a checkout, in a room of its own: the tree is never changed by it."""

import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from lockgate.adapters.run import Cut, Finished
from lockgate.adapters.sandbox import cgroup
from lockgate.adapters.sandbox.bubblewrap import MEBIBYTE, Box, Mount, boxed, host_lately
from lockgate.adapters.sandbox.keeper import Keeper
from lockgate.adapters.sandbox.leavings import kept, tail_of
from lockgate.adapters.sandbox.ports import let_through, listening_inside
from lockgate.adapters.sandbox.probe import can_overlay
from lockgate.adapters.sandbox.room import (
    OUT,
    OVER,
    SCRATCH,
    UNDER,
    Room,
    room_for,
    size_of_memory,
)
from lockgate.adapters.sandbox.running import Boxed, run_boxed
from lockgate.core.config.settings import SandboxSettings, Service

TAIL = 4000
READY_WITHIN = 30  # seconds
UNSEEN = 1024  # more processes than can be started between two looks at how many there are

# Each service is a command in the background; what it says, and how it ends, is told in files.
SERVING = f"""told=$1 within=$2 ports=$3 command=$4 number=0
shift 4
failed() {{
  {{ printf "%s: " "$1"; tail -c {TAIL} "$told/$number"; }} >"$told/failed"
  exit 125
}}
if [ -n "$ports" ]; then
  sh -c "$ports" >"$told/0" 2>&1 || failed "the ports that are let through"
fi
while [ $# -gt 0 ]; do
  number=$((number + 1))
  {{ sh -c "$2" || echo $? >"$told/ended"; }} >"$told/$number" 2>&1 </dev/null &
  timeout "$within" sh -c '
    until [ -z "$1" ] || sh -c "$1" >/dev/null 2>&1; do
      [ ! -e "$0/ended" ] || exit 1
      sleep 0.1
    done' "$told" "$3" </dev/null || failed "$1"
  shift 3
done
: >"$told/ready"
exec sh -c "$command"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """A command, what it judges, what it sees beside that, and what it may use."""

    command: str
    checkout: Path
    mounts: tuple[Mount, ...]
    sandbox: SandboxSettings
    services: tuple[Service, ...]
    deadline: float
    hidden: tuple[str, ...] = ()  # never shown, whatever else is


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    finished: Finished
    said: str  # by the service that did not become ready
    reports: Path | None
    seconds: float
    level: str


def enclosed(it: Try, cancelled: Callable[[], bool]) -> Tried:
    """In the sandbox, which must work here."""
    sandbox = it.sandbox
    size = size_of_memory(sandbox.scratch_mb) if can_overlay(it.checkout.parent) else 0
    allowed = () if sandbox.network else sandbox.allow
    wall = (sandbox.memory_mb + size) * MEBIBYTE
    with (
        room_for(it.checkout, size) as room,
        cgroup.group(cgroup.where() if size else None, wall, sandbox.pids) as group,
        let_through(allowed) as doors,
        closing(Keeper(room, sandbox.memory_mb, sandbox.pids, group)) as keeper,
    ):
        argv = tuple(argv_of(it, OVER["told"], listening_inside(allowed)))
        keeper.services = bool(allowed or it.services)
        box = _box(it, room, doors)
        made = boxed(box, argv, host_lately())
        made = replace(made, direct=room.entered_by(made.direct, group, box.processes))
        level = _level(sandbox, overlay=bool(size), group=bool(group), filter=bool(made.filter))
        return tried(it, made, keeper, cancelled, level)


def tried(it: Try, made: Boxed, keeper: Keeper, cancelled: Callable[[], bool], level: str) -> Tried:
    begun = time.monotonic()
    done = run_boxed(made, deadline=it.deadline, cancelled=cancelled, warden=keeper)
    seconds = time.monotonic() - begun
    said = ""
    if done.cut is Cut.SERVICE:
        with _directory(keeper, "told") as told:
            said = "" if told is None else tail_of(told, "failed", TAIL)
    with _directory(keeper, "out") as out:
        reports = None if out is None else kept(out, it.checkout)
    return Tried(finished=done, said=said, reports=reports, seconds=seconds, level=level)


@contextmanager
def _directory(keeper: Keeper, name: str) -> Generator[int | None]:
    opened = keeper.opened(name)
    try:
        yield opened
    finally:
        if opened is not None:
            os.close(opened)


def _box(it: Try, room: Room, doors: tuple[Mount, ...]) -> Box:
    return Box(
        mounts=(*it.mounts, *room.mounts(OVER), *doors),
        under=room.mounts(UNDER),
        directory=OVER["tree"],
        env={"OUT": OUT, "SCRATCH": SCRATCH},
        network=it.sandbox.network,
        read=it.sandbox.read,
        hidden=it.hidden,
        processes=it.sandbox.pids + max(it.sandbox.pids, UNSEEN),
    )


def argv_of(it: Try, told: str, ports: str) -> Iterator[str]:
    """As it is written, by `sh -c`: of a pipeline the last command's exit is the whole's."""
    yield from ("/bin/sh", "-c")
    if not it.services and not ports:
        yield it.command
        return
    yield from (SERVING, "services", told, str(READY_WITHIN), ports, it.command)
    for service in it.services:
        yield from (service.name, service.command, service.ready)


def _level(sandbox: SandboxSettings, *, overlay: bool, group: bool, filter: bool) -> str:
    parts = ("bubblewrap", *(("seccomp",) if filter else ()), "overlay" if overlay else "copy")
    opened = ("network",) if sandbox.network else sandbox.allow
    return "+".join((*parts, "cgroup" if group else "watchdog", *opened))
