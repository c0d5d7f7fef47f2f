"""The orchestrator seen from outside: whether one runs, and how to start one."""

import sys
from pathlib import Path

from lockgate.adapters.lock import holder
from lockgate.adapters.run import start_detached


def orchestrator_pid(home: Path) -> int | None:
    return holder(home)


def start_orchestrator(home: Path, idle_seconds: float | None) -> None:
    """One in the background, which ends when it has been idle for so long."""
    idle = () if idle_seconds is None else ("--idle", str(idle_seconds))
    argv = (sys.executable, "-m", "lockgate", "up", *idle)
    start_detached(argv, home / "logs" / "orchestrator.log")
