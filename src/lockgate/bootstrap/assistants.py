"""The process in which the orchestrator serves MCP, and what must be installed for it."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from lockgate.adapters.assistants import ASSISTANTS, register, way_of
from lockgate.adapters.serving_child import ServingChild
from lockgate.errors import LockgateError
from lockgate.ports import Call

__all__ = [
    "ASSISTANTS",
    "ServingChild",
    "installed",
    "kept_warm",
    "mcp_child",
    "register",
    "serve_mcp",
    "way_of",
]
MODULE = "lockgate.faces.mcp.child"
LOG = "mcp.log"
MISSING = (
    "lockgate: no MCP server was started: its library is not installed\n"
    "  pip install 'lockgate[mcp]'\n"
)


def mcp_child(home: Path) -> ServingChild:
    """Not started yet: loading the SDK takes a second, and most homes never need it."""
    return ServingChild((sys.executable, "-P", "-m", MODULE), home / "logs" / LOG)


@contextmanager
def kept_warm(child: ServingChild, home: Path) -> Generator[ServingChild]:
    """In a home where assistants have come before, it is loaded while the orchestrator starts."""
    if installed() and (home / "logs" / LOG).exists():
        child.warm()
    try:
        yield child
    finally:
        child.close()


def installed() -> bool:
    return find_spec("mcp") is not None


def serve_mcp(child: ServingChild, call: Call, there: Callable[[], bool] = installed) -> None:
    """Hand the caller's connection to the process that speaks MCP."""
    if not there():
        call.line.err(MISSING)
        call.line.end(1)
        return
    told = {"token": call.token, "directory": str(call.directory), "uid": call.uid}
    try:
        child.hand(call.line.take(), told)
    except (OSError, LockgateError):
        return  # the caller has gone, or hears by the end of the connection
