"""A command that is sent on to another host: its answer comes back as it is, once."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from lockgate.adapters.forwarding import FORWARDED, name_of, sent_on
from lockgate.errors import Unavailable


@contextmanager
def server(
    status: int, heard: list[tuple[str, str, bytes]], told: bytes = b"o\0osaid\0x0\0"
) -> Generator[str]:
    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            heard.append((self.headers["authorization"], self.headers[FORWARDED], body))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *_: object) -> None: ...

    it = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=it.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{it.server_port}"
    finally:
        it.shutdown()
        thread.join()
        it.server_close()


def test_a_persons_command_is_sent_on_with_their_token_and_marked() -> None:
    heard = list[tuple[str, str, bytes]]()
    with server(200, heard) as url:
        assert list(sent_on(url, "key", b"asked")) == [b"o\0", b"osaid\0", b"x0\0"]
    assert heard == [("Bearer key", "1", b"asked")]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://H2.example.org:443/", "h2.example.org"),
        ("https://h2.example.org:8443", "h2.example.org:8443"),
        ("http://lg-1.localhost:80", "lg-1.localhost"),
        ("https://[FD00::1]:8443", "[fd00::1]:8443"),
    ],
)
def test_a_host_is_asked_by_the_name_that_it_compares_with(url: str, name: str) -> None:
    assert name_of(url) == name


def test_a_host_that_refuses_or_is_not_there_is_said() -> None:
    with server(401, []) as url, pytest.raises(Unavailable, match="it said 401"):
        list(sent_on(url, "key", b"asked"))
    with pytest.raises(Unavailable, match="was not reached"):
        list(sent_on(url, "key", b"asked"))


def test_an_answer_without_an_end_may_have_been_carried_out() -> None:
    told = list[bytes]()
    with server(200, [], b"o\0osaid\0") as url, pytest.raises(Unavailable) as error:
        told.extend(sent_on(url.replace("127.0.0.1", "lg-1.localhost"), "key", b"asked"))
    assert "it is not known whether the command was carried out" in error.value.what


def test_a_host_that_breaks_off_after_the_whole_request_may_have_carried_it_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as broken:

        def close() -> None:
            connection, _ = broken.accept()
            with connection:
                heard = b""
                while not heard.endswith(b"asked"):
                    heard += connection.recv(1 << 16)

        thread = threading.Thread(target=close)
        thread.start()
        with pytest.raises(Unavailable) as error:
            list(sent_on(f"http://127.0.0.1:{broken.getsockname()[1]}", "key", b"asked"))
        thread.join()

    assert error.value.what == "it is not known whether the command was carried out"
    assert error.value.fix == "look: lockgate status"
