"""The tools of operators' assistants: they look, make and steer; a yes is asked of the human."""

import time

from lockgate.core.lifecycle import approvals, landing
from lockgate.core.lifecycle.moves import Move
from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.people import Right
from lockgate.core.model.task import Status, TaskId
from lockgate.errors import Refused
from lockgate.faces.mcp import inputs, outputs, reading
from lockgate.faces.mcp.calls import Desk, Facts, Part, Tool
from lockgate.faces.mcp.plan import planned
from lockgate.services.task.assistants import Wanted
from lockgate.services.task.tasks import NewTask
from lockgate.services.task.views import why_facts

OPERATOR = frozenset({Part.OPERATOR})


# What they look at.


def list_tasks(desk: Desk, asked: inputs.ListTasks) -> Facts:
    return reading.board(desk, asked)


def get_task(desk: Desk, asked: inputs.OneTask) -> Facts:
    return reading.page(desk, desk.task(asked.task_id))


def why(desk: Desk, asked: inputs.OneTask) -> Facts:
    seen = desk.app.views.why(desk.task(asked.task_id), desk.app.troubles)
    return {
        "task": seen.task.id,
        "status": seen.task.status,
        "need": reading.need(desk, seen.task.id),
        "next": {"why": seen.advice.why, "command": seen.advice.command or None},
        "arrows": [why_facts(row) for row in seen.moves],
    }


def list_findings(desk: Desk, asked: inputs.ListFindings) -> Facts:
    id = desk.task(asked.task_id)
    return {"task": id, "findings": reading.findings(desk, id, every=asked.all)}


def events(desk: Desk, asked: inputs.Events) -> Facts:
    id = desk.task(asked.task_id) if asked.task_id else None
    if not asked.wait_seconds:
        return reading.events(desk, id, asked)
    until, mark = time.monotonic() + asked.wait_seconds, desk.news.mark()
    found = reading.events(desk, id, asked)
    while not found["events"] and desk.news.wait(mark, until - time.monotonic()):
        mark = desk.news.mark()
        found = reading.events(desk, id, asked)
    return found


# What they make and steer.


def create_task(desk: Desk, asked: inputs.CreateTask) -> Facts:
    it, project = desk.app, reading.project(desk, asked.project)
    new = NewTask(
        branch=asked.branch or it.readiness.branch_for(project, asked.summary),
        summary=asked.summary,
        context=asked.context,
        agent=asked.agent,
        priority=asked.priority,
        depends_on=tuple(asked.depends_on),
        auto_start=asked.start,
    )
    return reading.row(desk, it.tasks.create(project, new, it.caller).id)


def create_tasks(desk: Desk, asked: inputs.CreateTasks) -> Facts:
    it, project = desk.app, reading.project(desk, asked.project)
    made = it.plans.create(project, planned(asked), it.caller)
    return {"tasks": [reading.row(desk, task.id) for task in made]}


def resume_task(desk: Desk, asked: inputs.ResumeTask) -> Facts:
    it = desk.app
    task = it.runner.resume(desk.task(asked.task_id), asked.directive, it.caller)
    return reading.row(desk, task.id)


def cancel_task(desk: Desk, asked: inputs.CancelTask) -> Facts:
    it, id = desk.app, desk.task(asked.task_id)
    it.signals.move(id, Move(Status.CANCELLED, asked.reason), it.caller)
    return reading.row(desk, id)


# What their human must say yes to.


def approve(desk: Desk, asked: inputs.Approve) -> Facts:
    it, id = desk.app, desk.task(asked.task_id)
    it.queue.say_yes(id, asked.message, asked.patch, it.caller)
    return reading.row(desk, id)


def wants_approval(desk: Desk, asked: inputs.Approve) -> tuple[TaskId, Wanted]:
    id = desk.task(asked.task_id)
    wanted = Wanted(
        what=f"task {id} was not approved",
        command=f"lockgate approve {id} --patch {asked.patch[: inputs.PATCH]}",
        patch=asked.patch,
        may=Right.LAND,
        decide=lambda seen: landing.answered_yes(seen, asked.message, asked.patch),
    )
    return id, wanted


def reject(desk: Desk, asked: inputs.Reject) -> Facts:
    it, id = desk.app, desk.task(asked.task_id)
    it.approvals.reject(id, asked.message, _findings(asked), asked.patch, it.caller)
    return reading.row(desk, id)


def wants_rejection(desk: Desk, asked: inputs.Reject) -> tuple[TaskId, Wanted]:
    id = desk.task(asked.task_id)
    wanted = Wanted(
        what=f"task {id} was not rejected",
        command=f"lockgate reject {id} --patch {asked.patch[: inputs.PATCH]} -m TEXT",
        patch=asked.patch,
        may=Right.WORK,
        decide=lambda seen: approvals.rejected(seen, asked.message, _findings(asked), asked.patch),
    )
    return id, wanted


def _findings(asked: inputs.Reject) -> tuple[Finding, ...]:
    return tuple(
        Finding(Priority(it.priority), it.text, Location(it.file, it.line)) for it in asked.findings
    )


