"""`lockgate task`: the tasks of a project."""

import click

from lockgate.faces.cli.lazy import lazy_group

READ = "lockgate.faces.cli.task_read"
WRITE = "lockgate.faces.cli.task_write"
AGENTS = "lockgate.faces.cli.task_agents"
COMMANDS = {
    "start": f"{AGENTS}:start",
    "respawn": f"{AGENTS}:respawn",
    "repin": f"{AGENTS}:repin",
    "peek": f"{AGENTS}:peek",
    "attach": f"{AGENTS}:attach",
    "list": f"{READ}:list_tasks",
    "show": f"{READ}:show_task",
    "log": f"{READ}:log",
    "why": f"{READ}:why",
    "create": f"{WRITE}:create",
    "update": f"{WRITE}:update",
    "complete": f"{WRITE}:complete",
    "cancel": f"{WRITE}:cancel",
    "delete": f"{WRITE}:delete",
    "import": f"{WRITE}:import_task",
}


@click.group(cls=lazy_group(COMMANDS))
def task() -> None:
    """Create tasks, look at them, move them along the map.

    A task is named by any unique beginning of its id. In a directory with a TASK.md, and in an
    agent's session, the id may be left out.
    """
