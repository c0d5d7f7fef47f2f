"""`lockgate up --web`: the board beside a real orchestrator, fresh by its feed, ended with it."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from tests.faces.shell import Shell, a_shell, make_repository

PATIENCE = 60.0


def until(there: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not there():
        assert time.monotonic() < end, what
        time.sleep(0.05)


OPENED: list[http.client.HTTPConnection] = []


def answered(url: str, path: str, cookie: str = "", **fields: str) -> http.client.HTTPResponse:
    at = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", at.port or 0, timeout=PATIENCE)
    OPENED.append(connection)
    headers = {"Host": at.netloc, "Cookie": cookie}
    if fields:
        headers |= {"Origin": url, "Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST" if fields else "GET", path, urlencode(fields) or None, headers)
    return connection.getresponse()


def reached(shell: Shell) -> str:
    try:
        return str(json.loads((shell.home / "web.json").read_text()).get("url", ""))
    except (OSError, ValueError):
        return ""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Shell, subprocess.Popen[bytes]]]:
    make_repository(tmp_path / "base")
    shell = a_shell(tmp_path / "shell", tmp_path / "base")
    argv = (sys.executable, "-m", "lockgate", "up", "--web", "--web-port", "0")
    environ = {**os.environ, "LOCKGATE_HOME": str(shell.home)}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(argv, cwd=shell.repo, env=environ, stdout=log, stderr=log)
    try:
        yield shell, process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
        while OPENED:
            OPENED.pop().close()


def children(pid: int) -> list[int]:
    """The board's process; a thread of the orchestrator's has started it."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    found = [int(it) for one in lists for it in read(one).split()]
    return [it for it in found if b"--child" in read(Path(f"/proc/{it}/cmdline"))]


def read(file: Path) -> bytes:
    """What it holds; nothing where the thread or process ended meanwhile."""
    try:
        return file.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def test_an_open_board_hears_of_a_new_task_and_comes_back_when_it_is_killed(served) -> None:
    shell, process = served
    until(lambda: reached(shell), "the board is not served")
    url = reached(shell)
    link = json.loads(shell.program("web", "login", "--json").out)["link"]
    key = link.partition("link=")[2]
    logged_in = answered(url, "/login", link=key, next="/")
    cookie = (logged_in.headers["set-cookie"] or "").partition(";")[0]
    page = answered(url, "/", cookie).read().decode()
    since = re.findall(r'data-seq="(\d+)"', page)[0]

    stream = answered(url, f"/feed?since={since}", cookie)
    id = shell.program("task", "create", "say-hello", "Say hello").out.strip()
    line = ""
    while "task.created" not in line:
        line = stream.fp.readline().decode()
    stream.close()

    assert json.loads(line.partition("data: ")[2])["task"] == id
    [child] = children(process.pid)
    os.kill(child, signal.SIGKILL)
    until(lambda: [it for it in children(process.pid) if it != child], "it is not started again")
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE)
    assert process.returncode == 0
