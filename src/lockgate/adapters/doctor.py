"""Which programs are on this machine, and which version each says it is."""

import re
import shutil

from lockgate.adapters.run import run
from lockgate.errors import Unavailable

SECONDS = 30.0
FLAGS = {"tmux": "-V"}
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.-]*")


def version_of(program: str) -> str | None:
    """None where it is not there, empty where it does not say."""
    at = shutil.which(program)
    if at is None:
        return None
    try:
        done = run((at, FLAGS.get(program, "--version")), deadline=SECONDS)
    except Unavailable:
        return ""
    found = _VERSION.search(done.out) or _VERSION.search(done.err)
    return found[0] if found else ""
