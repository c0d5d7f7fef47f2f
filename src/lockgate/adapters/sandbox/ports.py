"""Our side of the ports that a box is let through to: a socket for each, in a directory it sees."""

import os
import shlex
import socket
import sys
import tempfile
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lockgate.adapters.sandbox import port_proxy
from lockgate.adapters.sandbox.bubblewrap import Mount

INSIDE = "/run/lockgate/ports"


@contextmanager
def let_through(allowed: Sequence[str]) -> Generator[tuple[Mount, ...]]:
    """`127.0.0.1:5432`: connections to that port of the box's own localhost end here, and there."""
    ends = _ends(allowed)
    if not ends:
        yield ()
        return
    with tempfile.TemporaryDirectory(prefix="lockgate-ports-") as name:
        directory = Path(name) / "ports"  # seen in the box by others than us; here only through us
        directory.mkdir()
        directory.chmod(0o755)
        stop, stopping = os.pipe()
        doors = [
            (_listening(directory, port), port_proxy.to_tcp(host, port)) for host, port in ends
        ]
        thread = threading.Thread(target=port_proxy.Relay(doors, stop).serve, daemon=True)
        thread.start()
        try:
            yield (Mount(source=directory, target=INSIDE),)
        finally:
            os.close(stopping)
            thread.join()
            os.close(stop)


def listening_inside(allowed: Sequence[str]) -> str:
    """The command that takes our side's place on the box's own localhost."""
    ports = [str(port) for _, port in _ends(allowed)]
    words = (sys.executable, "-I", "-S", port_proxy.__file__, INSIDE, *ports)
    return " ".join(shlex.quote(it) for it in words) if ports else ""


def _ends(allowed: Sequence[str]) -> list[tuple[str, int]]:
    """Where they lead; of several with one port the first."""
    found: dict[int, str] = {}
    for host, _, port in (it.rpartition(":") for it in allowed):
        found.setdefault(int(port), host)
    return [(host, port) for port, host in found.items()]


def _listening(directory: Path, port: int) -> socket.socket:
    """By the directory's descriptor: the path of a socket may not be long."""
    handle = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    path = f"/proc/self/fd/{handle}/{port}"
    door = socket.socket(socket.AF_UNIX)
    try:
        door.bind(path)
        Path(path).chmod(0o666)
        door.listen()
    finally:
        os.close(handle)
    return door
