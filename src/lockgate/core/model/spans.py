"""A task's life as spans of one trace: what took how long, inside of what.

Every id follows from the task's first event, so that a program that is started in the middle of it
can be told to which span it belongs, and nothing has to be kept for that. No span has a word of
what an agent, a person or a gate wrote.
"""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256

from msgspec import Struct, field

from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.task import Status

TASK, ITERATION, SESSION = "lockgate.task", "lockgate.iteration", "lockgate.session"
EVALUATION, GATE, ATTEMPT = "lockgate.evaluation", "lockgate.gate", "lockgate.attempt"
TEST, LANDING = "lockgate.train.test", "lockgate.landing"
TRACEPARENT = "TRACEPARENT"
TRACE, ID = 32, 16  # characters of an id
JUDGED = frozenset({"GateFailedRetrying", "GateFailedMaxIterations", "AllGatesPassed"})
OVER = frozenset({Status.DONE.name, Status.CANCELLED.name})

Facts = Mapping[str, str | int | float | bool]


class Context(Struct, frozen=True):
    """A span by its ids; no trace where nothing is traced."""

    trace: str = ""
    id: str = ""

    def inside(self, *names: object) -> "Context":
        """The span of that name in the same trace."""
        told = "\n".join((self.trace, *map(str, names)))
        return Context(self.trace, sha256(told.encode()).hexdigest()[:ID]) if self.trace else self

    @property
    def environment(self) -> Mapping[str, str]:
        """How a program is told to which span it belongs (W3C Trace Context)."""
        return {TRACEPARENT: f"00-{self.trace}-{self.id}-01"} if self.trace else {}


UNTRACED = Context()


class Span(Struct, frozen=True, kw_only=True):
    name: str
    at: Context
    parent: str = ""  # its id
    start: float
    end: float
    facts: Facts = field(default_factory=dict[str, str | int | float | bool])
    failed: bool = False


class Story(Struct):
    """A task as far as its events have told it."""

    task: Context = UNTRACED
    began: float = 0.0
    iterations: int = 0  # that have begun
    working: float | None = None  # since when the last one goes on
    ready: float | None = None  # to land, since when
    sessions: dict[str, tuple[float, str]] = field(default_factory=dict[str, tuple[float, str]])

    @property
    def iteration(self) -> Context:
        return self.task.inside(ITERATION, self.iterations)

    def session(self, id: str) -> Context:
        return self.task.inside(SESSION, id)

    def take(self, event: StoredEvent) -> Iterator[Span]:
        """The spans that end with this event."""
        if not self.task.trace:
            told = f"{event.task}\n{event.time!r}\n{event.prev}"
            trace = sha256(told.encode()).hexdigest()[:TRACE]
            self.task, self.began = Context(trace).inside(TASK), event.time
        if event.type == "status.changed":
            yield from self._moved(event)
        elif event.type in JUDGED:
            yield from self._judged(event)
        elif event.type in {"session.started", "session.ended"}:
            yield from self._session(event)
        elif event.type in {"change.landed", "landing.unjudged"}:
            began = event.time if self.ready is None else self.ready
            at = self.task.inside(LANDING, event.seq)
            yield Span(name=LANDING, at=at, parent=self.task.id, start=began, end=event.time)

    def _moved(self, event: StoredEvent) -> Iterator[Span]:
        to = str(event.data.get("to"))
        if to == Status.WORKING.name and self.working is None:
            self.iterations, self.working = self.iterations + 1, event.time
        if to == Status.REVIEWING.name:
            self.ready = event.time
        if to in OVER:
            yield from self._iterated(event, failed=True)
            facts: Facts = {"lockgate.status": Status[to].value}
            yield Span(
                name=TASK,
                at=self.task,
                start=self.began,
                end=event.time,
                facts=facts,
                failed=to != Status.DONE.name,
            )

    def _judged(self, event: StoredEvent) -> Iterator[Span]:
        yield from self._iterated(event, failed=event.type != "AllGatesPassed")
        if event.type == "GateFailedRetrying":
            self.iterations, self.working = self.iterations + 1, event.time

    def _iterated(self, event: StoredEvent, *, failed: bool) -> Iterator[Span]:
        if self.working is None:
            return
        yield Span(
            name=ITERATION,
            at=self.iteration,
            parent=self.task.id,
            start=self.working,
            end=event.time,
            facts={"lockgate.iteration": self.iterations},
            failed=failed,
        )
        self.working = None

    def _session(self, event: StoredEvent) -> Iterator[Span]:
        data, id = event.data, str(event.data.get("session"))
        if event.type == "session.started":
            self.sessions[id] = (event.time, self.iteration.id)
            return
        start, parent = self.sessions.pop(id, (event.time, self.iteration.id))
        yield Span(
            name=SESSION,
            at=self.session(id),
            parent=parent,
            start=start,
            end=event.time,
            facts={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": str(data.get("agent", "")),
                "gen_ai.usage.total_tokens": _whole(data.get("tokens")),
                "gen_ai.usage.cost_usd": _real(data.get("usd")),
                "lockgate.role": str(data.get("role", "")),
            },
            failed=bool(data.get("crashed")),
        )


def told_by(events: Iterable[StoredEvent]) -> Story:
    """Of one task's events, in their order."""
    story = Story()
    for event in events:
        tuple(story.take(event))
    return story


def ended_after(seq: int, events: Iterable[StoredEvent]) -> Iterator[Span]:
    """The spans of a task that ended after that event."""
    story = Story()
    for event in events:
        found = tuple(story.take(event))
        yield from found if event.seq > seq else ()


def _whole(found: object) -> int:
    return found if isinstance(found, int) else 0


def _real(found: object) -> float:
    return float(found) if isinstance(found, (int, float)) else 0.0
