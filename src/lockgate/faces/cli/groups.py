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
    "respawn": "Ask for the agent anew, in the same workspace, where it has died.",
    "repin": (
        "Give a task the configuration that its base branch has now; it keeps the one it "
        "started with."
    ),
    "peek": (
        "Show the newest output of a task's newest session: what the agent said, which "
        "tools it used."
    ),
    "attach": "Sit down at a session that is interactive; follow the output of one that is not.",
    "list": "Show the board: what needs you first, then what goes on.",
    "show": (
        "Show a task: status, phase, counters, gates, sessions, what is still to be done for it."
    ),
    "log": "Show what happened to a task, oldest first.",
    "why": "Say why a task is where it is, and what would move it.",
    "create": "Create a task for BRANCH and print its id.",
    "update": "Move a task along the map, or change its summary.",
    "edit": (
        "Change what a task is for and what its agent must know, in your editor ($VISUAL or "
        "$EDITOR)."
    ),
    "complete": "Hand the work on: the same as update --status agent-review.",
    "cancel": "Give a task up.",
    "delete": "Take a task off the board.",
    "import": "Make a task of a TASK.md (or a directory that has one), and print its id.",
}


@click.group(cls=lazy_group(TASK, TASK_SAYS))
@json_option
def task(*, as_json: bool) -> None:
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
GATE_SAYS = {
    "list": "List the gates in the order in which they judge; of a task, with their last results.",
    "check": "Say which gates judge every change and which only some.",
    "explain": "Say what a gate does, when it judges, and what makes it pass, fail, wait or break.",
    "run": (
        "Judge the commit you stand on, as a task's change would be: no task, no agent, "
        "no database."
    ),
}


@click.group(cls=lazy_group(GATE, GATE_SAYS))
@json_option
def gate(*, as_json: bool) -> None:
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
QUEUE_SAYS = {
    "list": "Show the queue of the project you stand in, in the order in which changes would land.",
    "approve": "Let a change land that has passed its gates: in manual mode, or one that was held.",
    "hold": "Keep a change from landing, until it is approved again.",
    "drop": "Take a change out of the queue; its agent gets what you say, and works on.",
    "simulate": (
        "Let the train's planner run on made-up changes, and compare it with simpler queues."
    ),
}


@click.group(cls=lazy_group(QUEUE, QUEUE_SAYS))
@json_option
def queue(*, as_json: bool) -> None:
    """The changes that wait to land, and the train that tests them together."""
