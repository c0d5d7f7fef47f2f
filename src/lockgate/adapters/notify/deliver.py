"""Delivers one notification and ends: run as a program, so that one that hangs can be killed.

It reads one JSON document from stdin. What it prints is why nothing was delivered; then it exits 1.
"""

import base64
import hashlib
import hmac
import http.client
import importlib
import importlib.util
import json
import logging
import ssl
import sys
import time
from contextlib import suppress
from typing import Any, cast
from urllib.parse import urlsplit

SECONDS = 15.0  # for each read and each write
PREFIX = "whsec_"
DELIVERED = range(200, 300)
INSTALL = "pip install 'lockgate[notify]'"


def main() -> int:
    asked = cast("dict[str, str]", json.load(sys.stdin))
    try:
        why = WAYS[asked["way"]](asked)
    except Exception as error:  # noqa: BLE001 - whatever a service's plug-in raises is an answer
        why = f"{type(error).__name__}: {error}"
    sys.stdout.write(why)
    return 1 if why else 0


def post_webhook(asked: dict[str, str]) -> str:
    """By the rules of Standard Webhooks 1.0; a redirection is not followed."""
    url = urlsplit(asked["url"])
    body = asked["body"].encode()
    headers = {
        "content-type": "application/json",
        "user-agent": "lockgate",
        **signed(asked["id"], int(time.time()), body, asked["secret"]),
    }
    connection = _connection(url.scheme, url.hostname or "", url.port)
    try:
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection.request("POST", path, body, headers)
        status = connection.getresponse().status
    except OSError as error:
        return f"{url.hostname}: {error.strerror or error}"
    finally:
        connection.close()
    return "" if status in DELIVERED else f"{url.hostname} answered {status}"


def signed(id: str, moment: int, body: bytes, secret: str) -> dict[str, str]:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    text = f"{id}.{moment}.".encode() + body
    signature = base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
    return {
        "webhook-id": id,
        "webhook-timestamp": str(moment),
        "webhook-signature": f"v1,{signature}",
    }


def tell_service(asked: dict[str, str]) -> str:
    """Any service that Apprise knows."""
    if importlib.util.find_spec("apprise") is None:
        return f"Apprise is not installed; {INSTALL}"
    # Any: what Apprise says of its types is not all of it
    apprise: Any = importlib.import_module("apprise")  # slow to load, and webhooks do without
    told = apprise.Apprise(asset=apprise.AppriseAsset(async_mode=False, app_id="Lockgate"))
    if not told.add(asked["url"]):
        return "Apprise does not know this URL"
    with apprise.LogCapture(level=logging.WARNING) as log:
        if told.notify(title=asked["title"], body=asked["body"]):
            return ""
        said = str(log.getvalue()).strip().splitlines()
    return said[-1] if said else "the service did not take it"


def know_service(asked: dict[str, str]) -> str:
    """Whether Apprise knows the URL; nothing is sent."""
    if importlib.util.find_spec("apprise") is None:
        return f"Apprise is not installed; {INSTALL}"
    apprise: Any = importlib.import_module("apprise")
    known = None
    with suppress(Exception):
        known = apprise.Apprise.instantiate(asked["url"], suppress_exceptions=True)
    return "" if known else "Apprise does not know this URL"


def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=SECONDS, context=context)
    return http.client.HTTPConnection(host, port, timeout=SECONDS)


WAYS = {"webhook": post_webhook, "service": tell_service, "known": know_service}

if __name__ == "__main__":
    sys.exit(main())
