"""MCP on a laptop: what is cancelled ends at once, whatever the server does."""

import socket
import threading
import time

from lockgate.faces.laptop.bridge import Bridge
from lockgate.faces.laptop.server import Login

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def test_a_cancelled_request_does_not_wait_for_the_silent_server(monkeypatch) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x"}}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        bridge = Bridge(Login(f"http://127.0.0.1:{silent.getsockname()[1]}", "x"))
        monkeypatch.setattr(bridge, "_print", lambda _it: None)
        bridge._begin(call)
        first, _ = silent.accept()
        with first:
            first.sendall(HEAD)
            while "1" not in bridge._open:
                time.sleep(0.01)
            time.sleep(0.1)  # the answer is being read now, which holds its lock
            cancelling = threading.Thread(target=bridge._cancel, args=("1",), daemon=True)
            cancelling.start()
            cancelling.join(10)
            ended = not cancelling.is_alive()
        cancelling.join()

    assert ended
