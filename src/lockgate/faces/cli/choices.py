"""What several commands are asked: a status by name, a base, with what a build server says."""

import os
from typing import TYPE_CHECKING, Any

import click

from lockgate.core.model.task import Status
from lockgate.errors import did_you_mean
from lockgate.faces.cli.output import terminal

if TYPE_CHECKING:
    from lockgate.services.gates.commit_check import Asked


class StatusChoice(click.ParamType[Status]):
    """A status as people write it (agent-review) or as it is stored (AGENT_REVIEW)."""

    name = "status"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Status:
        wanted = str(value).lower().replace("_", "-")
        for status in Status:
            if status.value == wanted:
                return status
        allowed = ", ".join(status.value for status in Status)
        meant = did_you_mean(wanted, [status.value for status in Status])
        why = f"there is no status {value!r}. {meant} There are {allowed}."
        return self.fail(why.replace("  ", " "), param, ctx)


# What a `lockgate gate` command is asked, with what a build server says beside it.


def asked(base: str | None, gates: tuple[str, ...] = ()) -> "Asked":
    """An orchestrator that runs the command for another knows nothing of that one's variables."""
    from lockgate.core.config.settings import in_ci, target_of
    from lockgate.services.gates.commit_check import Asked

    if terminal():
        return Asked(base, gates)
    return Asked(base, gates, target_of(os.environ), in_ci(os.environ))
