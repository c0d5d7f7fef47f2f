"""What ended in tasks is told as spans, beside the loop; what fails there is reported."""

from collections.abc import Callable, Iterable
from threading import Thread

import pytest
from msgspec import Struct, field

from lockgate.bootstrap.traces import traced
from lockgate.core.lifecycle.moves import Move
from lockgate.core.model.spans import UNTRACED, Span
from lockgate.core.model.task import SessionId, Status
from lockgate.errors import Unavailable
from lockgate.ports.spans import NoSpans
from lockgate.services.orchestrator.tracing import Traces, Tracing
from lockgate.services.task.callers import HUMAN
from tests.scenarios.stage import Stage
from tests.scenarios.world import REVIEW_ONLY


class FakeSpans(NoSpans, frozen=True):
    """Somebody looks, and keeps what was told."""

    wanted: bool = True
    told: list[Span] = field(default_factory=list[Span])

    def tell(self, spans: Iterable[Span]) -> None:
        self.told.extend(spans)


class FailingStore(Struct):
    error: Exception
    then: Callable[[], None]

    def events(self, *_asked: object) -> None:
        self.then()
        raise self.error


def test_a_task_that_ends_is_told_once_and_a_program_of_it_belongs_to_the_same_trace(
    tmp_path,
) -> None:
    stage, spans = Stage(tmp_path, REVIEW_ONLY), FakeSpans()
    store = stage.app.store
    tracing = Tracing(store=store, spans=spans, report=stage.reports.append, seq=store.head())
    id = stage.world.create()
    stage.turn()
    stage.app.coordinator.move(id, Move(Status.CANCELLED, "no"), HUMAN)
    traces = Traces(store, spans)

    tracing.turn()
    tracing.turn()

    [task] = [it for it in spans.told if it.name == "lockgate.task"]
    assert traces.task(id) == task.at
    assert traces.session(id, SessionId("s")).trace == task.at.trace
    nobody = Traces(store, NoSpans())
    assert (nobody.task(id), nobody.session(id, SessionId("s"))) == (UNTRACED, UNTRACED)
    stage.app.store.close()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Unavailable("nothing", why="no disk", fix="wait"), "traces: nothing: no disk (wait)"),
        (ValueError("x"), "traces: a bug in Lockgate: ValueError('x')"),
    ],
)
def test_what_fails_is_reported_and_it_goes_on(error, told) -> None:
    said: list[str] = []
    store = FailingStore(error, lambda: tracing.stop() if said else tracing.woken.set())
    tracing = Tracing(store=store, spans=FakeSpans(), report=said.append, seq=0)  # type: ignore[arg-type]  # a fake
    tracing.woken.set()
    thread = Thread(target=tracing.run)

    thread.start()
    thread.join(30)

    assert said == [told, told]


def test_where_nobody_looks_nothing_is_told_or_kept() -> None:
    nobody = NoSpans()
    nobody.tell([])
    nobody.close()

    with nobody.span("x", UNTRACED, {}) as it:
        it.facts["a"] = 1

    assert it.at == UNTRACED


class TurningLoop(Struct):
    turned: Callable[[], None]


def test_traces_are_told_beside_a_loop_that_goes_on_with_what_it_did_after_its_turns(
    tmp_path,
) -> None:
    stage, spans, planned = Stage(tmp_path, REVIEW_ONLY), FakeSpans(), list[str]()
    loop = TurningLoop(lambda: planned.append("planned"))

    with traced(stage.app, spans, loop, stage.reports.append):  # type: ignore[arg-type]  # a fake
        id = stage.world.create()
        stage.app.coordinator.move(id, Move(Status.CANCELLED, "no"), HUMAN)
        loop.turned()

    assert planned == ["planned"]
    assert "lockgate.task" in [it.name for it in spans.told]
    stage.app.store.close()
