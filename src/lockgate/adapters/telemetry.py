"""Spans by OpenTelemetry's exporter, as its own variables say; imported only where they are set."""

import logging
import os
import random
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from threading import Thread

from msgspec import Struct
from msgspec.structs import replace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from lockgate import __version__
from lockgate.core.model.gates import CommandGate, Report
from lockgate.core.model.results import ReportRead, Unreadable
from lockgate.core.model.spans import ATTEMPT, Context, Facts, Span
from lockgate.ports import Attempt, GateRun, GateRuns
from lockgate.ports.spans import Open, Spans

SAMPLED = TraceFlags(TraceFlags.SAMPLED)
SCOPE = InstrumentationScope("lockgate", __version__)
MOMENT = 2.0  # seconds to send what waits when all ends
NANO = 1_000_000_000


class OtlpSpans:
    """The `Spans` of ports. A collector that does not answer holds up nothing; it is told once."""

    wanted = True

    def __init__(self, report: Callable[[str], None]) -> None:
        name = os.environ.get("OTEL_SERVICE_NAME") or "lockgate"
        named = {"service.name": name, "service.version": __version__}
        self._resource = Resource.create(named)
        self._batches = BatchSpanProcessor(OTLPSpanExporter())
        log = logging.getLogger("opentelemetry")
        log.propagate = False
        log.addHandler(_Once(report))

    def tell(self, spans: Iterable[Span]) -> None:
        for it in spans:
            self._batches.on_end(self._readable(it))

    @contextmanager
    def span(self, name: str, parent: Context, facts: Facts) -> Generator[Open]:
        if not parent.trace:
            yield Open(parent)
            return
        it = Open(Context(parent.trace, f"{random.getrandbits(64) or 1:016x}"), dict(facts))
        start = time.time()
        try:
            yield it
        except BaseException:
            it.failed = True
            raise
        finally:
            told = Span(
                name=name,
                at=it.at,
                parent=parent.id,
                start=start,
                end=time.time(),
                facts=it.facts,
                failed=it.failed,
            )
            self.tell([told])

    def close(self) -> None:
        """A collector that does not answer is not waited for."""
        ending = Thread(target=self._batches.shutdown, daemon=True)
        ending.start()
        ending.join(MOMENT)

    def _readable(self, it: Span) -> ReadableSpan:
        parent = _context(Context(it.at.trace, it.parent)) if it.parent else None
        return ReadableSpan(
            name=it.name,
            context=_context(it.at),
            parent=parent,
            resource=self._resource,
            attributes=it.facts,
            kind=SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR if it.failed else StatusCode.OK),
            start_time=int(it.start * NANO),
            end_time=int(it.end * NANO),
            instrumentation_scope=SCOPE,
        )


class TracedGates(Struct, frozen=True):
    """The `GateRuns` of ports, with a span for each attempt, of which its command is told."""

    gates: GateRuns
    spans: Spans

    def attempt(self, gate: CommandGate, run: GateRun, cancelled: Callable[[], bool]) -> Attempt:

        with self.spans.span(ATTEMPT, run.span, {"lockgate.gate": gate.name}) as it:
            done = self.gates.attempt(gate, replace(run, span=it.at), cancelled)
            it.failed = done.exit_code != 0
            if done.exit_code is not None:
                it.facts["process.exit.code"] = done.exit_code
            return done

    def read(self, attempt: Attempt, wanted: Report | None) -> ReportRead | Unreadable:
        return self.gates.read(attempt, wanted)


class _Once(logging.Handler):
    """The first trouble of the exporter goes to the orchestrator's log, and no other."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._report, self._told = report, False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._told:
            self._told = True
            self._report(f"traces are not delivered: {record.getMessage()[:300]}")


def _context(it: Context) -> SpanContext:
    return SpanContext(int(it.trace, 16), int(it.id, 16), is_remote=False, trace_flags=SAMPLED)
