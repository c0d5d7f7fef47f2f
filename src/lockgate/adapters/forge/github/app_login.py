"""An App's own login: it signs who it is, and gets the token of its installation for that.

openssl signs, so that no library is needed for it. The token lives an hour and is asked for again
before it ends. GitHub takes a signature only for the time that its own clock has: where ours is
off, the time of its refusal is taken.
"""

import base64
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.forge.github.client import UNAUTHORIZED, Client, Denied, Wires
from lockgate.adapters.run import run
from lockgate.errors import Refused

APP, KEY = "LOCKGATE_GITHUB_APP", "LOCKGATE_GITHUB_APP_KEY"
BEGINS = "-----BEGIN"
EARLIER, LATER = 60, 540  # seconds for which a signature counts, before and after its moment
RENEWED = 3300.0  # seconds after which a token is asked for again; it lives 3600
SECONDS = 10.0


class AppLogin(Struct, kw_only=True):
    id: str
    key: str  # PEM
    api: str
    repository: str
    wires: Wires
    now: Callable[[], float]
    _token: str = ""
    _until: float = -1.0
    _off: float = 0.0  # GitHub's clock beside ours

    def token(self) -> str:
        if self.wires.elapsed() < self._until:
            return self._token
        try:
            self._token = self._asked()
        except Denied as error:
            if error.status != UNAUTHORIZED or not error.at:
                raise
            self._off = error.at - self.now()
            self._token = self._asked()
        self._until = self.wires.elapsed() + RENEWED
        return self._token

    def _asked(self) -> str:
        client = Client(api=self.api, token=self._signed, wires=self.wires)
        try:
            id = client.get(f"repos/{self.repository}/installation")["id"]
            return str(client.send("POST", f"app/installations/{id}/access_tokens", {})["token"])
        finally:
            client.close()

    def _signed(self) -> str:
        at = int(self.now() + self._off)
        facts = {"iat": at - EARLIER, "exp": at + LATER, "iss": self.id}
        text = f"{_form({'alg': 'RS256', 'typ': 'JWT'})}.{_form(facts)}"
        return f"{text}.{_url64(sign(self.key, text))}"


def app_login(
    told: Mapping[str, str], api: str, repository: str, wires: Wires, now: Callable[[], float]
) -> AppLogin | None:
    """None where no App is named; its key is a text or the path of a file."""
    if not (told.get(APP) and told.get(KEY)):
        return None
    key = told[KEY] if told[KEY].lstrip().startswith(BEGINS) else _read(told[KEY])
    return AppLogin(id=told[APP], key=key, api=api, repository=repository, wires=wires, now=now)


def sign(key: str, text: str) -> bytes:
    """RS256. The key is in a file of its own for a moment, which nobody else can read."""
    with tempfile.TemporaryDirectory() as place:
        lies, said, made = (Path(place) / it for it in ("key", "text", "signature"))
        lies.touch(mode=0o600)
        lies.write_text(key, encoding="utf-8")
        said.write_text(text, encoding="ascii")
        argv = ("openssl", "dgst", "-sha256", "-sign", str(lies), "-out", str(made), str(said))
        done = run(argv, deadline=SECONDS)
        if done.code != 0:
            raise _refused("openssl does not take its private key", "store it again")
        return made.read_bytes()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        why = f"its private key cannot be read: {path}: {error.strerror}"
        raise _refused(why, f"set {KEY}") from error
    except ValueError as error:
        raise _refused(f"its private key is no text: {path}", f"set {KEY}") from error


def _refused(why: str, fix: str) -> Refused:
    return Refused("GitHub was not asked as the App", why=why, fix=f"{fix}: lockgate auth github")


def _form(facts: Mapping[str, object]) -> str:
    return _url64(json.dumps(facts, separators=(",", ":")).encode())


def _url64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