def queue(desk: Desk, asked: inputs.Queue) -> Facts:
    it = desk.app
    if asked.action == "list":
        return reading.train(desk, reading.project(desk, asked.project))
    id = _steered(desk, asked)
    match asked.action:
        case "approve":
            it.queue.approve(id, asked.patch or "", it.caller)
        case "hold":
            it.queue.hold(id, asked.message, it.caller)
        case "drop":
            it.queue.drop(id, asked.message, it.caller)
    return reading.train(desk, it.views.project_of(it.views.load(id)))


def wants_landing(desk: Desk, asked: inputs.Queue) -> tuple[TaskId, Wanted] | None:
    if asked.action != "approve":
        return None
    id, patch = _steered(desk, asked), asked.patch or ""
    wanted = Wanted(
        what=f"task {id} was not approved for landing",
        command=f"lockgate queue approve {id} --change {patch[: inputs.PATCH]}",
        patch=patch,
        may=Right.LAND,
        decide=lambda seen: landing.approved(seen, patch),
    )
    return id, wanted


def _steered(desk: Desk, asked: inputs.Queue) -> TaskId:
    missing = [] if asked.task_id else ["task_id"]
    if asked.action == "approve":
        missing += [] if asked.patch else ["patch"]
    else:
        missing += [] if asked.message.strip() else ["message"]
    if missing:
        why = f"{' and '.join(missing)} must be given for {asked.action}"
        raise Refused("the queue was not changed", why=why, fix="see what queue takes")
    return desk.task(asked.task_id or "")


TOOLS = (
    Tool(
        name="list_tasks",
        says="The board: tasks with what each needs of the human; needs: true shows only those.",
        parts=OPERATOR,
        command=("task", "list"),
        takes=inputs.ListTasks,
        gives=outputs.Board,
        does=list_tasks,
        reads=True,
    ),
    Tool(
        name="get_task",
        says="All about one task: its state, gates, findings, iterations, sessions, files, history."
        " Its diff and its agent's output are resources.",
        parts=OPERATOR,
        command=("task", "show"),
        takes=inputs.OneTask,
        gives=outputs.TaskPage,
        does=get_task,
        reads=True,
    ),
    Tool(
        name="why",
        says="Why a task is where it is, what it needs, and every move from there with what is"
        " missing for it.",
        parts=OPERATOR,
        command=("task", "why"),
        takes=inputs.OneTask,
        gives=outputs.Why,
        does=why,
        reads=True,
    ),
    Tool(
        name="list_findings",
        says="What gates and reviewers found in a task's change: new, still there, or fixed.",
        parts=OPERATOR,
        command=("task", "show"),
        takes=inputs.ListFindings,
        gives=outputs.Findings,
        does=list_findings,
        reads=True,
    ),
    Tool(
        name="events",
        says="The event log after a number; waits up to 50 seconds for the first one.",
        parts=OPERATOR,
        command=("events",),
        takes=inputs.Events,
        gives=outputs.Events,
        does=events,
        reads=True,
    ),
    Tool(
        name="create_task",
        says="Create a task for an agent. It starts when an agent is free, unless start is false.",
        parts=OPERATOR,
        command=("task", "create"),
        takes=inputs.CreateTask,
        gives=outputs.BoardRow,
        does=create_task,
    ),
    Tool(
        name="create_tasks",
        says="Create several tasks at once, all or none; depends_on names others of the plan.",
        parts=OPERATOR,
        command=("task", "create", "--plan"),
        takes=inputs.CreateTasks,
        gives=outputs.Made,
        does=create_tasks,
    ),
    Tool(
        name="resume_task",
        says="Let a paused task continue: its failed attempts are reset, and it is tried again."
        " Only a task in paused-for-intervention is resumed.",
        parts=OPERATOR,
        command=("resume",),
        takes=inputs.ResumeTask,
        gives=outputs.BoardRow,
        does=resume_task,
    ),
    Tool(
        name="cancel_task",
        says="Cancel a task. Its branch and its history stay.",
        parts=OPERATOR,
        command=("task", "cancel"),
        takes=inputs.CancelTask,
        gives=outputs.BoardRow,
        does=cancel_task,
        destroys=True,
    ),
    Tool(
        name="approve",
        says="Ask the human for a yes to the change of a task. They must let you ask first:"
        " lockgate trust --assistant NAME.",
        parts=OPERATOR,
        command=("approve",),
        takes=inputs.Approve,
        gives=outputs.BoardRow,
        does=approve,
        wants=wants_approval,
    ),
    Tool(
        name="reject",
        says="Ask the human for a no to the change of a task; its agent gets the message and the"
        " findings.",
        parts=OPERATOR,
        command=("reject",),
        takes=inputs.Reject,
        gives=outputs.BoardRow,
        does=reject,
        wants=wants_rejection,
    ),
    Tool(
        name="queue",
        says="The merge queue: list it, hold or drop a change. approve asks the human.",
        parts=OPERATOR,
        command=("queue",),
        takes=inputs.Queue,
        gives=outputs.Train,
        does=queue,
        wants=wants_landing,
        destroys=True,
    ),
)
