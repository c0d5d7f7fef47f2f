"""Which programs are on this machine, and which version each says it is.

No program is started that lies in a repository, and none learns more of the user than PATH.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lockgate.adapters.run import run
from lockgate.errors import Unavailable

SECONDS = 30.0
FLAGS = {"tmux": "-V"}
ENV = "/usr/bin/env"
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.-]*")


def version_of(program: str) -> str | None:
    """None where it is not there, empty where it does not say or is not to be started."""
    by_path = "/" in program
    search = os.pathsep.join(it for it in _path() if not _in_repository(Path(it)))
    at = shutil.which(program, path=None if by_path else search)
    if at is None:
        return "" if shutil.which(program) else None
    real = Path(at).resolve()
    started_from = (Path(at).absolute(), real)
    if any(_in_repository(it, managed=not by_path) for it in started_from):
        return ""
    with tempfile.TemporaryDirectory(prefix="lockgate-doctor-") as home:
        variables = (f"PATH={search}", "LANG=C.UTF-8", f"HOME={home}")
        asked = (ENV, "-i", *variables, at, FLAGS.get(program, "--version"))
        try:
            done = run(asked, cwd=Path(home), deadline=SECONDS)
        except Unavailable:
            return ""
    found = _VERSION.search(done.out) or _VERSION.search(done.err)
    return found[0] if found else ""


def path_outside(directory: Path) -> str:
    """PATH without what lies in the work tree that a directory belongs to."""
    here = _work_tree(directory)
    if here is None:
        return os.environ.get("PATH", os.defpath)
    return os.pathsep.join(it for it in _path() if not Path(it).resolve().is_relative_to(here))


def _path() -> Iterator[str]:
    """Absolute directories only: others change their meaning with where one stands."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return (it for it in entries if Path(it).is_absolute())


def _in_repository(path: Path, *, managed: bool = True) -> bool:
    """Version managers are clones in a hidden directory (~/.nvm, ~/.pyenv), which is no project."""
    tree = _work_tree(path.resolve())
    if tree is None:
        return False
    return not (managed and tree.name.startswith(".") and tree.parent == Path.home().resolve())


def _work_tree(path: Path) -> Path | None:
    real = path.resolve()
    return next((it for it in (real, *real.parents) if os.path.lexists(it / ".git")), None)
