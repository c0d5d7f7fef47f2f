"""What a session's program sees of the machine, in the sandbox or without one."""

import os
import secrets
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import lockgate
from lockgate.adapters.sandbox import Box, Mount, boxed, inside_path
from lockgate.adapters.sandbox.proof import PIPES, asked
from lockgate.adapters.sessions.runner.proc import MARK
from lockgate.adapters.sessions.runner.spec import Program
from lockgate.core.model.agents import AGENT_HOME, DOOR, WORKSPACE
from lockgate.ports import Desk, Start

BASE = "/base.git"
CLIENT = Path(lockgate.__file__).parent / "faces" / "client.py"


def make_door(door: Path) -> None:
    """The directory with the session's `lockgate` command; its runner adds the socket."""
    (door / "bin").mkdir(parents=True, exist_ok=True)
    command = " ".join(shlex.quote(it) for it in (sys.executable, "-I", "-S", str(CLIENT)))
    new = door / "bin" / f"lockgate.{secrets.token_hex(8)}"
    new.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    for place, mode in ((door, 0o755), (door / "bin", 0o755), (new, 0o755)):
        place.chmod(mode)
    new.rename(door / "bin" / "lockgate")


def login_files(start: Start, door: Path) -> dict[str, str]:
    """Files of the HOME that give a login shell the session's PATH.

    /etc/profile sets another one, without the `lockgate` command. Codex runs all commands so.
    """
    env = _environment(start) if start.sandboxed else _bare_environment(start, door)
    line = f"export PATH={shlex.quote(env['PATH'])}\n"
    return {".profile": line, ".zprofile": line}


def program_of(start: Start, door: Path, state: Path, mark: str) -> Program:
    """How the runner is to start it."""
    if not start.sandboxed:
        _lay_out(start.desk)
        return {
            "program": [],
            "options": [],
            "separate": [],
            "uplink": [],
            "argv": list(start.launch.argv),
            "env": _bare_environment(start, door) | {MARK: mark},
            "directory": str(start.desk.directory),
        }
    made = boxed(_box(start, door, state, mark), start.launch.argv)
    return {
        "program": list(made.program),
        "options": list(made.options),
        "separate": list(made.separate),
        "uplink": list(made.uplink),
        "argv": list(asked(made.argv, PIPES)),
        "env": {},
        "directory": "/",
    }


def _box(start: Start, door: Path, state: Path, mark: str) -> Box:
    _link(start.desk)
    return Box(
        mounts=(
            Mount(source=start.desk.directory, target=WORKSPACE, writable=True),
            *_shown(start.desk),
            Mount(source=start.base, target=BASE),
            Mount(source=start.home, target=AGENT_HOME, writable=True),
            Mount(source=door, target=DOOR),
        ),
        directory=WORKSPACE,
        env=_environment(start) | {MARK: mark},
        network=True,
        read=start.read,
        hidden=(str(state),),
        terminal=start.interactive,
    )


def _shown(desk: Desk) -> Iterator[Mount]:
    """A reviewer's checkout, entry by entry. A link would be followed outside: see `_link`."""
    for entry in _entries(desk):
        if not entry.is_symlink():
            yield Mount(source=entry, target=f"{WORKSPACE}/{entry.name}")


def _link(desk: Desk) -> None:
    for entry in _entries(desk):
        place = desk.directory / entry.name
        if entry.is_symlink() and not os.path.lexists(place):
            place.symlink_to(entry.readlink())


def _lay_out(desk: Desk) -> None:
    """Where nothing is bound, a reviewer finds the change by links."""
    for entry in _entries(desk):
        place = desk.directory / entry.name
        if not os.path.lexists(place):
            place.symlink_to(entry)


def _entries(desk: Desk) -> list[Path]:
    return sorted(desk.checkout.iterdir()) if desk.checkout else []


def _environment(start: Start) -> dict[str, str]:
    """What is ours comes last: no launch may point elsewhere."""
    path = start.launch.env.get("PATH") or inside_path()
    return _common(start) | {
        "HOME": AGENT_HOME,
        "TMPDIR": "/tmp",  # noqa: S108 - inside the sandbox, where it is its own
        "PATH": f"{DOOR}/bin:{path}",
        "LOCKGATE_SOCKET": f"{DOOR}/socket",
        "IS_SANDBOX": "1",
    }


def _bare_environment(start: Start, door: Path) -> dict[str, str]:
    path = start.launch.env.get("PATH") or os.environ.get("PATH") or os.defpath
    return _common(start) | {
        "HOME": str(start.home),
        "PATH": f"{door}/bin:{path}",
        "LOCKGATE_SOCKET": str(door / "socket"),
    }


def _common(start: Start) -> dict[str, str]:
    terminal = {"TERM": "screen-256color"} if start.interactive else {}
    return {"LANG": "C.UTF-8"} | terminal | dict(start.launch.env)
