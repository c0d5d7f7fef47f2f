"""The one place that starts a process: argument lists only, a clean environment, a deadline."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lockgate.errors import Unavailable

DEADLINE = 60.0


@dataclass(frozen=True, slots=True)
class Finished:
    code: int
    out: str
    err: str


def run(argv: Sequence[str], *, cwd: Path | None = None, deadline: float = DEADLINE) -> Finished:
    """Run it to its end. Unavailable where it cannot be started or does not end in time."""
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and every caller builds its own list
            argv,
            cwd=cwd,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=deadline,
            check=False,
        )
    except FileNotFoundError as error:
        what, why = f"{argv[0]} was not run", f"{error.filename} is not there"
        raise Unavailable(what, why=why, fix=f"install {argv[0]}, or check the path") from error
    except OSError as error:
        what, why = f"{argv[0]} was not run", str(error)
        raise Unavailable(what, why=why, fix="see that the program can be started here") from error
    except subprocess.TimeoutExpired as error:
        what, why = f"{argv[0]} was ended", f"it had not finished after {deadline:.0f} s"
        raise Unavailable(what, why=why, fix="try again when the machine is less busy") from error
    return Finished(done.returncode, _text(done.stdout), _text(done.stderr))


def _environment() -> dict[str, str]:
    """Ours without git's own variables: a hook that calls us must not point git elsewhere."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    kept |= {name: value for name, value in os.environ.items() if name in _GIT_IDENTITY}
    return kept | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}


_GIT_IDENTITY = {
    f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL", "DATE")
} | {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="surrogateescape")
