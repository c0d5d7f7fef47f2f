"""One server for a team, everything real: TLS, a login by a word, and a laptop without Linux."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lockgate.bootstrap.outside import web_logins_of
from lockgate.core.model.people import Right
from lockgate.core.model.task import Status
from lockgate.services.task.callers import HUMAN
from tests.adapters.measuring import watched
from tests.e2e.orchestra import COMPLETE, PATIENCE, Orchestra, hands_off, worker, writes
from tests.scenarios.world import git

CONFIG = """\
[project]
agent = "scripted"
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "grep -q good answer.txt"
attempts = 1
"""
# What no other system has, or what must not be needed on one: an import of any of them fails.
LAPTOP = """\
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name in {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}:
            raise ImportError(f"{name} is not on a laptop")
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Blocked())
from lockgate.__main__ import main
main()
"""


@dataclass
class Laptop:
    home: Path
    clone: Path

    def lockgate(self, *argv: str, told: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.home), **watched(), **more}
        return subprocess.run(
            [sys.executable, "-c", LAPTOP, *argv],
            env=environ,
            cwd=self.clone,
            input=told,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def did(self, *argv: str, told: str = "") -> str:
        done = self.lockgate(*argv, told=told)
        assert done.returncode == 0, done
        return done.stdout


def certificate(place: Path) -> str:
    """The fingerprint of a new one in this directory."""
    place.mkdir(parents=True)
    made = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    named = ("-subj", "/CN=team", "-days", "2", "-keyout", "key.pem", "-out", "cert.pem")
    subprocess.run(("openssl", *made, *named), cwd=place, check=True, capture_output=True)
    asked = ("openssl", "x509", "-in", "cert.pem", "-noout", "-fingerprint", "-sha256")
    return subprocess.run(asked, cwd=place, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Orchestra]:
    script = worker(writes("good"), hands_off("good"), COMPLETE)
    it = Orchestra(tmp_path / "server", CONFIG, {"say-good": script})
    yield it
    it.close()


def served(it: Orchestra, tls: Path) -> str:
    """Where people reach it, once it is up."""
    files = f'certificate = "{tls}/cert.pem"\nkey = "{tls}/key.pem"\n'
    (it.home / "settings.toml").write_text(f'[server]\n{files}projects = ["{it.root}"]\n')
    it.app.members.add("ann", Right.LAND, None, HUMAN)
    it.app.members.add("bob", Right.LOOK, None, HUMAN)
    it.up("--listen", "127.0.0.1:0")
    it.until(lambda: bool(reached(it)))
    return reached(it)


def reached(it: Orchestra) -> str:
    try:
        return str(json.loads((it.home / "web.json").read_text()).get("url", ""))
    except (OSError, ValueError):
        return ""


@pytest.mark.measured
def test_a_laptop_logs_in_and_has_a_change_made_and_landed_by_its_own_name(
    server: Orchestra, tmp_path: Path
) -> None:
    shown = certificate(tmp_path / "tls")
    url = served(server, tmp_path / "tls")
    git(tmp_path, "clone", "--quiet", str(server.root), str(tmp_path / "clone"))
    ann, bob = (Laptop(tmp_path / it, tmp_path / "clone") for it in ("ann", "bob"))

    def word(name: str) -> str:
        return f"{url}/login?link={web_logins_of(server.app).link(name, server.app.caller)}"

    logged_in = ann.did("login", url, "--fingerprint", shown.strip(), told=word("ann"))
    bob.did("login", word("bob"), "--fingerprint", shown.strip())
    (tmp_path / "clone" / "more.md").write_text("Say good\n\nIn answer.txt.\n")
    ran = ann.lockgate("run", "--file", "more.md", "--branch", "say-good")
    [row] = server.app.boards.board().rows
    refused = bob.lockgate("approve", row.id, "--json")
    approved = ann.did("approve", row.id)
    landed = server.until_status(row.id, Status.DONE)

    assert f"you are ann at {url}, and may land" in logged_in
    assert next(ann.home.rglob("login.json")).stat().st_mode & 0o777 == 0o600
    assert ran.returncode == 0, ran
    assert "is ready to land" in ran.stdout
    assert refused.returncode == 1
    assert "bob has the right to look" in json.loads(refused.stdout)["error"]["why"]
    assert row.id in approved
    assert "In answer.txt." in (server.app.views.task(row.id).body or "")
    assert (server.root / "answer.txt").read_text() == "good\n"
    assert [it.by for it in landed.approvals] == ["ann"]
