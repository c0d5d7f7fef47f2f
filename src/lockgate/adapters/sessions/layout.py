"""Writes down a session before its runner starts: its door, its agent's HOME, its spec.json."""

import os
import secrets
import sys
from pathlib import Path

from lockgate.adapters.sandbox import cgroup, owner
from lockgate.adapters.sessions.agent_home import AgentHome
from lockgate.adapters.sessions.enclosure import make_door, program_of
from lockgate.adapters.sessions.files import write_once
from lockgate.adapters.sessions.spec import Spec
from lockgate.ports import Start

LOG_BYTES = 16 << 20


def lay_out(start: Start, directory: Path, state: Path) -> None:
    """Safe to repeat: what was written down first stays, above all the token."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    make_door(directory / "door")
    home = AgentHome(start.home, owner() if start.sandboxed else (os.geteuid(), os.getegid()))
    home.make()
    home.write(start.launch.files, replace=True)
    home.write(start.launch.kept, replace=False)
    write_once(directory / "spec.json", _spec(start, directory, state))


def _spec(start: Start, directory: Path, state: Path) -> Spec:
    mark = f"{start.session}.{secrets.token_hex(8)}"
    return {
        "run": program_of(start, directory / "door", state, mark),
        "token": start.token,
        "mark": mark,
        "home": str(state),
        "python": sys.executable,
        "stdin": start.launch.stdin,
        "wall_seconds": start.wall_seconds,
        "silent_seconds": start.silent_seconds,
        "memory_mb": start.memory_mb,
        "disk_mb": start.disk_mb,
        "places": [str(start.desk.directory), str(start.home)],
        "group": str(cgroup.where() or "") if start.sandboxed and start.memory_mb else "",
        "log_bytes": LOG_BYTES,
        "interactive": start.interactive,
        "secrets": [[it.name, it.value] for it in start.secrets],
    }
