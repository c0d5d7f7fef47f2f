"""The groups `lockgate task`, `gate` and `queue`: which command is in which module."""

import click

from lockgate.faces.cli.app import lazy_group
from lockgate.faces.cli.flags import json_option

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
    "edit": "lockgate.faces.cli.answer.talk:edit",
    "complete": f"{TASK_WRITE}:complete",
    "cancel": f"{TASK_WRITE}:cancel",
    "delete": f"{TASK_WRITE}:delete",
    "import": f"{TASK_WRITE}:import_task",
}
TASK_SAYS = {
    "start": "Start a task now: the same as update --status working.",
    "respawn": "Restart an agent that is not running, in the same workspace.",
    "repin": "Give a task the configuration that its base branch has now.",
    "peek": "Show the newest output of a task's agent: what it said, which tools it used.",
    "attach": "Join an interactive session; follow the output of any other.",
    "list": "Show the board: what needs you first, then what goes on.",
    "show": "Show all about a task: its state, gates, change, sessions and cost.",
    "log": "Show what happened to a task, oldest first.",
    "why": "Explain why a task is where it is, and which command moves it on.",
    "create": "Create a task for BRANCH and print its id.",
    "update": "Move a task to another status, or change its summary.",
    "edit": "Change the goal and the Context of a task in your editor.",
    "complete": "Hand the work in: the same as update --status agent-review.",
    "cancel": "Cancel a task.",
    "delete": "Delete an ended task from the board.",
    "import": "Create a task from a TASK.md, or from a directory that has one.",
}


@click.group(cls=lazy_group(TASK, TASK_SAYS))
@json_option
def task(*, as_json: bool) -> None:
    """Create, show, explain, move and cancel tasks.

    A task is named by any unique start of its id. In a directory with a TASK.md, and in an agent's
    session, the id can be left out.
    """


# `lockgate gate`: the gates of a repository, looked at and run.


GATE_READ = "lockgate.faces.cli.look.gates"
GATE = {
    "list": f"{GATE_READ}:list_gates",
    "check": f"{GATE_READ}:check",
    "explain": f"{GATE_READ}:explain",
    "run": "lockgate.faces.cli.operate.gate_run:run",
}
GATE_SAYS = {
    "list": "List the gates in their order; of a task, with their last results.",
    "check": "Check the configuration: which gates check every change, which only some.",
    "explain": "Explain a gate: what it runs, when, and what makes it pass or fail.",
    "run": "Run the gates on your HEAD commit, with no task and no agent.",
}


@click.group(cls=lazy_group(GATE, GATE_SAYS))
@json_option
def gate(*, as_json: bool) -> None:
    """List the gates, explain them, and run them on your own commit."""


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
QUEUE_SAYS = {
    "list": "Show the merge queue of this project, in the order of landing.",
    "approve": "Approve a change for landing, also one that was held.",
    "hold": "Keep a change from landing until somebody approves it again.",
    "drop": "Take a change out of the queue; its agent gets your reason and works on.",
    "simulate": "Run the queue's planner on made-up changes, and compare it with others.",
}


@click.group(cls=lazy_group(QUEUE, QUEUE_SAYS))
@json_option
def queue(*, as_json: bool) -> None:
    """Show and steer the merge queue: approve, hold, drop."""
