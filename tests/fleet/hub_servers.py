"""A hub as teams have it: behind a real sshd with a key, or by https with a password."""

import base64
import os
import pwd
import shutil
import ssl
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.adapters.engine.fleet_yard import free_port
from tests.fleet.servers import Program
from tests.forge.git_http import answer_git, send

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
PASSWORD = "of-the-hub"


@contextmanager
def by_ssh(hub: Path, place: Path, home: Path) -> Generator[str]:
    """Its address; the user whose `home` this is has the key, by their git settings."""
    if SSHD is None or shutil.which("ssh") is None:
        pytest.skip("needs sshd and ssh")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "mine"):
        make = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name))
        subprocess.run(make, check=True)
    shutil.copy(place / "mine.pub", place / "authorized")
    port = free_port()
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
    (place / "sshd").write_text("".join(f"{key} {it}\n" for key, it in said.items()))
    known = f"[127.0.0.1]:{port} {(place / 'host.pub').read_text()}"
    (place / "known").write_text(known)
    command = f"ssh -F none -i {place}/mine -o UserKnownHostsFile={place}/known"
    settings = "-o IdentitiesOnly=yes -o BatchMode=yes -o LogLevel=ERROR"
    _set(home, "core.sshCommand", f"{command} {settings}")
    server = Program((SSHD, "-D", "-e", "-f", str(place / "sshd")), port, place / "sshd.log")
    server.start()
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
        yield f"ssh://{user}@127.0.0.1:{port}{quote(str(hub))}"
    finally:
        server.kill()


@contextmanager
def by_https(hub: Path, place: Path, home: Path) -> Generator[str]:
    """As above, with the certificate and a helper that knows the password."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    argv = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
    named = ("-nodes", "-subj", "/CN=hub", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2")
    files = ("-keyout", str(place / "key.pem"), "-out", str(place / "cert.pem"))
    subprocess.run((*argv, *named, *files), check=True, capture_output=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub.parent))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place / "cert.pem", place / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    _set(home, "http.sslCAInfo", str(place / "cert.pem"))
    _set(home, "credential.helper", f"!printf 'username=h1\\npassword={PASSWORD}\\n'; true")
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}/{quote(hub.name)}"
    finally:
        server.shutdown()
        server.server_close()


def _handler(root: Path) -> type[BaseHTTPRequestHandler]:
    right = "Basic " + base64.b64encode(f"h1:{PASSWORD}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            raw = self._sent()
            if self.headers.get("Authorization", "") == right:
                answer_git(root, "h1", self, raw)
            else:
                send(self, 401, {"WWW-Authenticate": 'Basic realm="git"'}, b"")

        do_POST = do_GET  # noqa: N815 - the library's name

        def _sent(self) -> bytes:
            """A large push comes in chunks."""
            if self.headers.get("Transfer-Encoding", "") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", "0")))
            found = b""
            while size := int(self.rfile.readline(), 16):
                found += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return found

        def log_message(self, format: str, *args: object) -> None: ...

    return Handler


def _set(home: Path, key: str, value: str) -> None:
    argv = ("git", "config", "--file", str(home / ".gitconfig"), key, value)
    subprocess.run(argv, check=True)
