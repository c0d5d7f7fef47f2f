"""Encloses a program with bubblewrap: it sees what it was given, and writes only where it may.

Loaded when it is asked for: a session's runner needs only the small parts, and must start fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockgate.adapters.sandbox.attempt import Tried, Try, enclosed
    from lockgate.adapters.sandbox.bubblewrap import Box, Mount, boxed, inside_path, owner
    from lockgate.adapters.sandbox.probe import sockets_closed_by, trouble
    from lockgate.adapters.sandbox.process import Boxed, run_boxed
    from lockgate.adapters.sandbox.scratch import look

__all__ = [
    "Box",
    "Boxed",
    "Mount",
    "Tried",
    "Try",
    "boxed",
    "enclosed",
    "inside_path",
    "look",
    "owner",
    "run_boxed",
    "sockets_closed_by",
    "trouble",
]

_HOLDS = {
    "attempt": ("Tried", "Try", "enclosed"),
    "bubblewrap": ("Box", "Mount", "boxed", "inside_path", "owner"),
    "probe": ("sockets_closed_by", "trouble"),
    "process": ("Boxed", "run_boxed"),
    "scratch": ("look",),
}
_WHERE = {name: module for module, names in _HOLDS.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(name)
    found: object = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = found
    return found
