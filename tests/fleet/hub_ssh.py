"""`ssh` of a host: git's word to the hub goes to a git daemon at the hub's port instead.

A copy stands on the host's PATH under that name, with `PORT` in its first lines.
"""

import os
import shlex
import socket
import sys
import threading
import time
from pathlib import Path

PORT = 0


def main() -> int:
    service, path = shlex.split(sys.argv[-1])
    _wait_while_held(service)
    line = f"{service} {path}\0host=hub\0"
    if os.environ.get("GIT_PROTOCOL"):
        line += f"\0{os.environ['GIT_PROTOCOL']}\0"
    try:
        wire = socket.create_connection(("127.0.0.1", PORT), 10)
    except OSError as error:
        sys.stderr.write(f"ssh: connect to the hub: {error.strerror}\n")
        return 255
    wire.settimeout(None)  # as ssh with ServerAliveInterval: a cut is noticed in seconds
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 10_000)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 3), (socket.TCP_KEEPINTVL, 2)):
        wire.setsockopt(socket.IPPROTO_TCP, option, value)
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    wire.sendall(f"{len(line.encode()) + 4:04x}{line}".encode())
    threading.Thread(target=_sent, args=(wire,), daemon=True).start()
    while data := wire.recv(1 << 16):
        _written(data)
    return 0


def _wait_while_held(service: str) -> None:
    """While a file `hold` is beside this program, a push waits, and says so by a file `held`."""
    hold = Path(__file__).with_name("hold")
    while service == "git-receive-pack" and hold.exists():
        hold.with_name("held").touch()
        time.sleep(0.05)


def _sent(wire: socket.socket) -> None:
    while data := os.read(0, 1 << 16):
        wire.sendall(data)
    wire.shutdown(socket.SHUT_WR)


def _written(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    sys.exit(main())
