"""A real sshd on loopback, and ssh with all that it needs to get there."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
PATIENCE = 60.0
OPTIONS = ("IdentitiesOnly=yes", "BatchMode=yes", "LogLevel=ERROR")


@contextmanager
def sshd(place: Path) -> Generator[list[str]]:
    """The command, without whom and what; who is let in stands in the file `authorized`."""
    if SSHD is None or shutil.which("ssh") is None:
        pytest.skip("needs sshd and ssh")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "mine"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)]
        subprocess.run(make, check=True)
    shutil.copy(place / "mine.pub", place / "authorized")
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        port = int(it.getsockname()[1])
    said = {
        "HostKey": place / "host",
        "AuthorizedKeysFile": place / "authorized",
        "ListenAddress": f"127.0.0.1:{port}",
        "PidFile": "none",
        "UsePAM": "no",
        "StrictModes": "no",
        "PasswordAuthentication": "no",
        "AcceptEnv": "GIT_PROTOCOL",
    }
    (place / "config").write_text("".join(f"{key} {it}\n" for key, it in said.items()))
    (place / "known").write_text(f"[127.0.0.1]:{port} {(place / 'host.pub').read_text()}")
    options = (*OPTIONS, f"UserKnownHostsFile={place / 'known'}")
    ssh = ["ssh", "-p", str(port), "-i", str(place / "mine"), "-F", "none"]
    with (place / "log").open("wb") as log:
        server = subprocess.Popen([SSHD, "-D", "-e", "-f", str(place / "config")], stderr=log)
    try:
        _listens(port, server)
        yield ssh + [part for it in options for part in ("-o", it)]
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(PATIENCE)


def _listens(port: int, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        assert server.poll() is None, server.args
        with socket.socket() as it:
            if it.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    pytest.fail("sshd does not come up")
