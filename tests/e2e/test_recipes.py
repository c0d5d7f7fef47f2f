"""The web board from elsewhere, by the recipes of docs/web.md: an ssh tunnel, and nginx."""

import base64
import http.client
import json
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from lockgate.core.model.people import Right
from lockgate.faces.web.serve import Listening
from tests.e2e.test_web import reached, until
from tests.faces.shell import Shell, a_shell, make_repository
from tests.faces.web.home import FIXED, Home, a_home
from tests.faces.web.serving import serving
from tests.ssh import sshd

pytestmark = pytest.mark.measured

DOCS = Path(__file__).parents[2] / "docs" / "web.md"
SBIN = f"{os.environ['PATH']}:/usr/sbin"
NGINX = shutil.which("nginx", path=SBIN)
PATIENCE = 60.0
AWAY = "127.0.0.2"  # plays the person's own machine, where the same port is free


def free_port() -> int:
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return int(it.getsockname()[1])


def listens(host: str, port: int) -> bool:
    with socket.socket() as it:
        return it.connect_ex((host, port)) == 0


@contextmanager
def running(argv: list[str], up: Callable[[], bool], **more: object) -> Generator[None]:
    program = subprocess.Popen(argv, **more)  # type: ignore[call-overload]  # a test's own
    try:
        until(lambda: up() or program.poll() is not None, f"{argv[0]} does not come up")
        assert program.poll() is None, argv
        yield
    finally:
        program.send_signal(signal.SIGTERM)
        program.wait(PATIENCE)


# --- an ssh tunnel -------------------------------------------------------------------------------


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[tuple[Shell, list[str]]]:
    """A machine with a board, and how ssh gets there."""
    make_repository(tmp_path / "base")
    shell = a_shell(tmp_path / "shell", tmp_path / "base")
    place = tmp_path / "ssh"
    place.mkdir(mode=0o700)
    board = [sys.executable, "-m", "lockgate", "up", "--web", "--web-port", "0"]
    environ = {**os.environ, "LOCKGATE_HOME": str(shell.home)}
    with (
        sshd(place) as ssh,
        (tmp_path / "log").open("wb") as log,
        running(board, lambda: bool(reached(shell)), cwd=shell.repo, env=environ, stderr=log,
                stdout=log),
    ):  # fmt: skip
        yield shell, ssh


def test_a_board_is_reached_through_a_tunnel_with_a_link_made_over_there(remote) -> None:
    shell, ssh = remote
    at = urlsplit(reached(shell))
    me = f"{pwd.getpwuid(os.geteuid()).pw_name}@127.0.0.1"
    tunnel = [*ssh, "-N", "-L", f"{AWAY}:{at.port}:127.0.0.1:{at.port}", me]
    there = shlex.join(
        [
            "env",
            f"LOCKGATE_HOME={shell.home}",
            sys.executable,
            "-m",
            "lockgate",
            "web",
            "login",
            "--json",
        ]
    )

    with running(tunnel, lambda: listens(AWAY, at.port or 0)):
        made = subprocess.run([*ssh, me, there], capture_output=True, check=True, timeout=PATIENCE)
        link = urlsplit(json.loads(made.stdout)["link"])
        assert link.netloc == at.netloc
        headers = {"Host": at.netloc, "Origin": reached(shell)}
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        body = urlencode({"link": link.query.partition("=")[2], "next": "/"})
        status, found, _ = asked(AWAY, at.port or 0, "POST", "/login", headers, body)
        cookie = found["set-cookie"].partition(";")[0]
        page = asked(AWAY, at.port or 0, "GET", "/", {"Host": at.netloc, "Cookie": cookie})

    assert status == 303
    assert page[0] == 200
    assert "Needs you" in page[2]


def asked(
    host: str, port: int, method: str, path: str, headers: dict[str, str], body: str | None = None
) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, {key.lower(): it for key, it in answer.getheaders()}, text


# --- a proxy -------------------------------------------------------------------------------------

NAME = "board.tail.example"


