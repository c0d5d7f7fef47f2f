"""Following a task: its events as they come, until nothing more happens by itself."""

import time
from collections.abc import Callable

import click
from msgspec import Struct

from lockgate.bootstrap import App, orchestrator_pid
from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.task import Status, Task, TaskId
from lockgate.core.train.entries import lands_alone
from lockgate.errors import LockgateError
from lockgate.faces.cli.output import INTERRUPTED, echo, wake
from lockgate.faces.words import task as words
from lockgate.services.task.views import at_rest

PAUSE = 0.2
LOOK_EVERY = 10.0  # seconds between two looks at whether an orchestrator runs
SLOW_START = 10.0
SETTLES = 30.0  # seconds that a task which waits for a human is given to get its branch
BATCH = 500


def follow(it: App, id: TaskId, *, quietly: bool) -> Task:
    """The task as it is when it has come to rest; whoever interrupts this leaves it going on."""
    try:
        return Follower(it, id, _nothing if quietly else _tell).to_its_end()
    except KeyboardInterrupt:
        echo(f"\n{id} continues in the background: lockgate events {id} --follow", err=True)
        echo(f"  to stop it: lockgate task cancel {id}", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None


def lands_by_itself(it: App, task: Task) -> bool:
    """As its target's configuration has it now, which is what the train goes by."""
    try:
        settings = it.configuration.settings_of(it.views.project_of(task))
    except LockgateError:
        return False
    return lands_alone(task, settings.merge.mode)


class Follower(Struct):
    """Tells a task's events, and sees to it that somebody carries the task on."""

    it: App
    id: TaskId
    tell: Callable[[StoredEvent], None]
    _seen: int = 0
    _looked: float = 0.0
    _noted: str = ""

    def to_its_end(self) -> Task:
        began = self._looked = news = time.monotonic()
        while True:
            task = self.it.views.load(self.id)  # before its events, so that all of its are told
            if self._tell_new():
                news = time.monotonic()
            if self._rests(task, time.monotonic() - news):
                return task
            self._look_around(task, time.monotonic() - began)
            time.sleep(PAUSE)

    def _tell_new(self) -> bool:
        before = self._seen
        while events := self.it.views.events(self.id, self._seen, BATCH):
            for event in events:
                self.tell(event)
            self._seen = events[-1].seq
        return self._seen != before

    def _rests(self, task: Task, quiet: float) -> bool:
        pending = self.it.views.pending(self.id, BATCH)
        if quiet > SETTLES and task.status is not Status.WORKING:
            pending = ()
        return at_rest(task, pending, lands_by_itself=lands_by_itself(self.it, task))

    def _look_around(self, task: Task, waited: float) -> None:
        log = self.it.home / "logs" / "orchestrator.log"
        if task.status is Status.PENDING and waited > SLOW_START:
            at_work = len(self.it.agents.at_work())
            slot = f"it waits until an agent's slot is free; agents at work: {at_work}. See {log}"
            unagreed = [why for _, why in self.it.views.untrusted((task.project,))]
            self._note(words.one_line(next(iter(unagreed), slot)))
        if time.monotonic() - self._looked < LOOK_EVERY:
            return
        self._looked = time.monotonic()
        if orchestrator_pid(self.it.home) is None:
            self._note(f"the orchestrator is not running, see {log}; start one: lockgate up")
            wake()

    def _note(self, text: str) -> None:
        if text != self._noted:
            self._noted = text
            echo(f"note: {text}", err=True)


def _tell(event: StoredEvent) -> None:
    told = words.event_story(event)
    if told:
        echo(f"{time.strftime('%H:%M:%S', time.localtime(event.time))}  {words.safe(told)}")


def _nothing(_event: StoredEvent) -> None:
    pass
