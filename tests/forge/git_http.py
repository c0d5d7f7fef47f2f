"""Git over HTTP at the test server: the real `git http-backend`, with a token as the password."""

import base64
import os
import subprocess
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from tests.forge.state import Github, Token


class Server(Protocol):
    state: Github


def serve_git(hub: Server, handler: BaseHTTPRequestHandler, raw: bytes) -> None:
    """Answers one request of git; it asks for a password where none is a live token."""
    who = _who(hub, handler.headers.get("Authorization", ""))
    if who is None:
        send(handler, 401, {"WWW-Authenticate": 'Basic realm="git"'}, b"")
        return
    answer_git(hub.state.bare.path.parents[1], who.login, handler, raw)


def answer_git(root: Path, user: str, handler: BaseHTTPRequestHandler, raw: bytes) -> None:
    """What git's own program says of the repositories below that folder."""
    url = urlsplit(handler.path)
    done = subprocess.run(
        ["git", "http-backend"],
        input=raw,
        env={
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "REQUEST_METHOD": handler.command,
            "PATH_INFO": unquote(url.path),
            "QUERY_STRING": url.query,
            "CONTENT_TYPE": handler.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(raw)),
            "HTTP_CONTENT_ENCODING": handler.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": handler.headers.get("Git-Protocol", ""),
            "REMOTE_USER": user,
        },
        capture_output=True,
        check=False,
    )
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    headers = dict(
        line.split(": ", 1) for line in head.decode("latin-1").split("\r\n") if ": " in line
    )
    status = int(headers.pop("Status", "200").split(" ")[0])
    send(handler, status, headers, body)


def _who(hub: Server, authorization: str) -> Token | None:
    kind, _, value = authorization.partition(" ")
    if kind.lower() != "basic":
        return None
    _, _, password = base64.b64decode(value).decode().partition(":")
    return hub.state.tokens.get(password)


def send(
    handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes
) -> None:
    handler.send_response_only(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
