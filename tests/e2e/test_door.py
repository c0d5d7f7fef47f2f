"""Commands that a running orchestrator carries out for whoever calls: their words, as they come."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.e2e.orchestra import PATIENCE, Orchestra
from tests.scenarios.world import git

HEAD = '[project]\nagent = "scripted"\n[sandbox]\nlevel = "none"\n[gates]\nformula = "none"\n'
GATE = (
    '[[gates.list]]\nname = "{}"\ntype = "command"\ncommand = "{}"\nserial = true\nattempts = 1\n'
)
WAITS = "touch {0}/waits; while test -d {0} && ! test -e {0}/go; do sleep 0.02; done"
IDLE = 8  # seconds, which a client has to come on a busy machine
LASTS = "echo $$ > {0}/pid; exec sleep 600"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "signs"


@pytest.fixture
def it(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Orchestra]:
    """With a first gate that passes and a second one, which the test names."""
    (tmp_path / "signs").mkdir()
    second = getattr(request, "param", WAITS).format(tmp_path / "signs")
    orchestra = Orchestra(tmp_path, HEAD + GATE.format("first", "true") + GATE.format("2", second))
    orchestra.up()
    orchestra.until((orchestra.home / "door.sock").exists)
    yield orchestra
    orchestra.close()


def gate_run(it: Orchestra, *argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "lockgate", "gate", "run", *argv],
        env={name: it.environ[name] for name in it.environ if name != "LOCKGATE_NO_ORCHESTRATOR"},
        cwd=it.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def judging(it: Orchestra) -> Generator[subprocess.Popen[str]]:
    """A `gate run` that is ended where its test fails: nobody waits for its gates then."""
    with gate_run(it) as client:
        try:
            yield client
        finally:
            client.kill()


def first_line(client: subprocess.Popen[str]) -> str:
    out: IO[str] | None = client.stdout
    assert out is not None
    return out.readline()


def test_a_gates_line_comes_while_the_next_gate_is_still_at_work(it, place) -> None:
    with gate_run(it, "--junit", "report.xml") as client:
        told = first_line(client)
        it.until((place / "waits").exists)
        assert client.poll() is None
        (place / "go").touch()
        out, err = client.communicate(timeout=PATIENCE)
    alone = it.lockgate("gate", "run")

    assert told.startswith("✓ first  passed")
    assert "2 of 2 gates passed" in out
    assert (client.returncode, err) == (0, alone.stderr)
    assert (it.root / "report.xml").is_file()
    assert out.splitlines()[-1] == alone.stdout.splitlines()[-1]


@pytest.mark.parametrize("it", [LASTS], indirect=True)
def test_what_it_runs_ends_with_whoever_asked(it, place) -> None:
    with judging(it) as client:
        it.until(lambda: (place / "pid").exists() and bool((place / "pid").read_text()))
        client.send_signal(signal.SIGINT)
        assert client.wait(PATIENCE) == 130
    running = Path("/proc") / (place / "pid").read_text().strip()

    it.until(lambda: not running.exists())
    assert it.lockgate("status").returncode == 0


@pytest.mark.parametrize("it", [LASTS], indirect=True)
def test_an_orchestrator_that_stops_takes_what_it_runs_along(it, place) -> None:
    with judging(it) as client:
        it.until(lambda: (place / "pid").exists() and bool((place / "pid").read_text()))
        begin = time.monotonic()
        it.down()
        client.communicate(timeout=PATIENCE)
    running = Path("/proc") / (place / "pid").read_text().strip()

    assert client.returncode not in {0, None}
    assert not running.exists()
    assert time.monotonic() - begin < 20


def test_an_orchestrator_that_dies_is_no_verdict(it, place) -> None:
    with judging(it) as client:
        first_line(client)
        it.until((place / "waits").exists)
        it.kill()
        _, err = client.communicate(timeout=PATIENCE)
    (place / "go").touch()

    assert client.returncode == 1
    assert "the connection ended before an answer came" in err


def test_many_who_have_gates_run_keep_the_door_from_nobody(it, place) -> None:
    clients = [gate_run(it) for _ in range(6)]
    for client in clients:
        assert first_line(client).startswith("✓ first  passed")

    asked = subprocess.run(
        [sys.executable, "-I", "-m", "lockgate", "status"],
        env=os.environ | {"LOCKGATE_HOME": str(it.home)},
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    (place / "go").touch()

    assert asked.returncode == 0
    assert [client.communicate(timeout=PATIENCE)[1] for client in clients] == [""] * 6
    assert [client.returncode for client in clients] == [0] * 6


@pytest.mark.parametrize(
    "it",
    ["grep -q good answer.txt", "grep -q good answer.txt && echo bad > answer.txt && touch more"],
    indirect=True,
)
def test_each_commit_is_judged_by_itself_whatever_came_before(it) -> None:
    verdicts = list[int]()
    for text in ("bad", "good", "good again", "worse", "good"):
        (it.root / "answer.txt").write_text(f"{text}\n")
        git(it.root, "commit", "--all", "--quiet", "--message", text)
        with judging(it) as client:
            client.communicate(timeout=PATIENCE)
        verdicts.append(client.returncode)

    assert verdicts == [1, 0, 0, 1, 0]
    it.down()
    assert list(it.home.glob(".lockgate-throw-away-*")) == []


def test_whoever_finds_other_programs_judges_with_those(it, place) -> None:
    (place / "go").touch()
    it.environ["PATH"] = f"{place}:{it.environ['PATH']}"
    (place / "true").write_text("#!/bin/sh\nexit 1\n")
    (place / "true").chmod(0o755)
    (place / "sh").symlink_to("/bin/sh")
    (it.root / ".lockgate" / "config.toml").write_text(HEAD + GATE.format("first", "env true"))
    git(it.root, "commit", "--all", "--quiet", "--message", "two")

    with judging(it) as client:
        out, err = client.communicate(timeout=PATIENCE)

    assert client.returncode == 1, (out, err)
    assert "✗ first  failed" in out


def test_an_idle_orchestrator_does_not_leave_while_somebody_waits(it, place) -> None:
    it.down()
    it.up("--idle", str(IDLE))
    it.until((it.home / "door.sock").exists)
    with judging(it) as client:
        it.until((place / "waits").exists)
        it.wake()
        time.sleep(IDLE + 0.5)
        assert it.process is not None
        assert it.process.poll() is None
        (place / "go").touch()
        out, _ = client.communicate(timeout=PATIENCE)

    assert client.returncode == 0, out
    it.until(lambda: it.process is not None and it.process.poll() is not None)
