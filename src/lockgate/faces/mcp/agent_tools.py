"""The tools of agents at work: each does what its command does, for the session's own task."""

import json

from lockgate.core.lifecycle.moves import Move
from lockgate.core.model.task import Role, Status
from lockgate.core.text.task_file import shown_to
from lockgate.faces.mcp import inputs, outputs
from lockgate.faces.mcp.calls import Desk, Facts, Part, Tool
from lockgate.faces.words.setup import step_facts
from lockgate.services.task.sessions import Said
from lockgate.services.task.views import gate_facts, task_facts, why_facts

LITTLE = ("id", "summary", "branch", "status", "review_round")
BOTH = frozenset({Part.WORKER, Part.REVIEWER})
WORKER = frozenset({Part.WORKER})
REVIEWER = frozenset({Part.REVIEWER})


def get_my_task(desk: Desk, _asked: inputs.Nothing) -> Facts:
    """A reviewer gets neither its author's story nor what other reviewers found."""
    it = desk.app
    view = it.views.task(desk.mine())
    if desk.part is Part.REVIEWER:
        facts = task_facts(shown_to(view.task, Role.REVIEWER))
        return {key: facts[key] for key in LITTLE}
    why = it.views.why(view.task.id)
    steps = it.steps.listed(view.task.id)
    return {
        **task_facts(view.task),
        "trouble": view.trouble,
        "gates": [gate_facts(gate) for gate in view.gates],
        "steps": [{"node": step.name, "state": state} for step, state in steps],
        "next": {"why": why.advice.why, "command": why.advice.command or None},
        "arrows": [why_facts(row) for row in why.moves],
    }


def update_status(desk: Desk, asked: inputs.UpdateStatus) -> Facts:
    it, id = desk.app, desk.mine()
    if asked.summary is not None:
        it.tasks.check_rename(id, asked.summary, it.caller)
    it.signals.move(id, Move(asked.status), it.caller)
    if asked.summary is not None:
        it.tasks.rename(id, asked.summary, it.caller)
    return _short(desk)


def complete(desk: Desk, _asked: inputs.Nothing) -> Facts:
    desk.app.signals.move(desk.mine(), Move(Status.AGENT_REVIEW), desk.app.caller)
    return _short(desk)


def run_step(desk: Desk, asked: inputs.RunStep) -> Facts:
    return step_facts(desk.app.steps.run(desk.mine(), asked.node or "", desk.app.caller))


def checkpoint(desk: Desk, asked: inputs.Checkpoint) -> Facts:
    id, it = desk.mine(), desk.app
    said = Said(type=asked.type, summary=asked.summary, confidence=asked.confidence)
    return {"task": id, "sequence": it.signals.checkpoint(id, it.caller, said).sequence}


def submit_review(desk: Desk, asked: inputs.SubmitReview) -> Facts:
    text = json.dumps(asked.model_dump(mode="json", exclude_none=True, exclude_defaults=False))
    desk.app.signals.review(desk.mine(), text, desk.app.caller)
    return _short(desk)


def ask_human(desk: Desk, asked: inputs.AskHuman) -> Facts:
    desk.app.signals.ask(desk.mine(), asked.questions, desk.app.caller)
    return _short(desk)


def _short(desk: Desk) -> Facts:
    task = desk.app.views.load(desk.mine())
    return {key: value for key, value in task_facts(task).items() if key in LITTLE}


TOOLS = (
    Tool(
        name="get_my_task",
        says="The task that you work on or review: its status, its gates and their results, its"
        " steps, and what moves it on.",
        parts=BOTH,
        command=("task", "show"),
        takes=inputs.Nothing,
        gives=outputs.MyTask,
        does=get_my_task,
        reads=True,
    ),
    Tool(
        name="update_status",
        says="Move your task to another status; agent-review hands your work in. A refusal says"
        " what is missing and changes nothing.",
        parts=BOTH,
        command=("task", "update"),
        takes=inputs.UpdateStatus,
        gives=outputs.Moved,
        does=update_status,
    ),
    Tool(
        name="complete",
        says="Hand your work in to be judged. Write ## Handoff into TASK.md first.",
        parts=WORKER,
        command=("task", "complete"),
        takes=inputs.Nothing,
        gives=outputs.Moved,
        does=complete,
    ),
    Tool(
        name="run_step",
        says="Run the next step of your task on your work as it is now, in a sandbox, on a clean"
        " checkout. Its exit code decides: advance, complete, stay or escalate.",
        parts=WORKER,
        command=("step", "run"),
        takes=inputs.RunStep,
        gives=outputs.StepRan,
        does=run_step,
    ),
    Tool(
        name="checkpoint",
        says="Save where your work stands, with a snapshot of it.",
        parts=WORKER,
        command=("checkpoint",),
        takes=inputs.Checkpoint,
        gives=outputs.Kept,
        does=checkpoint,
    ),
    Tool(
        name="submit_review",
        says="Hand your review in, once: the verdict and all findings. Any P0 or P1 is a FAIL.",
        parts=REVIEWER,
        command=("review", "submit"),
        takes=inputs.SubmitReview,
        gives=outputs.Moved,
        does=submit_review,
    ),
    Tool(
        name="ask_human",
        says="Ask a human what only a human can decide, and wait: stop after it. The answer comes"
        " in this conversation.",
        parts=WORKER,
        command=("task", "update", "--status", "clarification"),
        takes=inputs.AskHuman,
        gives=outputs.Moved,
        does=ask_human,
    ),
)
