"""What a `lockgate gate` command is asked, with what a build server says beside it."""

import os

from lockgate.core.config.bases import in_ci, target_of
from lockgate.faces.cli.output import terminal
from lockgate.services.gates.commit_check import Asked


def asked(base: str | None, gates: tuple[str, ...] = ()) -> Asked:
    """An orchestrator that runs the command for another knows nothing of that one's variables."""
    if terminal():
        return Asked(base, gates)
    return Asked(base, gates, target_of(os.environ), in_ci(os.environ))
