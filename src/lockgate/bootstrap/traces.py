"""OpenTelemetry, where its variable says who collects."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from threading import Thread

from lockgate.bootstrap.app import App
from lockgate.errors import LockgateError
from lockgate.ports.spans import NoSpans, Spans
from lockgate.services.orchestrator.loop import Loop
from lockgate.services.orchestrator.tracing import Tracing

COLLECTOR = "OTEL_EXPORTER_OTLP_ENDPOINT"
LEAVES = 2.0  # seconds for the last look


def spans_for(environ: Mapping[str, str], report: Callable[[str], None]) -> Spans:
    """Its library is loaded only where somebody has asked for it."""
    if not environ.get(COLLECTOR):
        return NoSpans()
    try:
        from lockgate.adapters.telemetry import OtlpSpans
    except ImportError:
        report(f"no traces are sent to {COLLECTOR}: run: pip install 'lockgate[otel]'")
        return NoSpans()
    return OtlpSpans(report)


@contextmanager
def traced(it: App, spans: Spans, loop: Loop, report: Callable[[str], None]) -> Generator[None]:
    """What has ended is told beside the loop, which waits for none of it."""
    if not spans.wanted:
        yield
        return
    tracing = Tracing(store=it.store, spans=spans, report=report, seq=it.store.head())
    thread = Thread(target=tracing.run, name="traces", daemon=True)
    thread.start()
    before = loop.turned

    def turned() -> None:
        before()
        tracing.woken.set()

    loop.turned = turned
    try:
        yield
    finally:
        tracing.stop()
        thread.join(LEAVES)
        with suppress(LockgateError):
            tracing.turn()
