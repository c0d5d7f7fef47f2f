"""The demo's story: told from the events as they come, and checked against the store at its end."""

import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import click

from lockgate.bootstrap import App, run_demo_tests
from lockgate.bootstrap.assistants import mcp_child
from lockgate.bootstrap.gates import Benches
from lockgate.bootstrap.orchestrator import orchestrating
from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.task import Status, Task, TaskId
from lockgate.errors import LockgateError
from lockgate.faces.cli import output
from lockgate.faces.cli.serve import answer
from lockgate.faces.words import task as words

# What must be in the log and beside the commits for the demo's story to be true.


# How often each event is there, once all have passed their gates, and once all have landed.
PASSED = {
    "fix-login": {"agent.crashed": 0, "GateFailedRetrying": 1, "HumanReviewCompleted": 1},
    "tidy-names": {"agent.crashed": 0, "GateFailedRetrying": 1, "HumanReviewCompleted": 1},
    "add-export": {"agent.crashed": 1, "GateFailedRetrying": 1, "HumanReviewCompleted": 0},
}
LANDED = {
    "fix-login": {"AllGatesPassed": 1, "attempt.failed": 1, "change.landed": 1},
    "tidy-names": {"AllGatesPassed": 1, "attempt.failed": 1, "change.landed": 1},
    "add-export": {"AllGatesPassed": 2, "attempt.failed": 3, "change.landed": 1},
}


class StoryBroke(LockgateError):
    def __init__(self, why: str) -> None:
        fix = "run it again with --keep, look around there, and report what you see"
        super().__init__("the demo did not go as it should", why=why, fix=fix)


def require(claim: str, *, holds: bool) -> None:
    if not holds:
        raise StoryBroke(f"it should be so that {claim}")


def check_log(app: App, ids: Mapping[str, TaskId], table: Mapping[str, Mapping[str, int]]) -> None:
    """The story again, from what the store has of it."""
    for branch, expected in table.items():
        counts = Counter(it.type for it in app.views.all_events(ids[branch]))
        for type, times in expected.items():
            holds = counts[type] == times
            require(f"{branch} has {times} {type} in its log, not {counts[type]}", holds=holds)
    broken = app.views.first_broken_event()
    require(f"the log's chain holds, also at {broken}", holds=broken is None)


def check_evidence(app: App, root: Path, tasks: Iterable[Task]) -> None:
    """Each commit that the target was at came through the queue."""
    project = app.projects.here(root)
    for task in tasks:
        found = app.queue.verify(project, task.landed)
        proved = found is not None and not found.problem
        require(f"{task.id} landed with its evidence", holds=proved)


TASKS = {
    "fix-login": "After login, go on to the page that was asked for",
    "tidy-names": "Refuse titles with a slash",
    "add-export": "Export reports as CSV",
}
LAST = "add-export"  # so that it meets the others in the queue
NO = "keep the test: a capital must become small"
PATIENCE = 90.0
LOOK_EVERY = 0.1
GRACE = 1.0

_ANSWERS = {
    "fix-login": ("approve", "fix-login", "-m", "only pages of ours, good"),
    "tidy-names": ("reject", "tidy-names", "-m", NO),
}
DROPPED = 3  # failed attempts of the last: its crash, its review, the train


