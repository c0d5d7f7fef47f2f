"""Values of the command line that people spell in more than one way."""

from typing import Any

import click

from lockgate.core.model.task import Status


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
        return self.fail(f"there is no status {value!r}; the map has {allowed}", param, ctx)
