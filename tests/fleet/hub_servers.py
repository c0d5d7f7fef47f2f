"""A hub as teams have it: behind a real sshd with a key, or by https with a password."""

import base64
import os
import pwd
import shlex
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

from tests.forge.git_http import answer_git, send
from tests.ssh import sshd

PASSWORD = "of-the-hub"


@contextmanager
def by_ssh(hub: Path, place: Path, home: Path) -> Generator[str]:
    """Its address; the user whose `home` this is has the key, by their git settings."""
    with sshd(place) as ssh:
        _set(home, "core.sshCommand", shlex.join(ssh))
        yield f"ssh://{pwd.getpwuid(os.geteuid()).pw_name}@127.0.0.1{quote(str(hub))}"


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
