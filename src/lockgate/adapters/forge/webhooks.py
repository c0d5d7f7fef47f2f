"""A listener for GitHub's webhooks on loopback: each one that is genuine says "look", no more.

The signature is checked over the raw body. What is lost, repeated, late or forged costs at most a
look. GitHub gets its answer at once.
"""

import hashlib
import hmac
import json
from collections import OrderedDict
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

from msgspec import Struct, field

MOST = 25 * 1024 * 1024  # bytes, as GitHub's own limit
REMEMBERED = 1000  # deliveries
ACCEPTED, REFUSED, TOO_LARGE = 202, 403, 413


class Deliveries(Struct):
    """Which deliveries count: genuine ones, each once."""

    secret: bytes
    repository: str  # owner/name
    _known: OrderedDict[str, None] = field(default_factory=OrderedDict[str, None])

    def counts(self, body: bytes, signature: str, delivery: str) -> bool | None:
        """None where it is forged; False where it is a repetition, or of another repository."""
        wanted = "sha256=" + hmac.new(self.secret, body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(wanted.encode(), signature.encode("utf-8", "replace")):
            return None
        if delivery in self._known or repository_of(body) != self.repository:
            return False
        self._known[delivery] = None
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return True


def repository_of(body: bytes) -> str:
    """owner/name; empty where the body does not say."""
    try:
        found = _table(json.loads(body))
    except (ValueError, RecursionError):
        return ""
    return str(_table(found.get("repository")).get("full_name", ""))


def _table(found: object) -> dict[str, object]:
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def listener(port: int, deliveries: Deliveries, look: Callable[[], None]) -> ThreadingHTTPServer:
    """Serve it with `serve_forever`; port 0 takes a free one."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = self.headers.get("content-length", "")
            if not length.isdecimal() or int(length) > MOST:
                self.send_error(TOO_LARGE)
                return
            found = deliveries.counts(
                self.rfile.read(int(length)),
                self.headers.get("x-hub-signature-256", ""),
                self.headers.get("x-github-delivery", ""),
            )
            self.send_response(REFUSED if found is None else ACCEPTED)
            self.send_header("content-length", "0")
            self.end_headers()
            if found:
                look()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: a log of strangers' requests is no use."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)
