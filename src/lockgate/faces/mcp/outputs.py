"""What each tool gives, as pydantic models: their JSON Schemas are what a client is promised.

A tool may give more than is named here, and a list that is too long is cut: `cut` says of what.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Output(BaseModel):
    model_config = ConfigDict(extra="allow")


class Answer(Output):
    cut: dict[str, int] | None = Field(
        default=None, description="How many items, or characters, were left out, by name."
    )


class Refusal(Output):
    """What did not happen, why, and what to do. It comes with `isError`."""

    what: str
    why: str
    fix: str


# Of agents.


class Moved(Answer):
    id: str
    summary: str
    branch: str
    status: str
    review_round: int


class MyTask(Moved):
    """A reviewer gets no more than these; a worker all of its task."""

    gates: list["GateSaid"] | None = None
    steps: list["StepState"] | None = None
    next: "Next | None" = None
    arrows: list["Arrow"] | None = None


class GateSaid(Output):
    gate: str
    result: str
    why: str


class StepState(Output):
    node: str
    state: str


class Next(Output):
    why: str
    command: str | None


class Arrow(Output):
    to: str
    by: list[str]
    possible: bool
    missing: str | None
    fix: str


class Gate(Output):
    passed: bool
    reason: str | None = None


class StepRan(Answer):
    """One of the last four is true; none is where the step was not the next one: a trial."""

    task: str
    node: str
    phase: str
    command: str
    commit: str
    exit_code: int | None
    output: str
    gate: "Gate"
    failures: int
    steps_passed: list[str]
    advance: bool = False
    nextNodeId: str | None = None  # noqa: N815 - as the source of the steps spells it
    complete: bool = False
    stay: bool = False
    escalate: bool = False


class Kept(Answer):
    task: str
    sequence: int


# Of operators' assistants.


class Action(Output):
    verb: str
    command: str


class Need(Output):
    """What a human must do, and the commands that do it."""

    key: str
    kind: str
    task: str | None
    project: str
    ask: str
    since: float
    blocks: int
    patch: str
    actions: list[Action]


class BoardRow(Answer):
    id: str
    project: str
    summary: str
    branch: str
    agent: str
    status: str
    priority: int
    usd: float
    tokens: int
    updated: float
    rev: int
    need: Need | None


class Board(Answer):
    rows: list[BoardRow]
    after: str | None = Field(description="Give it as `after` for the next page; null at the end.")
    counts: dict[str, int]
    needs: list[Need]
    seq: int
    fleet: dict[str, object] | None = Field(
        default=None, description="Of several hosts: who leads, each host, what waits for one."
    )


class Finding(Output):
    gate: str
    priority: str
    file: str | None
    line: int | None
    issue: str
    state: Literal["new", "still-there", "fixed"]


class Findings(Answer):
    task: str
    findings: list[Finding]


class TaskPage(Answer):
    row: BoardRow
    trouble: str | None
    sections: list[dict[str, object]] = Field(description="The parts of TASK.md, by heading.")
    timeline: list[dict[str, object]] = Field(description="Its events, oldest first.")
    gates: list[GateSaid]
    findings: list[dict[str, object]]
    iterations: list[dict[str, object]]
    sessions: list[dict[str, object]]
    files: list[dict[str, object]] = Field(description="Of its change; protected ones first.")
    conflicts: list[dict[str, object]]
    approvals: list[dict[str, object]]


class Made(Answer):
    tasks: list[BoardRow]


class Why(Answer):
    task: str
    status: str
    need: Need | None
    next: Next
    arrows: list[Arrow]


class Train(Answer):
    target: str
    mode: str
    holds: list[str]
    cars: list[dict[str, object]]


class Event(Output):
    seq: int
    time: float
    task: str | None
    type: str
    data: dict[str, object]


class Events(Answer):
    events: list[Event]
    next: int = Field(description="Give it as `since` for the next call.")
