"""People on laptops are served by any host of a fleet, and have what another one keeps."""

import http.client
import json
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from lockgate.bootstrap.outside import web_logins_of
from lockgate.core.model.people import Right
from lockgate.core.model.task import Status, TaskId
from lockgate.faces import client
from lockgate.ports.keys import Key, KeyKind
from lockgate.services.task.callers import HUMAN, hashed
from tests.adapters.engine.fleet_yard import free_port
from tests.e2e.orchestra import CONFIG, worker, writes
from tests.e2e.test_team import Laptop
from tests.fleet.fleet import Fleet, opened
from tests.fleet.test_hosts import must_have_servers
from tests.scenarios.world import git

RULES = CONFIG.partition('[[gates.list]]\nname = "review"')[0]
WAITS = '{ shell = "while [ ! -e ~/go ]; do sleep 0.1; done" }'
SCRIPT = worker('{ say = "I look at it first." }', writes("half"), WAITS, "{ crash = 3 }")
SERVED = """\
[server]
certificate = "{tls}/cert.pem"
key = "{tls}/key.pem"
url = "{url}"
"""


def certificate(place: Path) -> str:
    """The fingerprint of a new one of this machine's address; hosts are told of its file."""
    place.mkdir()
    made = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    named = (
        "-subj",
        "/CN=fleet",
        "-addext",
        "subjectAltName=IP:127.0.0.1,DNS:localhost",
        "-days",
        "2",
    )
    files = ("-keyout", "key.pem", "-out", "cert.pem")
    argv = ("openssl", *made, *named, *files)
    subprocess.run(argv, cwd=place, check=True, capture_output=True)
    shown = ("openssl", "x509", "-in", "cert.pem", "-noout", "-fingerprint", "-sha256")
    return subprocess.check_output(shown, cwd=place, text=True).strip()


def started(fleet: Fleet, place: Path, name: str) -> str:
    """Where a new host serves people, once it does; other hosts reach it by another name."""
    port, home = free_port(), place / name
    url = f"https://127.0.0.1:{port}"
    home.mkdir()
    (home / "settings.toml").write_text(SERVED.format(tls=place / "tls", url=url))
    fleet.own[name] = f'ssh = "lockgate@{name}.test"\napi = "https://localhost:{port}"'
    fleet.start(name, "--listen", f"127.0.0.1:{port}")
    fleet.until(lambda: _answers(port))
    return url


def _answers(port: int) -> bool:
    try:
        return asked(f"https://127.0.0.1:{port}", "") == http.HTTPStatus.UNAUTHORIZED
    except OSError:
        return False


def asked(url: str, token: str, *argv: str) -> int:
    """What a server says to a command that comes with this token."""
    loose = ssl.create_default_context()
    loose.check_hostname, loose.verify_mode = False, ssl.CERT_NONE
    at = url.removeprefix("https://")
    connection = http.client.HTTPSConnection(at, context=loose, timeout=30)
    said = {"Host": at, "Lockgate-Protocol": "1", "Authorization": f"Bearer {token}"}
    try:
        body = client.packed(("", "", ""), list(argv or ("status",)), b"")
        connection.request("POST", "/people/call", body, said)
        return connection.getresponse().status
    finally:
        connection.close()


def logged_in(fleet: Fleet, url: str, place: Path, name: str, shown: str) -> Laptop:
    app, laptop = fleet.people.app, Laptop(place / f"laptop of {name}", place / "clone")
    word = f"{url}/login?link={web_logins_of(app).link(name, app.caller)}"
    assert f"you are {name} at {url}" in laptop.did("login", word, "--fingerprint", shown)
    return laptop


def has_what_is_there(ann: Laptop, id: TaskId) -> None:
    """While its agent works on h1."""
    assert id in ann.did("status")
    listed = ann.did("task", "list")
    assert (id in listed, "working" in listed) == (True, True), listed
    assert "I look at it first." in ann.did("task", "peek", id)
    assert "+half" in ann.did("diff", id)
    seat = ann.lockgate("task", "attach", id)
    assert f"ssh -t lockgate@h1.test lockgate task attach {id}" in seat.stderr


def lets_nobody_else_in(fleet: Fleet, place: Path, *urls: str) -> None:
    """A session's token is no person's; one that is too old or wrong is nobody's."""
    spec = next((place / "h1" / "sessions").glob("*/spec.json"))
    app, session = fleet.people.app, json.loads(spec.read_text())["token"]
    logins = web_logins_of(app)
    old = Key(hash=hashed("old"), kind=KeyKind.TOKEN, person="ann", name="old", expires=1.0)
    logins.keys.add(old, 0.0)
    good = logins.token("ann", "ci", app.caller, read_only=False)
    for url in urls:
        assert [asked(url, it) for it in (session, "old", "wrong")] == [401, 401, 401]
        assert asked(url, good) == 200


def works_by_hand(fleet: Fleet, place: Path, id: TaskId) -> None:
    """On h1, as a person does by ssh, after its agent has failed."""
    people = fleet.people
    (place / "h1" / "homes" / id / "go").touch()
    fleet.until(lambda: people.task(id).status is Status.STUCK)
    there = {**people.environ, "LOCKGATE_HOME": str(place / "h1")}
    argv = (sys.executable, "-m", "lockgate", "shell", id, "--", "sh", "-c")
    done = subprocess.run(
        (*argv, "echo good > answer.txt"),
        env=there,
        cwd=people.root,
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.postgres
def test_a_laptop_gets_what_another_host_has_from_the_one_it_is_logged_in_at(
    tmp_path: Path,
) -> None:
    must_have_servers()
    shown = certificate(tmp_path / "tls")
    with opened(tmp_path, SCRIPT, config=RULES) as fleet:
        people = fleet.people
        people.environ["SSL_CERT_FILE"] = str(tmp_path / "tls" / "cert.pem")
        people.app.members.add("ann", Right.WORK, None, HUMAN)
        people.app.members.add("eve", Right.LOOK, None, HUMAN)
        git(tmp_path, "clone", "--quiet", str(fleet.hub), str(tmp_path / "clone"))
        first = started(fleet, tmp_path, "h1")
        id = people.create("b0")
        answer = tmp_path / "h1" / "workspaces" / id / "answer.txt"
        fleet.until(lambda: answer.exists() and answer.read_text() == "half\n")
        second = started(fleet, tmp_path, "h2")
        ann, eve = (logged_in(fleet, second, tmp_path, it, shown) for it in ("ann", "eve"))

        has_what_is_there(ann, id)
        lets_nobody_else_in(fleet, tmp_path, first, second)
        weak = eve.lockgate("handback", id, "-m", "mine")
        assert (weak.returncode, "eve has the right to look" in weak.stderr) == (1, True), weak

        works_by_hand(fleet, tmp_path, id)
        assert "yours" in ann.did("task", "list")
        assert id in ann.did("handback", id, "-m", "by hand")
        fleet.until(lambda: people.task(id).status is Status.REVIEWING)
        [handed] = [it for it in people.app.views.all_events(id) if it.type == "task.handed-back"]
        assert handed.data["by"] == "ann"
        assert "+good" in ann.did("diff", id)
