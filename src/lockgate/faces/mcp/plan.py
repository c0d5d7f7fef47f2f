"""A plan of tasks, from a file or from the arguments of `create_tasks`, as the service takes it."""

import json
import tomllib

from pydantic import ValidationError

from lockgate.errors import Refused
from lockgate.faces.mcp.answers import misused
from lockgate.faces.mcp.inputs import Plan
from lockgate.services.task.plans import WHAT, Planned
from lockgate.services.task.tasks import NewTask

FIX = """write [[tasks]] with name and summary, and depends_on = ["name"] where one waits"""


def read_plan(text: str, source: str) -> Plan:
    """TOML, or JSON where its source or the text says so; Refused says what is wrong in it."""
    json_like = source.endswith(".json") or text.lstrip().startswith("{")  # no TOML begins so
    try:
        found: object = json.loads(text) if json_like else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(WHAT, why=f"{source} was not read: {error}", fix=FIX) from error
    try:
        return Plan.model_validate_json(json.dumps(found, default=str))
    except ValidationError as error:
        why = f"{source}: {misused('it', error)['why']}"
        raise Refused(WHAT, why=why, fix=FIX) from error


def planned(plan: Plan) -> tuple[Planned, ...]:
    """Without a branch of its own, a task has its name as branch."""
    return tuple(
        Planned(
            it.name,
            NewTask(
                branch=it.branch or it.name,
                summary=it.summary,
                context=it.context,
                agent=it.agent,
                priority=it.priority,
                depends_on=tuple(it.depends_on),
                auto_start=it.start,
            ),
        )
        for it in plan.tasks
    )
