"""Following: what the orchestrator tells as it happens, and a task until it has come to rest."""

import time
from collections.abc import Callable, Iterator, Sequence

import click
from msgspec import Struct

from lockgate.bootstrap import App
from lockgate.core.lifecycle.needs import NeedKind, in_one_line
from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.task import Status, Task, TaskId
from lockgate.errors import Refused
from lockgate.faces import feed_client
from lockgate.faces.cli.output import INTERRUPTED, echo, must_be_wanted
from lockgate.faces.feed_client import FeedRefused, Item
from lockgate.faces.words import task as words
from lockgate.services.task.views import at_rest

SLOW_START = 10.0
SETTLES = 30.0  # seconds that a task which waits for a human is given to get its branch
BATCH = 500


def told(
    *,
    since: int | None,
    task: str | None = None,
    project: str | None = None,
    flags: Sequence[str] = ("--every",),
) -> Iterator[Item]:
    """The feed; that it is lost and there again goes to stderr."""
    try:
        for item in feed_client.follow(since=since, task=task, project=project, flags=flags):
            must_be_wanted()
            if "lost" in item:
                echo(f"note: {words.one_line(str(item['lost']))}", err=True)
            elif "back" in item:
                echo("note: the orchestrator is there again", err=True)
            yield item
    except FeedRefused as refused:
        raise _refused(str(refused)) from None


def _refused(text: str) -> Refused:
    """The orchestrator's words, which have three parts."""
    what, _, rest = text.partition(": ")
    why, _, fix = rest.rpartition("\n  ")
    return Refused(what, why=why or rest, fix=fix or "lockgate status")


def follow(it: App, id: TaskId, *, quietly: bool) -> Task:
    """The task as it is when it has come to rest; an interruption leaves it running."""
    try:
        return Follower(it, id, _nothing if quietly else _tell).to_its_end()
    except KeyboardInterrupt:
        echo(f"\n{id} continues in the background: lockgate events {id} --follow", err=True)
        echo(f"  to stop it: lockgate task cancel {id}", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None


class Follower(Struct):
    """Tells a task's events as they come, until nothing more happens to it by itself."""

    it: App
    id: TaskId
    tell: Callable[[StoredEvent], None]
    _noted: str = ""

    def to_its_end(self) -> Task:
        began = news = time.monotonic()
        seen = 0
        for item in told(since=0, task=self.id):
            if "event" in item:
                news, seen = time.monotonic(), item["event"]["seq"]
                self.tell(StoredEvent(**item["event"]))
            task = self.it.views.load(self.id)
            if self._rests(task, time.monotonic() - news) and not self._untold(seen):
                return task
            self._look_around(task, time.monotonic() - began)
        raise AssertionError("a feed has no end")

    def _untold(self, seen: int) -> bool:
        """Whether some of its events are still to come: all of them are told."""
        return bool(self.it.views.events(self.id, seen, 1))

    def _rests(self, task: Task, quiet: float) -> bool:
        pending = self.it.views.pending(self.id, BATCH)
        if quiet > SETTLES and task.status is not Status.WORKING:
            pending = ()
        return at_rest(task, pending, lands_by_itself=self.it.views.lands_by_itself(task))

    def _look_around(self, task: Task, waited: float) -> None:
        if task.status is Status.PENDING and waited > SLOW_START:
            log = self.it.home / "logs" / "orchestrator.log"
            at_work = len(self.it.agents.at_work())
            slot = f"it waits until an agent's slot is free; agents at work: {at_work}. See {log}"
            needs = self.it.boards.inbox((task.project,)).needs
            unagreed = [in_one_line(it) for it in needs if it.kind is NeedKind.TRUST]
            self._note(words.one_line(next(iter(unagreed), slot)))

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
