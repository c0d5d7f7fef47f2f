"""Registers `lockgate mcp` with the assistants on this machine, each in its own way."""

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

from msgspec import Struct

from lockgate.adapters.run import run
from lockgate.errors import LockgateError

SERVER = ("lockgate", "mcp")
NAME = "lockgate"
SECONDS = 60.0
KNOWN = "already exists"  # what claude says of a name that it has
# How each of them is told, on its own command line.
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "claude": ("claude", "mcp", "add", "-s", "user", NAME, "--", *SERVER),
    "codex": ("codex", "mcp", "add", NAME, "--", *SERVER),
    "gemini": ("gemini", "mcp", "add", "-s", "user", NAME, *SERVER),
}
OPENCODE = "opencode"  # has a file, and no command for it
ASSISTANTS = (*COMMANDS, OPENCODE)


class Registered(Struct, frozen=True):
    """`problem` is why it was not, in its own words."""

    assistant: str
    how: str
    problem: str = ""


def way_of(assistant: str) -> str:
    """What registers it: a command to paste, or what its file must have."""
    if assistant in COMMANDS:
        return " ".join(COMMANDS[assistant])
    return json.dumps({"mcp": {NAME: _entry()}})


def register(environ: Mapping[str, str]) -> tuple[Registered, ...]:
    """With each that is installed."""
    there = [it for it in ASSISTANTS if shutil.which(it, path=environ.get("PATH"))]
    return tuple(_registered(it, environ) for it in there)


def _registered(assistant: str, environ: Mapping[str, str]) -> Registered:
    if assistant == OPENCODE:
        return _in_file(Path(_config_home(environ)) / "opencode" / "opencode.json")
    argv = COMMANDS[assistant]
    try:
        done = run(argv, deadline=SECONDS)
    except LockgateError as error:
        return Registered(assistant, " ".join(argv), error.why)
    told = f"{done.out}\n{done.err}".strip()
    failed = done.code != 0 and KNOWN not in told
    return Registered(assistant, " ".join(argv), told if failed else "")


def _in_file(path: Path) -> Registered:
    """What else the file has stays."""
    how = f"{path}: {way_of(OPENCODE)}"
    try:
        told = _object(path)
        servers = told.get("mcp", {})
        if not isinstance(servers, dict):
            return Registered(OPENCODE, how, "its `mcp` is no table")
        told["mcp"] = {**cast("dict[str, object]", servers), NAME: _entry()}
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
        beside.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
        beside.replace(path)
    except (OSError, ValueError) as error:
        return Registered(OPENCODE, how, str(error))
    return Registered(OPENCODE, how)


def _object(path: Path) -> dict[str, object]:
    with suppress(FileNotFoundError):
        found: object = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("it is no JSON object")  # noqa: TRY004 - as where it is no JSON
        return cast("dict[str, object]", found)
    return {"$schema": "https://opencode.ai/config.json"}


def _entry() -> dict[str, object]:
    return {"type": "local", "command": list(SERVER)}


def _config_home(environ: Mapping[str, str]) -> str:
    return environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