def secured(host: str, port: int) -> http.client.HTTPSConnection:
    """Over TLS, whoever signed the certificate."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, timeout=PATIENCE, context=trusting)


class Proxied:
    """The board behind nginx, by the configuration that the page shows."""

    def __init__(self, home: Home, port: int) -> None:
        self.home, self.port = home, port

    def ask(
        self, path: str, person: str = "", body: str | None = None, **more: str
    ) -> tuple[int, str]:
        connection = secured("127.0.0.1", self.port)
        headers = {"Host": NAME, **more}
        if person:
            told = base64.b64encode(f"{person}:pass".encode()).decode()
            headers["Authorization"] = f"Basic {told}"
        if body is not None:
            headers |= {"Origin": f"https://{NAME}"}
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request("GET" if body is None else "POST", path, body, headers)
        answer = connection.getresponse()
        stream = (answer.headers["content-type"] or "").startswith("text/event-stream")
        text = answer.readline() if stream else answer.read()
        connection.close()
        return answer.status, text.decode()

    def post(self, path: str, person: str, **fields: str) -> tuple[int, str]:
        page = self.ask("/new", person)[1]
        key = re.findall(r'data-csrf="([^"]*)"', page)[0]
        return self.ask(path, person, urlencode({**fields, "csrf": key}))


def certified(place: Path) -> None:
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=x -keyout board.key"
    subprocess.run([*make.split(), "-out", "board.pem"], cwd=place, check=True, capture_output=True)


def configuration(place: Path, port: int, board: Path) -> str:
    """As the page has it, with the paths of this test."""
    [shown] = re.findall(r"```nginx\n(.*?)```", DOCS.read_text(), re.DOTALL)
    for before, after in {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/nginx/": f"{place}/",
        "/run/lockgate/board.sock": str(board),
    }.items():
        assert before in shown
        shown = shown.replace(before, after)
    user = "user root;" if os.geteuid() == 0 else ""
    kept = " ".join(
        f"{it}_temp_path {place}/{it};"
        for it in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return (
        f"{user} daemon off; pid {place}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; {kept}\n{shown}}}\n"
    )


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[Proxied]:
    if NGINX is None or shutil.which("openssl") is None:
        pytest.skip("needs nginx and openssl")
    home, port, board = a_home(tmp_path / "a"), free_port(), tmp_path / "board.sock"
    home.app.members.add("ann", Right.LAND, None, home.app.caller)
    home.app.members.add("bob", Right.LAND, None, home.app.caller)
    certified(tmp_path)
    (tmp_path / "people").write_text(
        "".join(f"{it}:{{PLAIN}}pass\n" for it in ("ann", "bob", "eve"))
    )
    (tmp_path / "nginx.conf").write_text(configuration(tmp_path, port, board))
    at = Listening(path=board, url=f"https://{NAME}", header="X-Remote-User")
    argv = [NGINX, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
    with serving(home, at), running(argv, lambda: listens("127.0.0.1", port)):
        yield Proxied(home, port)
    home.app.close()


def test_two_people_approve_by_name_behind_a_proxy(proxied: Proxied) -> None:
    home = proxied.home
    for who in ("ann", "bob", "eve"):
        task = home.started(f"by-{who}", "Go on")
        task = home.waiting(home.changed(task, {"login.py": FIXED, f"{who}.txt": "x\n"}))
        status, text = proxied.post(f"/t/{task.id}/approve", who, patch=task.patch)
        yes = [(it.by, it.how) for it in home.load(task.id).approvals]
        if who == "eve":  # the proxy knows her; the board does not
            assert (status, yes) == (422, [])
            assert "has the right to look" in text
        else:
            assert (status, yes) == (303, [(who, "proxy")])


def test_the_proxy_s_word_counts_and_no_visitor_s(proxied: Proxied) -> None:
    assert proxied.ask("/")[0] == 401
    assert proxied.ask("/", **{"X-Remote-User": "ann"})[0] == 401
    forged = proxied.ask("/", "eve", **{"X-Remote-User": "ann"})[1]
    assert "eve, may look" in forged
    assert proxied.ask("/", "ann", Host="evil.example")[0] in {400, 421}


def test_what_happens_comes_through_at_once(proxied: Proxied) -> None:
    begun = time.monotonic()

    status, line = proxied.ask("/feed", "ann")

    assert (status, line) == (200, "retry: 1000\n")
    assert time.monotonic() - begun < PATIENCE


# --- on the network, with TLS of its own ---------------------------------------------------------


def test_on_the_network_it_speaks_tls_and_its_cookie_is_for_that_alone(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    make_repository(tmp_path / "base")
    shell, port = a_shell(tmp_path / "shell", tmp_path / "base"), free_port()
    certified(tmp_path)
    url = f"https://{NAME}:{port}"
    argv = [sys.executable, "-m", "lockgate", "web", "--listen", AWAY, "--port", str(port)]
    argv += ["--cert", str(tmp_path / "board.pem"), "--key", str(tmp_path / "board.key")]
    with running(
        [*argv, "--url", url],
        lambda: reached(shell) == url,
        cwd=shell.repo,
        env=shell.environment(),
        stdout=subprocess.DEVNULL,
    ):
        link = json.loads(shell.program("web", "login", "--json").out)["link"]
        headers = {"Host": f"{NAME}:{port}", "Origin": url}
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection = secured(AWAY, port)
        connection.request("POST", "/login", urlsplit(link).query, headers)
        answer = connection.getresponse()
        connection.close()

    assert answer.status == 303
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-lockgate=")
    assert "Secure" in cookie
