"""Encloses a program with bubblewrap: it sees what it was given, and writes only where it may."""

from lockgate.adapters.sandbox.attempt import Tried, Try, enclosed
from lockgate.adapters.sandbox.bare import bare
from lockgate.adapters.sandbox.bubblewrap import Box, Mount, boxed, inside_path, owner
from lockgate.adapters.sandbox.probe import trouble
from lockgate.adapters.sandbox.running import Boxed, run_boxed
from lockgate.adapters.sandbox.sameness import look
from lockgate.adapters.sandbox.toolchain import toolchain

__all__ = [
    "Box",
    "Boxed",
    "Mount",
    "Tried",
    "Try",
    "bare",
    "boxed",
    "enclosed",
    "inside_path",
    "look",
    "owner",
    "run_boxed",
    "toolchain",
    "trouble",
]