class Story:
    """Says what happens as it happens; whatever is not as it should be ends it."""

    def __init__(self, app: App, root: Path) -> None:
        self.app, self.root = app, root
        self.ids: dict[str, TaskId] = {}
        self.troubles: list[str] = []
        self.told, self.over = 0, False
        self.answered: set[str] = set()
        self.begun = time.time()

    def tell(self, why_bare: str | None) -> None:
        click.echo("Three tasks at once, in a throw-away repository. The agents play scripts;")
        click.echo("the orchestrator, the sessions, the gates and every rule are the real ones.")
        click.echo(_sandbox(why_bare))
        for branch, summary in TASKS.items():
            late = ("--priority", "4") if branch == LAST else ()
            self._lockgate("task", "create", branch, summary, *late)
            self.ids[branch] = self.app.tasks.find(f"{branch}-")
        self._orchestrate()
        self._prove()
        self._board("The board at the end:")
        click.echo('\nIn a repository of yours: lockgate init, then lockgate run "what to do"')

    def _orchestrate(self) -> None:
        click.echo("\n$ lockgate up")
        mcp = mcp_child(self.app.home)
        answering = partial(answer, self.app, Benches(self.app.home), mcp)
        with orchestrating(self.app, answering, self._trouble) as loop:
            if loop is None:
                raise StoryBroke("another orchestrator serves the demo's own home")

            def turn() -> None:
                loop.turn()
                loop.wait(LOOK_EVERY)

            try:
                self._turn_until(turn, self._all_passed)
                check_log(self.app, self.ids, PASSED)
                self._let_land()
                self._turn_until(turn, self._all_landed)
                check_log(self.app, self.ids, LANDED)
            finally:
                self.over = True
                self.app.agents.end_all(
                    GRACE
                )  # while the door is open: an agent that asks is answered

    def _turn_until(self, turn: Callable[[], None], done: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not done():
            if time.monotonic() > until:
                raise StoryBroke(self._late())
            turn()
            self._tell_news()
            self._answer()

    def _answer(self) -> None:
        """What a human says where one is asked."""
        for branch, gate in (("fix-login", "sign_off"), ("tidy-names", "differential")):
            if self._task(branch).waiting == gate and branch not in self.answered:
                self.answered.add(branch)
                self._lockgate(*_ANSWERS[branch])
        last = self._task(LAST)
        waits = last.status is Status.REVIEWING and not (last.to_land or last.landed)
        if waits and last.failed_attempts == DROPPED:
            self._lockgate("queue", "approve", LAST)

    def _let_land(self) -> None:
        """The train: each passed alone, two of them do not go together."""
        click.echo("\nEach has passed its gates, alone. A human lets them land; the train tests")
        click.echo("them together, and main moves only to what was tested:")
        self._lockgate("queue", "list")
        for branch in TASKS:
            self._lockgate("queue", "approve", branch)

    def _prove(self) -> None:
        """Each commit that main was at came through the queue; the tests pass on the last."""
        click.echo("\nAll have landed. What judged the commit that main is at:")
        self._lockgate("verify", "main")
        green, said = run_demo_tests(self.root)
        click.echo(f"$ python report-unittest.py\n{_indented(said)}")
        require(f"the tests pass on main: {said}", holds=green)
        check_evidence(self.app, self.root, map(self._task, TASKS))

    def _all_passed(self) -> bool:
        return self._settled() and self._all(Status.REVIEWING)

    def _all_landed(self) -> bool:
        return self._settled() and self._all(Status.DONE)

    def _all(self, status: Status) -> bool:
        stuck = [it for it in TASKS if self._task(it).status is Status.STUCK]
        require(f"nobody is stuck, nor {', '.join(stuck)}", holds=not stuck)
        return all(self._task(branch).status is status for branch in TASKS)

    def _settled(self) -> bool:
        """Nobody works on a task, and nothing is left to do for one."""
        waiting = any(self.app.views.pending(id, 1) for id in self.ids.values())
        return not waiting and not self.app.agents.at_work()

    def _tell_news(self) -> None:
        for event in self.app.views.events(None, self.told, 500):
            self.told = event.seq
            story = words.event_story(event)
            if story and event.type != "task.created":
                click.echo(self._line(event, story))
        sys.stdout.flush()

    def _line(self, event: StoredEvent, story: str) -> str:
        branch = next((name for name, id in self.ids.items() if id == event.task), event.task)
        width = max(map(len, TASKS))
        return f"{max(0.0, event.time - self.begun):5.1f} s  {branch:<{width}}  {story}"

    def _trouble(self, text: str) -> None:
        self.troubles.append(text)
        if not self.over:
            click.echo(f"trouble: {words.one_line(text)}", err=True)

    def _late(self) -> str:
        stand = [f"{branch} is {self._task(branch).status}" for branch in TASKS]
        return "; ".join((f"after {PATIENCE:.0f} s {' and '.join(stand)}", *self.troubles))

    def _task(self, branch: str) -> Task:
        return self.app.views.load(self.ids[branch])

    def _board(self, text: str) -> None:
        click.echo(f"\n{text}")
        self._lockgate("task", "list", "--ended")

    def _lockgate(self, *argv: str) -> None:
        """One command as a user types it, in the demo's repository and home."""
        from lockgate.faces.cli.app import run

        told = " ".join(("lockgate", *map(shlex.quote, argv)))
        click.echo(f"$ {told}")
        to = output.Terminal(self.app, self.root, "", sys.stdout, sys.stderr)
        code = run(list(argv), to)
        if code == output.INTERRUPTED:
            raise KeyboardInterrupt
        require(f"`{told}` exits 0, not {code}", holds=code == 0)


def _sandbox(why_bare: str | None) -> str:
    if why_bare is None:
        return "Sandbox: bubblewrap."
    return f"Sandbox: none, so agents and the gate run unenclosed here: {words.one_line(why_bare)}."


def _indented(text: str) -> str:
    lines: Iterable[str] = (line for line in text.splitlines() if line.strip("- "))
    return "\n".join(f"  {words.safe(line)}" for line in lines)
