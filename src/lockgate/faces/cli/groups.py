"""The groups `lockgate task`, `gate` and `queue`: which command is in which module."""

import click

from lockgate.faces.cli.app import lazy_group

TASK_READ = "lockgate.faces.cli.look.tasks"
TASK_WRITE = "lockgate.faces.cli.operate.tasks"
AGENTS = "lockgate.faces.cli.operate.agents"
TASK = {
    "start": f"{AGENTS}:start",
    "respawn": f"{AGENTS}:respawn",
    "repin": f"{AGENTS}:repin",
    "peek": f"{AGENTS}:peek",
    "attach": f"{AGENTS}:attach",
    "list": f"{TASK_READ}:list_tasks",
    "show": f"{TASK_READ}:show_task",
    "log": f"{TASK_READ}:log",
    "why": f"{TASK_READ}:why",
    "create": f"{TASK_WRITE}:create",
    "update": f"{TASK_WRITE}:update",
    "complete": f"{TASK_WRITE}:complete",
    "cancel": f"{TASK_WRITE}:cancel",
    "delete": f"{TASK_WRITE}:delete",
    "import": f"{TASK_WRITE}:import_task",
}


@click.group(cls=lazy_group(TASK))
def task() -> None:
    """Create tasks, look at them, move them along the map.

    A task is named by any unique beginning of its id. In a directory with a TASK.md, and in an
    agent's session, the id may be left out.
    """


# `lockgate gate`: the gates of a repository, looked at and run.


GATE_READ = "lockgate.faces.cli.look.gates"
GATE = {
    "list": f"{GATE_READ}:list_gates",
    "check": f"{GATE_READ}:check",
    "explain": f"{GATE_READ}:explain",
    "run": "lockgate.faces.cli.operate.gate_run:run",
}


@click.group(cls=lazy_group(GATE))
def gate() -> None:
    """Look at the gates that judge every change, and run them on what you have committed."""


# `lockgate queue`: the merge train.


QUEUE_READ = "lockgate.faces.cli.operate.queue"
QUEUE_WRITE = "lockgate.faces.cli.operate.queue"
QUEUE = {
    "list": f"{QUEUE_READ}:list_queue",
    "approve": f"{QUEUE_WRITE}:approve",
    "hold": f"{QUEUE_WRITE}:hold",
    "drop": f"{QUEUE_WRITE}:drop",
    "simulate": "lockgate.faces.cli.operate.simulate:simulate_queue",
}


@click.group(cls=lazy_group(QUEUE))
def queue() -> None:
    """The changes that wait to land, and the train that tests them together."""
