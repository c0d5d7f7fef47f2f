"""One attempt of a command that nothing encloses, held by nothing but its deadline."""

import os
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path

from lockgate.adapters.sandbox.attempt import Tried, Try, argv_of, tried
from lockgate.adapters.sandbox.keeper import Keeper
from lockgate.adapters.sandbox.room import COPIED, Room, room_for, room_in
from lockgate.adapters.sandbox.running import Boxed
from lockgate.adapters.sandbox.sameness import have_as_made
from lockgate.adapters.sandbox.stragglers import end_stragglers, start_now
from lockgate.ports import Upkeep


def bare(it: Try, upkeep: Upkeep | None, cancelled: Callable[[], bool], *, alone: bool) -> Tried:
    """In the checkout itself where its upkeep is known and nobody else is in it, else on a copy."""
    with (
        _room(it.checkout, upkeep, alone=alone) as room,
        closing(Keeper(room, it.sandbox.memory_mb, it.sandbox.pids, None)) as keeper,
    ):
        keeper.enters(os.getpid(), 0)
        keeper.services = bool(it.services)
        if it.services:
            (room.place / "told").mkdir(exist_ok=True)
        argv = tuple(argv_of(it, f"{room.place}/told", ""))
        environment = _environment(str(room.place))
        made = Boxed(
            program=(), options=(), argv=argv, directory=str(room.tree), environment=environment
        )
        since = start_now()
        try:
            return tried(it, made, keeper, cancelled, "none")
        finally:
            end_stragglers(f"SCRATCH={environment['SCRATCH']}", since)


@contextmanager
def _room(checkout: Path, upkeep: Upkeep | None, *, alone: bool) -> Generator[Room]:
    """To have the checkout as it was made may take a moment of waiting: the later the shorter."""
    if upkeep and alone:
        with room_in(checkout, upkeep) as room:
            have_as_made(checkout, upkeep)
            yield room
        return
    if upkeep:
        have_as_made(checkout, upkeep)
    with room_for(checkout, 0, COPIED) as room:
        yield room


def _environment(place: str) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": f"{place}/home",
        "LANG": "C.UTF-8",
        "TMPDIR": f"{place}/tmp",  # noqa: S108 - the attempt's own
        "OUT": f"{place}/out",
        "SCRATCH": f"{place}/scratch",
    }
