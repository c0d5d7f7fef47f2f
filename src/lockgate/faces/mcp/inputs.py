"""What each tool takes, as pydantic models: their JSON Schemas are what a client is shown.

`lockgate task create --plan` reads its file by the same model as `create_tasks`.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from lockgate.core.lifecycle.plans import MOST
from lockgate.core.lifecycle.words import LONGEST_QUESTION, MOST_QUESTIONS
from lockgate.core.model.findings import Priority
from lockgate.core.model.task import Status

LONGEST = 20_000  # characters of what is said
PATCH = 12  # characters of a change's id that a yes or no must name

TaskName = Annotated[
    str,
    Field(min_length=1, max_length=80, description="The task's id, or any unique start of it."),
]
Project = Annotated[
    str,
    Field(
        max_length=4096,
        description="The path or the name of a project; default: the one of the directory that"
        " the client was started in.",
    ),
]
Words = Annotated[str, Field(max_length=LONGEST)]
Priorities = Annotated[int, Field(ge=1, le=5, description="1 is first, 5 is last.")]


class Input(BaseModel):
    """Nothing but what is named is taken, and nothing is turned into another type."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Nothing(Input):
    """No input."""


class OneTask(Input):
    task_id: TaskName


# Of operators' assistants.


class ListTasks(Input):
    project: Project | None = None
    status: list[Status] = Field(
        default=[], max_length=20, description="Only tasks in these statuses."
    )
    needs: bool = Field(default=False, description="Only tasks that need a human.")
    text: str | None = Field(
        default=None, max_length=200, description="Found in the id, the branch or the summary."
    )
    after: str | None = Field(
        default=None, max_length=200, description="`after` of the page before this one."
    )
    limit: int = Field(default=50, ge=1, le=200)


class CreateTask(Input):
    summary: str = Field(min_length=1, max_length=200, description="One line: what is to be done.")
    project: Project | None = None
    branch: str | None = Field(
        default=None, max_length=200, description="Default: made of the summary."
    )
    agent: str | None = Field(
        default=None, max_length=100, description="Which agent works on it; default: the project's."
    )
    priority: Priorities = 3
    depends_on: list[TaskName] = Field(
        default=[], max_length=50, description="Ids of tasks that must be done first."
    )
    context: str = Field(
        default="", max_length=500_000, description="All that the agent must know, as Markdown."
    )
    start: bool = Field(default=True, description="Start it as soon as an agent is free.")


class PlanTask(Input):
    """One task of a plan."""

    name: str = Field(
        min_length=1,
        max_length=100,
        description="How other tasks of the plan name it; also its branch, unless `branch` is.",
    )
    summary: str = Field(min_length=1, max_length=200, description="One line: what is to be done.")
    branch: str | None = Field(default=None, max_length=200)
    agent: str | None = Field(default=None, max_length=100)
    priority: Priorities = 3
    depends_on: list[TaskName] = Field(
        default=[], max_length=50, description="Names of this plan, or ids of tasks."
    )
    context: str = Field(default="", max_length=500_000)
    start: bool = True


class Plan(Input):
    tasks: list[PlanTask] = Field(min_length=1, max_length=MOST)


class CreateTasks(Plan):
    project: Project | None = None


class ListFindings(Input):
    task_id: TaskName
    all: bool = Field(default=False, description="Also those of earlier iterations.")


class Approve(Input):
    task_id: TaskName
    patch: str = Field(
        min_length=PATCH,
        max_length=64,
        description="`patch` of the task: the change that was looked at. Another one is refused.",
    )
    message: Words = ""


class Place(Input):
    """What is wrong at one place."""

    file: str = Field(min_length=1, max_length=4096)
    line: int = Field(ge=1, le=999_999_999)
    text: str = Field(min_length=1, max_length=LONGEST)
    priority: Literal["P0", "P1", "P2", "P3"] = "P1"


class Reject(Input):
    task_id: TaskName
    patch: str = Field(min_length=PATCH, max_length=64)
    message: str = Field(min_length=1, max_length=LONGEST, description="What is wrong with it.")
    findings: list[Place] = Field(default=[], max_length=100)


class ResumeTask(Input):
    task_id: TaskName
    directive: Words = Field(default="", description="A hint for the next agent.")


class CancelTask(Input):
    task_id: TaskName
    reason: Words = ""


class Queue(Input):
    project: Project | None = None
    action: Literal["list", "approve", "hold", "drop"] = "list"
    task_id: TaskName | None = None
    patch: str | None = Field(default=None, min_length=PATCH, max_length=64)
    message: Words = Field(default="", description="Why; hold and drop ask for it.")


class Events(Input):
    since: int = Field(default=0, ge=0, le=2**63 - 1, description="Only events after this number.")
    task_id: TaskName | None = None
    types: list[str] = Field(default=[], max_length=50, description="Only these types.")
    limit: int = Field(default=100, ge=1, le=500)
    wait_seconds: float = Field(
        default=0, ge=0, le=50, description="Wait so long for the first one."
    )


# Of agents at work.


class UpdateStatus(Input):
    status: Status = Field(description="Where the task is to go.")
    summary: str | None = Field(default=None, max_length=200, description="The task in one line.")


class RunStep(Input):
    node: str | None = Field(
        default=None, max_length=200, description="Default: the next step. Any other is a trial."
    )


class Checkpoint(Input):
    summary: Words = Field(default="", description="What was done.")
    confidence: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    type: Literal["incremental", "pre_compact", "final"] = "incremental"


class Found(Input):
    """One finding of a review."""

    priority: Priority
    issue: str = Field(min_length=1, max_length=LONGEST)
    file: str | None = Field(default=None, max_length=4096)
    line: int | None = Field(default=None, ge=1, le=999_999_999)
    suggestion: str | None = Field(default=None, max_length=LONGEST)


class SubmitReview(Input):
    verdict: Literal["PASS", "FAIL"]
    findings: list[Found] = Field(default=[], max_length=200)
    summary: Words = ""
    converged: bool = Field(default=False, description="Another pass would find nothing.")


class AskHuman(Input):
    questions: list[Annotated[str, Field(min_length=1, max_length=LONGEST_QUESTION)]] = Field(
        min_length=1,
        max_length=MOST_QUESTIONS,
        description="Each with the choices that you see.",
    )
