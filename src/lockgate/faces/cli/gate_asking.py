"""What a `lockgate gate` command is asked, with what a build server says beside it."""

import os

from lockgate.core.bases import in_ci, target_of
from lockgate.faces.cli.output import terminal
from lockgate.services.rulebook import Asked


def asked(base: str | None, gates: tuple[str, ...] = ()) -> Asked:
    """An orchestrator that runs the command for another knows nothing of that one's variables."""
    environ = {} if terminal() else os.environ
    return Asked(base, gates, target_of(environ), in_ci(environ))
