"""An App signs who it is, and works with the token of its installation."""

import base64
import json
import shutil
import subprocess
import time
from datetime import timedelta
from pathlib import Path

import pytest

from lockgate.adapters.forge.github.app_login import APP, KEY, AppLogin, app_login, sign
from lockgate.adapters.forge.github.client import Client, Denied, Wires
from lockgate.adapters.forge.github.forge import GithubForge
from lockgate.errors import Refused
from tests.forge.conftest import hub
from tests.forge.hub import Hub

__all__ = ["hub"]
pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("app") / "app.pem"
    subprocess.run(
        ["openssl", "genrsa", "-out", str(file), "2048"], check=True, capture_output=True
    )
    return file


class Times:
    elapsed, slept = 1000.0, 0.0


def a_login(hub: Hub, key: Path, times: Times, off: float = 0.0) -> AppLogin:
    def sleep(seconds: float) -> None:
        times.slept += seconds

    wires = Wires(elapsed=lambda: times.elapsed, sleep=sleep)
    told = {APP: "7", KEY: str(key)}
    found = app_login(told, f"{hub.url}/", "octo/demo", wires, lambda: time.time() + off)
    assert found
    return found


def test_an_app_gets_a_token_and_asks_again_before_it_ends(hub, key):
    times = Times()
    login = a_login(hub, key, times)
    first = login.token()

    assert first.startswith("ghs_")
    assert login.token() == first
    assert len(hub.did("POST", "/access_tokens")) == 1
    times.elapsed += 3301
    assert login.token() != first
    client = Client(api=f"{hub.url}/", token=login.token, wires=login.wires)
    assert GithubForge(client=client, repository="octo/demo").whoami().kind == "app"
    client.close()


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_off_by_an_hour_is_set_by_githubs(hub, key, hours):
    hub.state.clock = timedelta(hours=hours)

    assert a_login(hub, key, Times()).token().startswith("ghs_")
    assert [it.status for it in hub.did("GET", "/installation")] == [401, 200]


def test_a_signature_is_githubs_kind_and_holds(key, tmp_path):
    signed = sign(key.read_text(), "a.b")
    (tmp_path / "signature").write_bytes(signed)
    (tmp_path / "text").write_text("a.b")
    public = ["openssl", "rsa", "-in", str(key), "-pubout", "-out", str(tmp_path / "public")]
    subprocess.run(public, check=True, capture_output=True)
    asked = ["openssl", "dgst", "-sha256", "-verify", "public", "-signature", "signature", "text"]

    assert subprocess.run(asked, cwd=tmp_path, check=False, capture_output=True).returncode == 0


def test_what_is_signed_names_the_app_and_counts_ten_minutes(hub, key):
    text = a_login(hub, key, Times())._signed().split(".")[1]
    facts = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))

    assert facts["iss"] == "7"
    assert facts["exp"] - facts["iat"] == 600


def test_a_key_that_is_none_is_told(tmp_path, hub, key):
    with pytest.raises(Refused, match="openssl does not take its private key"):
        sign("-----BEGIN NOTHING-----", "x")
    with pytest.raises(Refused, match="cannot be read"):
        a_login(hub, tmp_path / "none", Times())


def test_without_an_app_there_is_no_such_login(hub, key):
    wires = Wires(elapsed=time.monotonic, sleep=time.sleep)

    assert app_login({APP: "7"}, hub.url, "o/r", wires, time.time) is None


def test_an_app_that_is_not_installed_is_told(hub, key):
    login = a_login(hub, key, Times())
    login.repository = "octo/other"

    with pytest.raises(Denied) as raised:
        login.token()

    assert raised.value.status == 404
