"""OpenTelemetry: one trace a task, told to a collector here, with nobody's text in it."""

import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from lockgate.core.model.task import Status
from tests.e2e.orchestra import COMPLETE, Orchestra, hands_off, worker, writes

pytestmark = pytest.mark.measured

SECRET = "xyzzy-prompt-and-diff"
CONFIG = f"""\
[project]
agent = "scripted"
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "echo $TRACEPARENT {SECRET}; grep -q good answer.txt && test -n \\"$TRACEPARENT\\""
attempts = 1
[merge]
mode = "manual"
"""
TELLS = '{ shell = "echo $TRACEPARENT >> ~/traceparent" }'
SCRIPT = worker(TELLS, writes(f"bad {SECRET}"), hands_off(SECRET), COMPLETE) + worker(
    TELLS,
    writes(f"good {SECRET}"),
    "{ usage = { usd = 0.5, tokens = 900 } }",
    hands_off("again"),
    COMPLETE,
)


class Collector:
    """Takes what an exporter posts, and nothing else."""

    def __init__(self) -> None:
        self.bodies = list[bytes]()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/v1/traces"
                collector.bodies.append(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def spans(self) -> list[dict[str, str]]:
        """Each by what it is called, with its ids and its attributes as text."""
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: PLC0415
            ExportTraceServiceRequest,
        )

        found = []
        for body in self.bodies:
            asked = ExportTraceServiceRequest.FromString(body)
            for of in asked.resource_spans:
                named = {it.key: it.value.string_value for it in of.resource.attributes}
                assert named["service.name"] == "lockgate"
                found += [_facts(it) for scope in of.scope_spans for it in scope.spans]
        return found

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def _facts(it) -> dict[str, str]:
    assert it.start_time_unix_nano <= it.end_time_unix_nano
    told = {at.key: str(at.value).strip() for at in it.attributes}
    ids = {"trace": it.trace_id.hex(), "id": it.span_id.hex(), "parent": it.parent_span_id.hex()}
    return {"name": it.name, **ids, **told}


@pytest.fixture
def collector() -> Iterator[Collector]:
    it = Collector()
    yield it
    it.close()


@contextmanager
def worked(place: Path, collector: str) -> Generator[list[str]]:
    """A task that landed, and its orchestrator ended; what each session heard of its trace."""
    it = Orchestra(place, config=CONFIG, scripts={"a": SCRIPT})
    try:
        it.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector
        id = it.create("a", context=SECRET)
        it.up()
        it.until_status(id, Status.REVIEWING)
        heard = (it.home / "homes" / id / "traceparent").read_text().split()
        assert it.lockgate("approve", id).returncode == 0
        it.until_status(id, Status.DONE)
        it.down()
        yield heard
    finally:
        it.close()


def test_a_task_is_one_trace_from_its_creation_to_its_landing(tmp_path, collector) -> None:
    with worked(tmp_path, collector.url) as heard:
        spans = collector.spans()

    assert len({span["trace"] for span in spans}) == 1
    by = {span["id"]: span for span in spans}
    assert len(by) == len(spans)

    def line(span: dict[str, str]) -> tuple[str, ...]:
        above = by.get(span["parent"])
        return (*(line(above) if above else ()), span["name"].removeprefix("lockgate."))

    judged = ("task", "iteration", "evaluation", "gate", "attempt")
    assert sorted({line(span) for span in spans}) == sorted(
        [
            *(judged[:n] for n in range(1, 6)),
            ("task", "iteration", "session"),
            ("task", "landing"),
            ("task", "train.test"),
            ("task", "train.test", "gate"),
            ("task", "train.test", "gate", "attempt"),
        ]
    )
    sessions = [span for span in spans if span["name"] == "lockgate.session"]
    assert {span["gen_ai.agent.name"] for span in sessions} == {'string_value: "scripted"'}
    assert "int_value: 900" in {span["gen_ai.usage.total_tokens"] for span in sessions}
    assert heard == [f"00-{span['trace']}-{span['id']}-01" for span in sessions]
    assert SECRET.encode() not in b"".join(collector.bodies)


def test_a_collector_that_is_away_holds_up_nothing_and_is_told_of_once(tmp_path) -> None:
    with worked(tmp_path, "http://127.0.0.1:9"):
        log = (tmp_path / "orchestrator.log").read_text()

    assert log.count("traces are not delivered") == 1
    assert "Traceback" not in log


WATCH = """
import sys
from lockgate.bootstrap.traces import spans_for
said = []
spans = spans_for({environ}, said.append)
print(spans.wanted, any(it.startswith("opentelemetry") for it in sys.modules), said)
"""


@pytest.mark.parametrize("environ", [{}, {"OTEL_EXPORTER_OTLP_ENDPOINT": ""}])
def test_nothing_of_it_is_loaded_where_nobody_asked_for_it(environ) -> None:
    argv = (sys.executable, "-c", WATCH.format(environ=environ))
    done = subprocess.run(argv, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False False []"


def test_where_its_library_is_missing_the_way_to_get_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "opentelemetry.py").write_text("raise ImportError\n")
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    argv = (sys.executable, "-c", WATCH.format(environ=environ))
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )

    assert done.stdout.startswith("False")
    assert "pip install 'lockgate[otel]'" in done.stdout
