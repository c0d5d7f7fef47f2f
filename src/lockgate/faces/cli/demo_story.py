"""The demo's story, told on a stage."""

from typing import Protocol

from lockgate.bootstrap import App, merge_demo_branch
from lockgate.core.limits import ESCALATION_THRESHOLD
from lockgate.core.model import Role, Status, TaskId


class Stage(Protocol):
    def say(self, text: str) -> None: ...
    def lockgate(self, *argv: str, token: str = "", exits: int = 0) -> None: ...
    def require(self, claim: str, *, holds: bool) -> None: ...
    def app(self) -> App: ...
    def task(self, branch: str) -> TaskId: ...
    def begin(self, id: TaskId, role: Role) -> str: ...
    def dies(self, id: TaskId) -> str: ...
    def write(self, id: TaskId, text: str) -> None: ...
    def rewrite(self, id: TaskId, old: str, new: str) -> None: ...


def tell(on: Stage) -> None:
    on.say("Three tasks. Agents are played by hand here; every rule is the real one.")
    on.lockgate("task", "create", "fix-login", "Fix the login redirect")
    on.lockgate("task", "create", "add-export", "Export reports as CSV")
    on.lockgate("task", "create", "speed-up", "Halve the start-up time")
    _worked_and_reviewed(on, on.task("fix-login"))
    _crashed_twice(on, on.task("add-export"))
    _failed_too_often(on, on.task("speed-up"))
    on.say(
        "The board at the end, and the log: numbered without gaps, each event hashed into the next."
    )
    on.lockgate("task", "list")
    on.lockgate("events", "--since", str(_last_seq(on) - 3))
    on.require("the log's chain holds", holds=on.app().store.first_broken_event() is None)


def _worked_and_reviewed(on: Stage, id: TaskId) -> None:
    on.say("1. A worker starts. It says that it is done, and has written no Handoff.")
    on.lockgate("task", "update", id, "--status", "working")
    worker = on.begin(id, Role.WORKER)
    on.lockgate("task", "complete", token=worker, exits=1)
    on.say("It writes one, and hands on. It would also like to be its own reviewer.")
    on.write(id, "## Handoff\nDONE: redirect goes to the page that was asked for\n")
    on.lockgate("task", "complete", token=worker)
    on.lockgate("task", "update", "--status", "reviewing", token=worker, exits=1)
    on.say("A reviewer's prose is no verdict. Its FAIL sends the task back.")
    reviewer = on.begin(id, Role.REVIEWER)
    on.write(id, "## Review\nOn a first pass this looks good.\n")
    on.lockgate("task", "update", "--status", "reviewing", token=reviewer, exits=1)
    on.rewrite(id, "On a first pass this looks good.\n", "FAIL\nIt loops when logged in.\n")
    on.lockgate("task", "update", "--status", "working", token=reviewer)
    _fixed_and_landed(on, id)


def _fixed_and_landed(on: Stage, id: TaskId) -> None:
    on.say("The next worker hands on the same text again: it moved the task once and is spent.")
    worker = on.begin(id, Role.WORKER)
    on.lockgate("task", "complete", token=worker, exits=1)
    on.rewrite(id, "DONE: redirect", "DONE: no loop when logged in; redirect")
    on.lockgate("task", "complete", token=worker)
    on.say("Meanwhile somebody edits the status in TASK.md. The database knows better.")
    on.rewrite(id, "status: agent-review", "status: done")
    reviewer = on.begin(id, Role.REVIEWER)
    on.rewrite(id, "FAIL\nIt loops when logged in.\n", "PASS\nThe loop is gone.\n")
    on.lockgate("task", "update", "--status", "reviewing", token=reviewer)
    told = [event.type for event in on.app().views.all_events(id)]
    on.require("the edit was put back and logged", holds="artifact.tampered" in told)
    on.say("Done means landed: the change must be in main.")
    on.lockgate("task", "update", id, "--status", "done", exits=1)
    merge_demo_branch("fix-login")
    on.lockgate("task", "update", id, "--status", "done")


def _crashed_twice(on: Stage, id: TaskId) -> None:
    on.say("2. A worker's process dies with nothing to show, and then another one.")
    on.lockgate("task", "update", id, "--status", "working")
    for _ in range(2):
        on.begin(id, Role.WORKER)
        on.say(f"It died; the task is {on.dies(id)}.")
    on.require(
        "the second crash left it stuck", holds=on.app().store.load(id).status is Status.STUCK
    )
    on.lockgate("task", "why", id)


def _failed_too_often(on: Stage, id: TaskId) -> None:
    on.say(f"3. An agent that fails {ESCALATION_THRESHOLD} times is not let loose a sixth time.")
    on.lockgate("task", "update", id, "--status", "working")
    tried: list[str] = []

    def attempt(_task: object) -> str:
        tried.append("attempt")
        return "the tests are still red"

    on.app().runner.run(id, attempt)
    on.require("no sixth attempt was made", holds=len(tried) == ESCALATION_THRESHOLD)
    on.say("A human resumes it, with a word of advice.")
    on.lockgate("task", "show", id)
    on.lockgate("resume", id, "--directive", "Measure first: python -X importtime")


def _last_seq(on: Stage) -> int:
    store = on.app().store
    last = 0
    while more := store.events(None, last, 500):
        last = more[-1].seq
    return last
