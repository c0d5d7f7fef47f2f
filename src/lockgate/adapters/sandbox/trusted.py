"""Finds the programs that make a sandbox, only where nobody but root could have put them."""

import functools
import os
import shutil
import stat
from pathlib import Path

from lockgate.errors import Unavailable

PACKAGES = {
    "bwrap": "bubblewrap",
    "prlimit": "util-linux",
    "setpriv": "util-linux",
    "unshare": "util-linux",
}
NOT_NEEDED = {"pasta": "passt"}
WRITE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class NotTrusted(Unavailable):
    """The program is not there, or only where somebody else than root can change it."""


def trusted(program: str, path: str | None = None) -> str:
    """Its real path: the first one on PATH of which each part belongs to root alone."""
    return _trusted_on(program, os.environ.get("PATH", os.defpath) if path is None else path)


@functools.lru_cache
def _trusted_on(program: str, path: str) -> str:
    why = ""
    for directory in path.split(os.pathsep):
        found = shutil.which(program, path=directory) if directory.startswith("/") else None
        if found is None:
            continue
        fault = _fault_of(os.path.realpath(found))
        if fault is None:
            return os.path.realpath(found)
        why = why or f"{found} does not count: {fault}"
    package = (PACKAGES | NOT_NEEDED).get(program, program)
    raise NotTrusted(
        f"{program} was not run",
        why=why or f"{program} is not on PATH (it is in the package {package})",
        fix=f"install it for the whole machine (Debian: apt install {package})",
    )


def _fault_of(real: str) -> str | None:
    """Why somebody else than root could have made this program, or changed it."""
    for part in (Path(real), *Path(real).parents):
        found = part.stat()
        if found.st_uid != 0:
            return f"{part} belongs to uid {found.st_uid}, not to root"
        if found.st_mode & WRITE_BY_OTHERS:
            return f"{part} can be written by others than root"
        if os.path.lexists(part / ".git"):
            return f"{part} is a git repository"
    return None
