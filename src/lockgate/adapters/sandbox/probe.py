"""Whether bubblewrap works here, found by running it."""

import functools
import shutil
import sys

from lockgate.adapters.run import Cut
from lockgate.adapters.sandbox.bubblewrap import Box, boxed
from lockgate.adapters.sandbox.running import run_boxed
from lockgate.errors import Unavailable

PACKAGES = {"bwrap": "bubblewrap", "prlimit": "util-linux", "setpriv": "util-linux"}
WROTE = 99
ATTACK = f"if (: > /usr/lockgate-was-here) 2>/dev/null; then exit {WROTE}; fi"


@functools.cache
def trouble() -> str | None:
    """Why nothing can be enclosed here; None where a program ran and could not write outside."""
    if not sys.platform.startswith("linux"):
        return f"bubblewrap is made for Linux, and this is {sys.platform}"
    for program, package in PACKAGES.items():
        if shutil.which(program) is None:
            return f"{program} is not on PATH (it is in the package {package})"
    try:
        done = run_boxed(boxed(_PROBE, ("/bin/sh", "-c", ATTACK)), deadline=20.0)
    except Unavailable as error:
        return str(error)
    if done.code == WROTE:
        return "a program in the sandbox wrote outside of it"
    if done.cut is None and done.code == 0:
        return None
    said = done.err.strip() or f"it ended with {done.code}"
    return f"bubblewrap does not work here: {said}{_HINT if done.cut is Cut.BOX else ''}"


_PROBE = Box(mounts=(), directory="/", env={})
_HINT = (
    "; user namespaces may be switched off: look at the sysctls user.max_user_namespaces, "
    "kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns"
)
