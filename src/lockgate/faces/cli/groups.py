"""The groups such as `lockgate task`: which command is in which module."""

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
    "drop-dependency": f"{TASK_WRITE}:drop_dependency",
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
    "drop-dependency": "Let a task go on without waiting for task OTHER.",
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


# `lockgate notify`: who is told of what needs a human.


NOTIFY_AT = "lockgate.faces.cli.setup.notify"
NOTIFY = {
    "add": f"{NOTIFY_AT}:add",
    "list": f"{NOTIFY_AT}:list_targets",
    "test": f"{NOTIFY_AT}:test",
    "remove": f"{NOTIFY_AT}:remove",
    "mute": f"{NOTIFY_AT}:mute",
}
NOTIFY_SAYS = {
    "add": "Add a target: a service, this desktop, or a webhook.",
    "list": "List the targets, without their URLs.",
    "test": "Send a test message to a target.",
    "remove": "Remove a target.",
    "mute": "Tell nobody of a task any more.",
}


@click.group(cls=lazy_group(NOTIFY, NOTIFY_SAYS))
@json_option
def notify(*, as_json: bool) -> None:
    """Choose who is told of what needs a human, and how."""


# `lockgate db`: where the database is.


DB = {"migrate-to": "lockgate.faces.cli.operate.upkeep:migrate_to"}
DB_SAYS = {"migrate-to": "Move all that the database holds to URL, and use that from now on."}


@click.group(cls=lazy_group(DB, DB_SAYS))
@json_option
def db(*, as_json: bool) -> None:
    """Move this home to another database, checked row by row."""


# `lockgate people`: who may do what.


PEOPLE_PLACE = "lockgate.faces.cli.setup.people"
PEOPLE = {
    "add": f"{PEOPLE_PLACE}:add",
    "list": f"{PEOPLE_PLACE}:list_people",
    "remove": f"{PEOPLE_PLACE}:remove",
}
PEOPLE_SAYS = {
    "add": "Give somebody a name and a right, or another right.",
    "list": "List the people of this home with what each may do.",
    "remove": "Take somebody's name and right away; what they did keeps their name.",
}


@click.group(cls=lazy_group(PEOPLE, PEOPLE_SAYS))
@json_option
def people(*, as_json: bool) -> None:
    """List and name the people of this home, with what each may do."""


# `lockgate forge`, `pr` and `issue`.


FORGES = "lockgate.faces.cli.operate.forge"
FORGE = {it: f"{FORGES}:{it}" for it in ("check", "sync", "listen")}
FORGE_SAYS = {
    "check": "Show what the login may do at the forge, and what is missing.",
    "sync": "Look at the pull requests and issues of this project now.",
    "listen": "Take GitHub's webhooks on loopback, each as a reason to look.",
}
PR = {
    "show": f"{FORGES}:show_pull",
    "adopt": f"{FORGES}:adopt",
    "restore": f"{FORGES}:restore",
}
PR_SAYS = {
    "show": "Show the pull request of a task: CI, reviews, and what it waits for.",
    "adopt": "Take what somebody pushed over Lockgate's commits; gates judge it next.",
    "restore": "Put Lockgate's own commit back where somebody rewrote the branch.",
}
ISSUE = {"list": f"{FORGES}:list_issues", "take": f"{FORGES}:take"}
ISSUE_SAYS = {
    "list": "Show the issues that have the label, and what becomes of each.",
    "take": "Make tasks of the labelled issues now.",
}


@click.group(cls=lazy_group(FORGE, FORGE_SAYS))
@json_option
def forge(*, as_json: bool) -> None:
    """Check the login at GitHub, look at it now, take its webhooks."""


@click.group(cls=lazy_group(PR, PR_SAYS))
@json_option
def pr(*, as_json: bool) -> None:
    """Show the pull request of a task; adopt or restore its branch."""


@click.group(cls=lazy_group(ISSUE, ISSUE_SAYS))
@json_option
def issue(*, as_json: bool) -> None:
    """Show the issues that become tasks, and take them now."""


# `lockgate fleet`: several hosts.


FLEETS = "lockgate.faces.cli.operate.fleet"
FLEET = {it: f"{FLEETS}:{it}" for it in ("status", "drain", "undrain", "forget", "hub", "check")}
FLEET_SAYS = {
    "status": "Show who leads, the hosts, and the jobs that wait for one and why.",
    "drain": "Place nothing new on a host; it goes on with what it has.",
    "undrain": "Place jobs on a host again.",
    "forget": "Count a host as lost now: its tasks go on elsewhere.",
    "hub": "Give this project the repository by which hosts exchange commits.",
    "check": "Check what a fleet needs: database, Temporal, hosts, hubs.",
}


@click.group(cls=lazy_group(FLEET, FLEET_SAYS))
@json_option
def fleet(*, as_json: bool) -> None:
    """Show and steer the hosts that share one database."""
