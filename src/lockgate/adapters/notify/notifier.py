"""The Notifier port: a process for each delivery, which is killed when it takes too long."""

import base64
import json
import os
import shutil
import sys
from contextlib import suppress
from urllib.parse import urlsplit

from msgspec import Struct

from lockgate.adapters.run import Process, ended_within, run, start_piped
from lockgate.core.model.facts import canonical
from lockgate.errors import Unavailable
from lockgate.ports.notify import Address, Letter

DEADLINE = 60.0
DESKTOP = "desktop:"
PROGRAM = "notify-send"
SECRET_BYTES = 24
LONGEST = 300  # characters of a reason


class ProcessNotifier(Struct, frozen=True):
    deadline: float = DEADLINE

    def send(self, address: Address, letter: Letter) -> str:
        if address.url.startswith(DESKTOP):
            return self._on_the_desktop(letter)
        if address.is_webhook:
            body = canonical(letter.facts)
            asked = {"way": "webhook", "id": letter.id, "secret": address.secret, "body": body}
        else:
            asked = {"way": "service", "title": letter.message.title, "body": letter.message.body}
        return self._ask({**asked, "url": address.url})

    def problem(self, url: str) -> str:
        """A plain http or https URL is a webhook, unless it is one that Apprise knows."""
        if url.startswith(DESKTOP):
            return "" if shutil.which(PROGRAM) else f"{PROGRAM} is not installed"
        return self._ask({"way": "known", "url": url})

    def new_secret(self) -> str:
        return f"whsec_{base64.b64encode(os.urandom(SECRET_BYTES)).decode()}"

    def _on_the_desktop(self, letter: Letter) -> str:
        body = letter.message.body.replace("&", "&amp;").replace("<", "&lt;")
        argv = (PROGRAM, "--app-name=Lockgate", "--", letter.message.title, body)
        try:
            done = run(argv, deadline=self.deadline)
        except Unavailable as error:
            return error.why
        return "" if done.code == 0 else done.err.strip()[:LONGEST] or f"{PROGRAM} failed"

    def _ask(self, asked: dict[str, str]) -> str:
        """Why not; empty where it was delivered. The URL goes by a pipe: others see arguments."""
        argv = (sys.executable, "-m", "lockgate.adapters.notify.deliver")
        try:
            process = start_piped(argv, None, (), environment=os.environ)
        except Unavailable as error:
            return error.why
        try:
            return _told(process, asked, self.deadline)
        finally:
            with suppress(OSError):
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    with suppress(OSError):
                        stream.close()


def _told(process: Process, asked: dict[str, str], seconds: float) -> str:
    with suppress(BrokenPipeError):
        if process.stdin:
            process.stdin.write(json.dumps(asked).encode())
            process.stdin.close()
    if not ended_within(process, seconds):
        return f"it had not answered after {seconds:.0f} s"
    if process.returncode == 0:
        return ""
    said = process.stdout.read().decode("utf-8", "replace") if process.stdout else ""
    return _without_address(said.strip(), asked["url"])[:LONGEST] or "the delivery failed"


def _without_address(said: str, url: str) -> str:
    """What is logged or shown has no secret of the URL in it."""
    parts = urlsplit(url)
    for secret in (url, parts.netloc.rpartition("@")[0], parts.path.strip("/"), parts.query):
        if len(secret) > 5:  # noqa: PLR2004 - shorter ones are words
            said = said.replace(secret, "…")
    return said
