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

from lockgate.adapters.sandbox import relay
from lockgate.adapters.sandbox.bubblewrap import Mount

INSIDE = "/run/lockgate/ports"


@contextmanager
def let_through(allowed: Sequence[str]) -> Generator[tuple[Mount, ...]]:
    """`127.0.0.1:5432`: connections to that port of the box's own localhost end here, and there."""
    if not allowed:
        yield ()
        return
    with tempfile.TemporaryDirectory(prefix="lockgate-ports-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        stop, stopping = os.pipe()
        doors = [(_listening(directory, it), relay.to_tcp(*_parts(it))) for it in allowed]
        thread = threading.Thread(target=relay.Relay(doors, stop).serve, daemon=True)
        thread.start()
        try:
            yield (Mount(source=directory, target=INSIDE),)
        finally:
            os.close(stopping)
            thread.join()
            os.close(stop)


def listening_inside(allowed: Sequence[str]) -> str:
    """The command that takes our side's place on the box's own localhost."""
    ports = [str(_parts(it)[1]) for it in allowed]
    words = (sys.executable, "-I", "-S", relay.__file__, INSIDE, *ports)
    return " ".join(shlex.quote(it) for it in words) if ports else ""


def _parts(allowed: str) -> tuple[str, int]:
    host, _, port = allowed.rpartition(":")
    return host, int(port)


def _listening(directory: Path, allowed: str) -> socket.socket:
    """By the directory's descriptor: the path of a socket may not be long."""
    handle = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    path = f"/proc/self/fd/{handle}/{_parts(allowed)[1]}"
    door = socket.socket(socket.AF_UNIX)
    try:
        door.bind(path)
        Path(path).chmod(0o666)
        door.listen()
    finally:
        os.close(handle)
    return door
