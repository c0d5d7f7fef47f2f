"""The demo's story: told from the events as they come, and checked against the store at its end."""

import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import click

from lockgate.bootstrap import App, merge_demo_branch, run_demo_tests
from lockgate.bootstrap.orchestrator import orchestrating
from lockgate.core.event_log import StoredEvent
from lockgate.core.model import Status, Task, TaskId
from lockgate.errors import LockgateError
from lockgate.faces import words
from lockgate.faces.cli import output
from lockgate.faces.cli.up import answer

TASKS = {
    "fix-login": "After login, go on to the page that was asked for",
    "add-export": "Export reports as CSV",
}
PATIENCE = 60.0
LOOK_EVERY = 0.1
GRACE = 1.0
AT_WORK = frozenset({Status.PENDING, Status.WORKING, Status.AGENT_REVIEW})

# What must be in the log, how often, for the story to be true.
EXPECTED = {
    "fix-login": {"agent.crashed": 0, "GateFailedRetrying": 1, "AllGatesPassed": 1},
    "add-export": {"agent.crashed": 1, "GateFailedRetrying": 0, "AllGatesPassed": 1},
}


class StoryBroke(LockgateError):
    def __init__(self, why: str) -> None:
        fix = "run it again with --keep, look around there, and report what you see"
        super().__init__("the demo did not go as it should", why=why, fix=fix)


class Story:
    """Says what happens as it happens; whatever is not as it should be ends it."""

    def __init__(self, app: App, root: Path) -> None:
        self.app, self.root = app, root
        self.ids: dict[str, TaskId] = {}
        self.troubles: list[str] = []
        self.told, self.over = 0, False
        self.begun = time.time()

    def tell(self, why_bare: str | None) -> None:
        click.echo("Two tasks at once, in a throw-away repository. The agents play a script each;")
        click.echo("the orchestrator, the sessions, the gate and every rule are the real ones.")
        click.echo(_sandbox(why_bare))
        for branch, summary in TASKS.items():
            self._lockgate("task", "create", branch, summary)
            self.ids[branch] = self.app.tasks.find(f"{branch}-")
        self._orchestrate()
        self._check()
        self._board("Both have passed their gate. The board:")
        self._land()
        self._board("The board at the end:")
        click.echo('\nIn a repository of yours: lockgate init, then lockgate run "what to do"')

    def _orchestrate(self) -> None:
        click.echo("\n$ lockgate up")
        until = time.monotonic() + PATIENCE
        with orchestrating(self.app, lambda call: answer(self.app, call), self._trouble) as loop:
            if loop is None:
                raise StoryBroke("another orchestrator serves the demo's own home")
            try:
                while not self._settled():
                    if time.monotonic() > until:
                        raise StoryBroke(self._late())
                    loop.turn()
                    loop.wait(LOOK_EVERY)
                    self._tell_news()
            finally:
                self.over = True
                end_agents(self.app)  # while the door is open: an agent that asks is answered

    def _land(self) -> None:
        """What a human does next. `done` is refused for a change that is not in main."""
        click.echo("\nA human reads the diffs and merges; then the tests, on main as it is now:")
        for branch in TASKS:
            click.echo(f"$ git merge {branch}")
            merge_demo_branch(self.root, branch)
        green, said = run_demo_tests(self.root)
        click.echo(f"$ python -m unittest -q\n{_indented(said)}")
        _require(f"the tests pass on main: {said}", holds=green)
        for branch in TASKS:
            self._lockgate("task", "update", branch, "--status", "done")
        done = all(self._task(branch).status is Status.DONE for branch in TASKS)
        _require("both tasks are done", holds=done)

    def _check(self) -> None:
        """The story again, from what the store has of it."""
        for branch, expected in EXPECTED.items():
            task, events = self._task(branch), self.app.views.all_events(self.ids[branch])
            _require(f"{branch} is reviewing, not {task.status}", holds=_is(task, Status.REVIEWING))
            counts = Counter(event.type for event in events)
            for type, times in expected.items():
                holds = counts[type] == times
                _require(f"{branch} has {times} {type} in its log, not {counts[type]}", holds=holds)
            starts = sum(map(_starts_worker, events))
            _require(f"{branch} had two workers, not {starts}", holds=starts == 2)  # noqa: PLR2004
        broken = self.app.store.first_broken_event()
        _require(f"the log's chain holds, also at {broken}", holds=broken is None)

    def _settled(self) -> bool:
        """Nobody works on either task, and nothing is left to do for them."""
        alive = self.app.store.sessions_alive()
        waiting = any(self.app.store.pending_effects(id, 1) for id in self.ids.values())
        at_work = any(self._task(branch).status in AT_WORK for branch in TASKS)
        return not alive and not waiting and not at_work

    def _tell_news(self) -> None:
        for event in self.app.store.events(None, self.told, 500):
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
        return self.app.store.load(self.ids[branch])

    def _board(self, text: str) -> None:
        click.echo(f"\n{text}")
        self._lockgate()

    def _lockgate(self, *argv: str) -> None:
        """One command as a user types it, in the demo's repository and home."""
        from lockgate.faces.cli.app import run

        told = " ".join(("lockgate", *map(shlex.quote, argv)))
        click.echo(f"$ {told}")
        to = output.Terminal(self.app, self.root, "", sys.stdout, sys.stderr)
        code = run(list(argv), to)
        if code == output.INTERRUPTED:
            raise KeyboardInterrupt
        _require(f"`{told}` exits 0, not {code}", holds=code == 0)


def end_agents(app: App) -> None:
    for session in app.store.sessions_alive():
        app.sessions.end(session.id, GRACE)


def _require(claim: str, *, holds: bool) -> None:
    if not holds:
        raise StoryBroke(f"it should be so that {claim}")


def _is(task: Task, status: Status) -> bool:
    return task.status is status


def _starts_worker(event: StoredEvent) -> bool:
    return event.type == "session.started" and event.data["role"] == "worker"


def _sandbox(why_bare: str | None) -> str:
    if why_bare is None:
        return "Sandbox: bubblewrap."
    return f"Sandbox: none, so agents and the gate run unenclosed here: {words.one_line(why_bare)}."


def _indented(text: str) -> str:
    lines: Iterable[str] = (line for line in text.splitlines() if line.strip("- "))
    return "\n".join(f"  {words.safe(line)}" for line in lines)
