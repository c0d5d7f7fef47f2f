"""Tells of what has ended in tasks as spans, from the events; the loop waits for none of it."""

from collections.abc import Callable
from threading import Event

from msgspec import Struct, field

from lockgate.core.model.spans import UNTRACED, Context, ended_after, told_by
from lockgate.core.model.task import SessionId, TaskId
from lockgate.errors import LockgateError
from lockgate.ports import Store
from lockgate.ports.spans import Spans

BATCH = 500
ALL = 100_000  # events of one task
LOOK_AGAIN = 30.0  # seconds, though nobody has woken it


class Tracing(Struct, kw_only=True):
    """From the moment that it is made; what ended before is not told again."""

    store: Store
    spans: Spans
    report: Callable[[str], None]
    seq: int
    woken: Event = field(default_factory=Event)
    stopping: Event = field(default_factory=Event)

    def run(self) -> None:
        """Until it is stopped."""
        while not self.stopping.is_set():
            self.woken.wait(LOOK_AGAIN)
            self.woken.clear()
            try:
                self.turn()
            except LockgateError as error:
                self.report(f"traces: {error} ({error.fix})")
            except Exception as error:  # noqa: BLE001 - our bug must not end the traces
                self.report(f"traces: a bug in Lockgate: {error!r}")

    def turn(self) -> None:
        while events := self.store.events(None, self.seq, BATCH):
            last = events[-1].seq
            for task in dict.fromkeys(it.task for it in events):
                known = self.store.events(task, 0, ALL)
                self.spans.tell(ended_after(self.seq, [it for it in known if it.seq <= last]))
            self.seq = last

    def stop(self) -> None:
        self.stopping.set()
        self.woken.set()


class Traces(Struct, frozen=True):
    """To which span a program belongs that is about to be started."""

    store: Store
    spans: Spans

    def task(self, id: TaskId) -> Context:
        return told_by(self.store.events(id, 0, ALL)).task if self.spans.wanted else UNTRACED

    def session(self, task: TaskId, id: SessionId) -> Context:
        if not self.spans.wanted:
            return UNTRACED
        return told_by(self.store.events(task, 0, ALL)).session(id)
