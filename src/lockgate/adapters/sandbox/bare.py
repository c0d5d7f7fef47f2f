"""One attempt of a command that nothing encloses, held by nothing but its deadline."""

import os
from collections.abc import Callable
from contextlib import closing

from lockgate.adapters.sandbox.attempt import Tried, Try, argv_of, tried
from lockgate.adapters.sandbox.keeper import Keeper
from lockgate.adapters.sandbox.room import COPIED, room_for, room_in
from lockgate.adapters.sandbox.running import Boxed
from lockgate.adapters.sandbox.stragglers import end_stragglers, start_now
from lockgate.ports import Upkeep


def bare(it: Try, upkeep: Upkeep | None, cancelled: Callable[[], bool]) -> Tried:
    """In the checkout itself where its upkeep is known, else on a copy of it."""
    with (
        room_in(it.checkout, upkeep) if upkeep else room_for(it.checkout, 0, COPIED) as room,
        closing(Keeper(room, it.sandbox.memory_mb, it.sandbox.pids, None)) as keeper,
    ):
        keeper.enters(os.getpid(), 0)
        keeper.services = bool(it.services)
        if it.services:
            (room.place / "told").mkdir(exist_ok=True)
        argv = tuple(argv_of(it, f"{room.place}/told", ""))
        environment = _environment(str(room.place))
        made = Boxed((), (), argv, directory=str(room.tree), environment=environment)
        since = start_now()
        try:
            return tried(it, made, keeper, cancelled, "none")
        finally:
            end_stragglers(f"SCRATCH={environment['SCRATCH']}", since)


def _environment(place: str) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": f"{place}/home",
        "LANG": "C.UTF-8",
        "TMPDIR": f"{place}/tmp",  # noqa: S108 - the attempt's own
        "OUT": f"{place}/out",
        "SCRATCH": f"{place}/scratch",
    }
