"""Receivers on this machine for what is sent: they answer as a test tells them, and remember."""

from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

from msgspec import Struct, field


class Got(Struct):
    """What came, as headers and body; and how it is answered."""

    url: str = ""
    status: int = 204
    location: str = ""
    hang: Event | None = None
    came: list[tuple[dict[str, str], bytes]] = field(
        default_factory=list[tuple[dict[str, str], bytes]]
    )


@contextmanager
def receiver(status: int = 204, location: str = "") -> Generator[Got]:
    got = Got(status=status, location=location)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            got.came.append(({k.lower(): v for k, v in self.headers.items()}, body))
            if got.hang:
                got.hang.wait(60)
            self.send_response(got.status)
            if got.location:
                self.send_header("location", got.location)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    got.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield got
    finally:
        if got.hang:
            got.hang.set()
        server.shutdown()
        thread.join()
        server.server_close()
