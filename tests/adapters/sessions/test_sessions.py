"""Sessions under their runners: real processes that are started, followed, killed and ended."""

import contextlib
import json
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from lockgate.adapters.sandbox import bubblewrap, cgroup, owner, trouble
from lockgate.adapters.sandbox.launch import scoping
from lockgate.adapters.sessions import sessions
from lockgate.adapters.sessions.prepare import LOG_BYTES, lay_out
from lockgate.adapters.sessions.runner import proc
from lockgate.adapters.sessions.runner.command_socket import Answer, Door, Line, Request
from lockgate.adapters.sessions.runner.relay import Relay
from lockgate.adapters.sessions.sessions import RUNNER, ProcessSessions, Watch
from lockgate.core.config.settings import Service
from lockgate.core.model.agents import Ending, Exit, Launch
from lockgate.core.model.task import SessionId
from lockgate.errors import Refused, Unavailable
from lockgate.ports import Desk, Start

pytestmark = pytest.mark.measured

WHY_NOT = trouble()
ENCLOSED = pytest.param(
    True,
    id="enclosed",
    marks=pytest.mark.skipif(WHY_NOT is not None, reason=f"needs bubblewrap: {WHY_NOT}"),
)
ID = SessionId("fix-login-3f9a.1")
PATIENCE = 30.0
DATAGRAM = socket.SOCK_DGRAM


class Stage:
    """A home with sessions that run shell scripts."""

    def __init__(self, root: Path, *, sandboxed: bool) -> None:
        self.root, self.home, self.sandboxed = root, root / "home", sandboxed
        self.sessions = ProcessSessions(self.home)
        self.used = {ID}
        self.home.mkdir()
        (root / "base.git").mkdir()

    def plan(self, script: str, *, id: SessionId = ID, **more: Any) -> Start:
        desk = self.root / "desks" / id
        if not desk.exists():
            desk.mkdir(parents=True)
            os.chown(desk, *owner())
        self.used.add(id)
        launch = {
            name: more.pop(name)
            for name in ("env", "stdin", "files", "kept", "limited")
            if name in more
        }
        return Start(
            **{
                "session": id,
                "token": "the-token",
                "launch": Launch(argv=("/bin/sh", "-c", script), **launch),
                "desk": Desk(directory=desk),
                "home": self.root / "homes" / id,
                "base": self.root / "base.git",
                "sandboxed": self.sandboxed,
                **more,
            }
        )

    def start(self, script: str, **more: Any) -> None:
        self.sessions.start(self.plan(script, **more))

    def wait(self, id: SessionId = ID) -> Exit:
        eventually(lambda: self.sessions.exit_of(id))
        found = self.sessions.exit_of(id)
        assert found is not None
        return found

    def play(self, script: str, **more: Any) -> tuple[Exit, str]:
        self.start(script, **more)
        return self.wait(), self.sessions.output(ID)

    def directory(self, id: SessionId = ID) -> Path:
        return self.home / "sessions" / id

    def runner(self, id: SessionId = ID) -> int:
        pid = json.loads((self.directory(id) / "run.json").read_text())["pid"]
        assert isinstance(pid, int)
        return pid

    def left(self, id: SessionId = ID) -> tuple[int, ...]:
        """What still runs of it."""
        spec = self.directory(id) / "spec.json"
        return proc.marked(json.loads(spec.read_text())["mark"]) if spec.exists() else ()

    def says(self, word: str, id: SessionId = ID) -> None:
        eventually(lambda: word in self.sessions.output(id))


@pytest.fixture(autouse=True)
def _measured(monkeypatch) -> None:
    """Coverage begins in site-packages, and counts modules by name, not by path."""
    if "COVERAGE_PROCESS_CONFIG" in os.environ:
        monkeypatch.setattr(sessions, "PYTHON", (sys.executable, "-m"))
        monkeypatch.setattr(sessions, "RUNNER", "lockgate.adapters.sessions.runner.main")


@pytest.fixture(params=[ENCLOSED, pytest.param(False, id="bare", marks=pytest.mark.slow)])
def stage(request, tmp_path) -> Generator[Stage]:
    made = Stage(tmp_path, sandboxed=request.param)
    yield made
    for id in made.used:
        made.sessions.end(id, 0.0)
    assert not any(made.left(id) for id in made.used)


@pytest.fixture
def bare(tmp_path) -> Generator[Stage]:
    """Where it makes no difference what encloses the program."""
    made = Stage(tmp_path, sandboxed=False)
    yield made
    for id in made.used:
        made.sessions.end(id, 0.0)


def test_a_session_that_reads_the_whole_home_sees_no_keys(tmp_path, monkeypatch) -> None:
    why_not = trouble()
    if why_not:
        pytest.skip(f"needs bubblewrap: {why_not}")
    user = tmp_path / "ann"
    for file in (user / ".ssh" / "id", user / "notes"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{file.name}\n")
    for place in (tmp_path, user):
        place.chmod(0o755)
    monkeypatch.setenv("HOME", str(user))
    made = Stage(tmp_path, sandboxed=True)

    _, said = made.play(f"cat {user}/notes {user}/.ssh/id", read=("~",))

    assert said.startswith("notes\n")
    assert "id\n" not in said.splitlines(keepends=True)
    made.sessions.end(ID, 0.0)


def eventually(happened: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.01)


# --- a program and its end ----------------------------------------------------------------------


def test_what_a_program_wrote_and_its_code_are_kept(stage) -> None:
    exit, output = stage.play("echo out; echo err >&2; exit 7")

    assert (exit.ending, exit.code) == (Ending.EXITED, 7)
    assert 0 < exit.seconds < PATIENCE
    assert output == "out\n\nerr\n"


def test_a_program_gets_its_input_its_environment_and_its_files(stage) -> None:
    exit, output = stage.play(
        "cat; pwd; echo $GIVEN; cat ~/.agent/settings ~/kept; which lockgate",
        stdin="the prompt\n",
        env={"GIVEN": "given"},
        files={".agent/settings": "settings\n"},
        kept={"kept": "kept\n"},
    )

    workspace = "/workspace" if stage.sandboxed else str(stage.root / "desks" / ID)
    door = "/run/lockgate" if stage.sandboxed else str(stage.directory() / "door")
    lines = ["the prompt", workspace, "given", "settings", "kept", f"{door}/bin/lockgate"]
    assert (exit.code, output.splitlines()) == (0, lines)


def test_a_program_sees_nothing_of_the_state_but_its_door(tmp_path) -> None:
    if WHY_NOT:
        pytest.skip(f"needs bubblewrap: {WHY_NOT}")
    stage = Stage(tmp_path, sandboxed=True)

    _, output = stage.play(
        f"ls {stage.home} {stage.root} 2>&1; find / -xdev -name spec.json -o -name lockgate.db "
        "2>/dev/null; touch /run/lockgate/planted /base.git/planted 2>&1; ls -A /run/lockgate"
    )

    assert "No such file" in output
    assert "spec.json" not in output
    assert not (stage.root / "base.git" / "planted").exists()
    assert output.endswith("bin\nsocket\n")


@pytest.mark.parametrize(("script", "said"), [("wc -c", "3000000\n"), ("exec 0<&-; sleep 0.2", "")])
def test_a_long_prompt_is_read_whole_or_not_at_all(stage, script, said) -> None:
    exit, output = stage.play(script, stdin="x" * 3_000_000)

    assert (exit.code, output) == (0, said)


def test_no_credential_stays_on_disk(stage) -> None:
    _, output = stage.play("echo $KEY", env={"KEY": "the-secret"})

    written = b"".join((stage.directory() / it).read_bytes() for it in ("spec.json", "run.json"))
    assert output == "the-secret\n"
    assert b"the-secret" not in written
    assert stage.sessions.token(ID) == "the-token"


def test_a_program_that_was_killed_has_no_code(stage) -> None:
    exit, output = stage.play("echo begun; kill -9 $$")

    assert (exit.ending, exit.code, output) == (Ending.EXITED, None, "begun\n")


def test_a_program_that_is_not_there_is_told(stage) -> None:
    plan = stage.plan("")
    launch = Launch(argv=("/no/such/agent",))

    stage.sessions.start(
        Start(
            session=ID,
            token="the-token",  # noqa: S106 - of nothing
            launch=launch,
            desk=plan.desk,
            home=plan.home,
            base=plan.base,
            sandboxed=stage.sandboxed,
        )
    )

    assert stage.wait().code in {125, 127}
    assert "/no/such/agent" in stage.sessions.output(ID)


def test_a_sandbox_that_cannot_be_made_is_not_the_programs_failure(tmp_path) -> None:
    if WHY_NOT:
        pytest.skip(f"needs bubblewrap: {WHY_NOT}")
    stage = Stage(tmp_path, sandboxed=True)
    plan = stage.plan("true", base=tmp_path / "gone")

    stage.sessions.start(plan)

    assert stage.wait().code == 125
    assert "gone" in stage.sessions.output(ID)


NOT_A_SANDBOX = """#!/bin/sh
while [ "$1" != --json-status-fd ]; do shift; done
echo '{ "child-pid": '$$' }' >"/proc/self/fd/$2"
RUNS
echo '{ "exit-code": 0 }' >"/proc/self/fd/$2"
"""
IT_OUTSIDE = 'status=$2; while [ "$1" != -- ]; do shift; done; shift; "$@"; set -- 0 "$status"'


@pytest.mark.parametrize("runs", [":", IT_OUTSIDE], ids=["nothing", "outside"])
def test_a_bwrap_that_encloses_nothing_makes_no_session(tmp_path, runs) -> None:
    if WHY_NOT:
        pytest.skip(f"needs bubblewrap: {WHY_NOT}")
    stage = Stage(tmp_path, sandboxed=True)
    fake = tmp_path / "fake"
    fake.write_text(NOT_A_SANDBOX.replace("RUNS", runs))
    fake.chmod(0o755)
    plan = stage.plan(f"echo begun; touch {tmp_path}/ran")
    stage.sessions.note(plan)
    spec = json.loads((stage.directory() / "spec.json").read_text())
    spec["run"]["program"][-1] = str(fake)
    (stage.directory() / "spec.json").write_text(json.dumps(spec))

    stage.sessions.start(plan)

    assert stage.wait().code == 125
    assert "the sandbox was not proved" in stage.sessions.output(ID)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("stage", [ENCLOSED], indirect=True)
def test_a_program_holds_no_descriptor_of_the_sandboxs_proof(stage) -> None:
    _, output = stage.play("ls /proc/self/fd | wc -l; tr '\\0' ' ' </proc/$$/cmdline")

    assert output.startswith("4\n/bin/sh -c ls ")


REACHES = """
import socket, sys
def tried(kind, name):
    near = socket.socket(socket.AF_UNIX, kind)
    try:
        near.connect(name)
    except OSError as error:
        return type(error).__name__
    return "reached"
own = socket.socket(socket.AF_UNIX)
own.bind("\\0own")
own.listen()
print(tried(socket.SOCK_STREAM, "\\0" + sys.argv[1]), tried(socket.SOCK_DGRAM, "\\0" + sys.argv[2]))
print(tried(socket.SOCK_STREAM, "\\0own"), tried(socket.SOCK_STREAM, sys.argv[3]))
"""


@pytest.mark.skipif(not scoping(), reason="needs Linux 6.12 or later with Landlock")
@pytest.mark.parametrize("stage", [ENCLOSED], indirect=True)
def test_a_session_reaches_its_own_abstract_sockets_and_its_command_but_none_of_the_users(
    stage,
) -> None:
    with socket.socket(socket.AF_UNIX) as stream, socket.socket(socket.AF_UNIX, DATAGRAM) as one:
        names = f"stream-{os.getpid()}", f"datagram-{os.getpid()}"
        stream.bind(f"\0{names[0]}")
        stream.listen()
        one.bind(f"\0{names[1]}")
        script = shlex.join((sys.executable, "-I", "-S", "-c", REACHES, *names))

        exit, output = stage.play(f'{script} "$LOCKGATE_SOCKET"')

    assert exit.code == 0, output
    assert output.split() == ["PermissionError", "PermissionError", "reached", "reached"]


FETCHES = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
"""


@pytest.fixture
def without_landlock(monkeypatch) -> None:
    """As on Linux before 6.12, with what is installed there in its place."""
    monkeypatch.setattr(bubblewrap, "scoping", lambda: False)
    if not bubblewrap.uplink():
        pytest.skip("only a normal user with pasta and /dev/net/tun has this second way")


@pytest.mark.usefixtures("without_landlock")
@pytest.mark.parametrize("stage", [ENCLOSED], indirect=True)
def test_without_landlock_a_session_has_a_network_of_its_own_without_the_users_abstract_sockets(
    stage, served
) -> None:
    """It reaches its command, its own sockets, and a server on this machine's loopback."""
    with socket.socket(socket.AF_UNIX) as stream, socket.socket(socket.AF_UNIX, DATAGRAM) as one:
        names = f"stream-{os.getpid()}", f"datagram-{os.getpid()}"
        stream.bind(f"\0{names[0]}")
        stream.listen()
        one.bind(f"\0{names[1]}")
        reaches = shlex.join((sys.executable, "-I", "-S", "-c", REACHES, *names))
        fetches = shlex.join((sys.executable, "-I", "-S", "-c", FETCHES, served))

        exit, output = stage.play(f'{reaches} "$LOCKGATE_SOCKET"; {fetches}')

    assert exit.code == 0, output
    refused = ["ConnectionRefusedError", "ConnectionRefusedError"]
    assert output.split() == [*refused, "reached", "reached", "served"]


@pytest.mark.usefixtures("without_landlock")
@pytest.mark.parametrize("stage", [ENCLOSED], indirect=True)
@pytest.mark.parametrize("how", ["it ends", "its runner is killed"])
def test_what_passes_a_sessions_packets_on_ends_with_it(stage, how) -> None:
    stage.start("echo works; read word < /workspace/never || sleep 86130")
    stage.says("works")
    passing = _pastas_of(stage.runner())

    if how == "it ends":
        stage.sessions.end(ID, 1.0)
    else:
        os.kill(stage.runner(), signal.SIGKILL)

    assert passing
    eventually(lambda: not any(_name_of(it) for it in passing))


@pytest.mark.usefixtures("without_landlock")
@pytest.mark.parametrize("stage", [ENCLOSED], indirect=True)
def test_a_session_that_gets_no_network_of_its_own_is_not_started_and_says_so(
    stage, monkeypatch
) -> None:
    monkeypatch.setattr(bubblewrap, "uplink", lambda: ("/bin/false",))

    exit, _ = stage.play("echo started")

    said = (stage.directory() / "stderr.log").read_text()
    assert exit.code == 125
    assert "pasta could not connect its sandbox to the network" in said
    assert "started\n" not in stage.sessions.output(ID)


@pytest.fixture
def served() -> Iterator[str]:
    class Says(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"served")

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Says) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def _pastas_of(runner: int) -> list[int]:
    return [
        it for it in proc.descendants_of(runner) if _name_of(it).startswith("pas")
    ]  # pasta, passt.avx2


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


# --- limits -------------------------------------------------------------------------------------


def test_a_program_that_runs_too_long_is_ended(stage) -> None:
    exit, _ = stage.play("while :; do echo x; sleep 0.1; done", wall_seconds=1.0)

    assert (exit.ending, exit.code) == (Ending.WALL_CLOCK, None)


def test_a_program_that_says_nothing_for_too_long_is_ended(stage) -> None:
    exit, output = stage.play("echo hello; sleep 86130", silent_seconds=0.5)

    assert (exit.ending, exit.code, output) == (Ending.SILENT, None, "hello\n")


TOLD = 'echo "wait: 429"'


@pytest.mark.parametrize("stream", ["", " >&2"])
def test_a_program_that_only_tries_again_after_a_limit_is_ended(stage, stream) -> None:
    script = f"echo hello; while :; do {TOLD}{stream}; echo noise >&2; sleep 0.1; done"

    exit, _ = stage.play(script, limited="wait: 4", limited_seconds=0.5)

    assert (exit.ending, exit.code) == (Ending.LIMITED, None)


def test_a_program_that_goes_on_after_a_limit_is_not_ended(bare) -> None:
    script = f"{TOLD}; sleep 0.3; echo on; sleep 0.8; {TOLD} >&2; echo; echo on; sleep 0.8"

    exit, _ = bare.play(script, limited="wait: 4", limited_seconds=0.5)

    assert (exit.ending, exit.code) == (Ending.EXITED, 0)


def test_without_a_pattern_no_limit_is_noticed(bare) -> None:
    exit, _ = bare.play(f"{TOLD}; sleep 1; {TOLD}", limited_seconds=0.2)

    assert exit.ending is Ending.EXITED


EATS = "x = bytearray(400 << 20); import time; time.sleep(60)"
HIDES = """
import os, time
made = os.memfd_create("hidden")
for _ in range(400):
    os.write(made, b"x" * (1 << 20))
time.sleep(60)
"""


@pytest.mark.parametrize("script", [EATS, HIDES], ids=["mapped", "memfd"])
@pytest.mark.parametrize("stage", [ENCLOSED], indirect=True)
def test_a_program_that_uses_more_memory_than_it_may_is_ended(stage, script) -> None:
    program = shlex.join((sys.executable, "-I", "-S", "-c", script))

    exit, output = stage.play(f"{program} & wait", memory_mb=200)

    assert (exit.ending, exit.code) == (Ending.MEMORY, None)
    assert exit.why == "it used more memory than [sandbox] memory_mb = 200 allows"
    assert exit.why in output


@pytest.mark.parametrize("stage", [ENCLOSED], indirect=True)
def test_a_program_may_use_what_memory_it_has(stage) -> None:
    script = EATS.replace("time.sleep(60)", "time.sleep(2)")
    program = shlex.join((sys.executable, "-I", "-S", "-c", script))

    exit, _ = stage.play(program, memory_mb=600)

    assert (exit.ending, exit.code) == (Ending.EXITED, 0)


@pytest.mark.parametrize("stage", [ENCLOSED], indirect=True)
def test_where_there_are_control_groups_a_session_has_one_and_the_kernels_word_counts(
    stage, tmp_path, monkeypatch
) -> None:
    """On a directory that stands for the kernel's."""
    parent = tmp_path / "groups"
    parent.mkdir()
    monkeypatch.setattr(cgroup, "where", lambda: parent)

    stage.start("echo begun; sleep 2", memory_mb=300)
    stage.says("begun")
    [group] = parent.iterdir()
    (group / "memory.events").write_text("oom_kill 3\n")

    assert stage.wait().ending is Ending.MEMORY
    assert int((group / "memory.max").read_text()) >= 300 << 20
    assert int((group / "cgroup.procs").read_text()) > 1


DEEP = "mkdir -p a/b; cd a/b; "
LOCKED = "mkdir shut; cd shut; fill; chmod 0 ."
DELETED = "exec 3>gone; rm gone; head -c 30000000 /dev/urandom >&3"


@pytest.mark.parametrize(
    "script",
    ["fill", DEEP + "fill", 'cd "$HOME"; fill', LOCKED, DELETED],
    ids=["workspace", "deep", "home", "locked", "deleted"],
)
def test_a_program_that_fills_the_disk_is_ended(stage, script) -> None:
    if not stage.sandboxed and script == DELETED:
        pytest.skip("without a sandbox nobody knows all of its processes")
    fill = "head -c 30000000 /dev/urandom > big"

    exit, output = stage.play(f"{script.replace('fill', fill)}; sleep 60", disk_mb=20)

    assert (exit.ending, exit.code) == (Ending.DISK, None)
    assert "[sandbox] session_disk_mb = 20 allows" in exit.why
    assert exit.why in output


def test_links_and_files_with_many_names_count_once_and_holes_not_at_all(stage) -> None:
    script = (
        "head -c 9000000 /dev/urandom > big; ln big 1; ln big 2; ln big 3; ln -s / all; "
        "truncate -s 5G hole; sleep 4"
    )

    exit, _ = stage.play(script, disk_mb=20)

    assert (exit.ending, exit.code) == (Ending.EXITED, 0)


def test_a_flood_of_output_fills_neither_disk_nor_memory(stage) -> None:
    wait = "until [ -e go ]; do sleep 0.1; done"
    stage.start(f"echo first; {wait}; head -c 300000000 /dev/zero; echo last; sleep 86131")
    stage.says("first")
    before = resident(stage.runner())
    (stage.root / "desks" / ID / "go").touch()
    stage.says("last")

    text = stage.sessions.output(ID)
    size = sum(it.stat().st_size for it in stage.directory().glob("stdout.log*"))
    assert text.startswith("first\n")
    assert text.endswith("last\n")
    assert "output left out" in text
    assert size <= LOG_BYTES
    assert resident(stage.runner()) < before + 4_000


def resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return int(next(it for it in lines if it.startswith("VmRSS")).split()[1])


def test_the_newest_output_is_on_disk_while_the_program_runs(stage) -> None:
    stage.start("echo working; sleep 86132")

    stage.says("working")

    assert stage.sessions.exit_of(ID) is None


# --- ending it ----------------------------------------------------------------------------------


def test_a_program_may_end_itself_when_it_is_asked_to(stage) -> None:
    stage.start("trap 'echo goodbye; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
    stage.says("ready")

    stage.sessions.end(ID, 10.0)

    assert stage.sessions.output(ID) == "ready\ngoodbye\n"
    exit = stage.wait()
    assert (exit.ending, exit.code) == (Ending.ENDED, None)


def test_a_program_that_does_not_listen_is_killed(stage) -> None:
    stage.start("trap '' TERM; echo ready; while :; do sleep 0.05; done")
    stage.says("ready")
    begin = time.monotonic()

    stage.sessions.end(ID, 0.2)

    assert time.monotonic() - begin < 4
    assert stage.wait().ending is Ending.ENDED
    assert stage.left() == ()


@pytest.mark.parametrize("how", ["ended", "exits"])
def test_nothing_a_program_started_outlives_it(stage, how) -> None:
    then = "sleep 86133" if how == "ended" else "exit 0"
    stage.start(
        "(setsid sh -c 'trap \"\" TERM HUP; (setsid sleep 86134 &); sleep 86134' &); "
        f"sleep 0.3; echo ready; {then}"
    )
    stage.says("ready")

    if how == "ended":
        stage.sessions.end(ID, 0.2)
    stage.wait()

    assert stage.left() == ()


def test_a_session_that_was_not_started_never_will_be_once_it_was_ended(stage) -> None:
    stage.sessions.end(ID, 1.0)

    stage.start("echo never")

    assert stage.sessions.exit_of(ID) == Exit(ending=Ending.ENDED)
    assert not stage.sessions.started(ID)
    assert stage.sessions.output(ID) == ""


def test_a_session_that_is_started_and_ended_at_once_leaves_nothing(stage) -> None:
    ids = [SessionId(f"race.{n}") for n in range(4)]
    plans = [stage.plan("sleep 86143", id=id) for id in ids]

    with ThreadPoolExecutor(8) as pool:
        for n, plan in enumerate(plans):
            starting = pool.submit(stage.sessions.start, plan)
            time.sleep(n * 0.03)
            stage.sessions.end(plan.session, 0.0)
            starting.result()
            stage.sessions.end(plan.session, 0.0)

    assert {stage.wait(id).ending for id in ids} == {Ending.ENDED}
    assert not any(stage.left(id) for id in ids)


def test_ending_twice_or_after_its_end_changes_nothing(stage) -> None:
    exit, _ = stage.play("exit 3")

    stage.sessions.end(ID, 1.0)
    stage.sessions.end(ID, 1.0)

    assert stage.sessions.exit_of(ID) == exit


def test_a_session_that_is_removed_is_gone(stage) -> None:
    stage.start("sleep 86135")

    mark = json.loads((stage.directory() / "spec.json").read_text())["mark"]
    stage.sessions.remove(ID)

    assert not stage.directory().exists()
    assert proc.marked(mark) == ()


# --- started once -------------------------------------------------------------------------------


def test_a_session_starts_once_however_many_start_it(stage) -> None:
    plan = stage.plan("echo once >> ~/count; sleep 0.5")

    with ThreadPoolExecutor(8) as pool:
        here = [pool.submit(stage.sessions.start, plan) for _ in range(6)]
        elsewhere = [pool.submit(start_elsewhere, stage.home, plan) for _ in range(2)]
        for started in (*here, *elsewhere):
            started.result()
    stage.wait()
    stage.sessions.start(plan)

    assert (plan.home / "count").read_text() == "once\n"


def start_elsewhere(home: Path, plan: Start) -> None:
    """In a process of its own, as another orchestrator would."""
    script = (
        "import pickle, sys; from pathlib import Path; "
        "from lockgate.adapters.sessions.sessions import ProcessSessions; "
        "home, plan = pickle.load(sys.stdin.buffer); ProcessSessions(home).start(plan)"
    )
    subprocess.run(
        [sys.executable, "-c", script], input=pickled((home, plan)), check=True, timeout=PATIENCE
    )


def pickled(value: object) -> bytes:
    import pickle  # noqa: PLC0415 - only here

    return pickle.dumps(value)


def test_a_second_runner_gives_up(bare) -> None:
    bare.start("echo once; sleep 86136")
    first = bare.runner()

    second = subprocess.run(
        [sys.executable, "-I", "-S", str(RUNNER), str(bare.directory())], check=False, timeout=10
    )

    assert second.returncode == 0
    assert bare.runner() == first
    assert bare.sessions.output(ID) == "once\n"


def test_the_first_token_stays(bare) -> None:
    bare.start("exit 0")
    bare.wait()
    bare.start("exit 0", token="another")  # noqa: S106 - of nothing

    assert bare.sessions.token(ID) == "the-token"
    assert bare.sessions.token(SessionId("other.1")) is None
    assert (bare.directory() / "spec.json").stat().st_mode & 0o777 == 0o600
    assert bare.directory().stat().st_mode & 0o777 == 0o700


def test_a_session_that_was_written_down_but_not_started_can_still_start(bare) -> None:
    lay_out(bare.plan("echo late"), bare.directory(), bare.home)

    assert not bare.sessions.started(ID)
    assert bare.sessions.exit_of(ID) is None
    assert bare.sessions.watch(ID) is None
    bare.start("echo something else")

    bare.wait()
    assert bare.sessions.output(ID) == "late\n"


# --- the runner's own end -----------------------------------------------------------------------


def test_a_runner_that_is_killed_leaves_a_session_that_is_lost(stage) -> None:
    stage.start("echo ready; sleep 86137")
    stage.says("ready")

    os.kill(stage.runner(), signal.SIGKILL)

    assert stage.wait() == Exit(ending=Ending.LOST)
    if not stage.sandboxed:  # only a sandbox takes all of it along
        stage.sessions.end(ID, 0.0)
    eventually(lambda: stage.left() == ())


def test_a_runner_outlives_whoever_started_it(stage) -> None:
    plan = stage.plan("sleep 0.5; echo done; exit 5")

    start_elsewhere(stage.home, plan)

    assert stage.wait().code == 5
    assert stage.sessions.output(ID) == "done\n"


def test_a_runner_does_not_mind_a_hangup(stage) -> None:
    stage.start("sleep 0.5; exit 6")

    os.kill(stage.runner(), signal.SIGHUP)

    assert stage.wait().code == 6


def test_a_session_of_before_the_boot_was_interrupted(bare) -> None:
    bare.start("sleep 86138")
    run = bare.directory() / "run.json"
    told = json.loads(run.read_text())

    run.write_text(json.dumps(told | {"boot": "another"}))

    assert bare.sessions.exit_of(ID) == Exit(ending=Ending.INTERRUPTED)
    assert bare.sessions.watch(ID) is None
    run.write_text(json.dumps(told))


def test_another_process_with_the_runners_pid_is_not_taken_for_it(bare) -> None:
    bystander = subprocess.Popen(["sleep", "30"])
    bare.directory().mkdir(parents=True)
    start = proc.started_at(os.getpid())
    run = {"pid": bystander.pid, "start": start, "boot": proc.boot()}
    (bare.directory() / "run.json").write_text(json.dumps(run))

    assert bare.sessions.watch(ID) is None
    assert bare.sessions.exit_of(ID) == Exit(ending=Ending.LOST)
    bare.sessions.end(ID, 0.1)

    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_a_zombie_does_not_live() -> None:
    dead = subprocess.Popen(["true"])
    eventually(lambda: b") Z " in Path(f"/proc/{dead.pid}/stat").read_bytes())

    assert proc.still(dead.pid, proc.started_at(dead.pid) or 0) is None
    dead.wait()


def test_a_killed_program_is_recorded(stage) -> None:
    stage.start("echo ready; exec sleep 86139")
    stage.says("ready")
    (program,) = (it for it in stage.left() if b"86139" in cmdline(it))

    os.kill(program, signal.SIGKILL)

    exit = stage.wait()
    assert (exit.ending, exit.code) == (Ending.EXITED, None)


def cmdline(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


# --- a full disk --------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path) -> Generator[Path]:
    if os.geteuid() != 0:
        pytest.skip("needs root: a disk of its own cannot be mounted")
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], check=False)
    if made.returncode != 0:
        pytest.skip("needs a root that can mount a disk")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_disk_that_fills_up_stops_neither_the_program_nor_its_last_word(small_disk) -> None:
    stage = Stage(small_disk, sandboxed=False)

    exit, output = stage.play("echo begun; head -c 5000000 /dev/zero; exit 8")

    assert (exit.ending, exit.code) == (Ending.EXITED, 8)
    assert output.startswith("begun\n")


def test_a_session_does_not_start_on_a_full_disk_and_says_so(small_disk) -> None:
    stage = Stage(small_disk, sandboxed=False)
    plan = stage.plan("true")
    fill(small_disk / "filler")

    with pytest.raises(Unavailable, match="No space left"):
        stage.sessions.start(plan)

    assert stage.sessions.exit_of(ID) is None
    (small_disk / "filler").unlink()
    assert stage.play("exit 9")[0].code == 9


def fill(file: Path) -> None:
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as filler:
        while True:
            filler.write(b"x" * 4096)


# --- the agent's home ---------------------------------------------------------------------------


def test_files_are_written_anew_or_kept_and_no_link_is_followed(bare) -> None:
    outside = bare.root / "outside"
    outside.mkdir()
    (outside / "file").write_text("untouched")
    home = bare.root / "homes" / ID
    home.mkdir(parents=True)
    (home / "directory").symlink_to(outside)
    (home / "file").symlink_to(outside / "file")
    (home / "kept").symlink_to(outside / "missing")
    (home / "mine").write_text("the agent's")
    (home / "blocked").mkdir()

    bare.play(
        "exit 0",
        files={"directory/file": "ours", "file": "ours", "blocked": "ours"},
        kept={"kept": "ours", "mine": "ours"},
    )

    assert (outside / "file").read_text() == "untouched"
    assert sorted(it.name for it in outside.iterdir()) == ["file"]
    assert (home / "directory" / "file").read_text() == "ours"
    assert (home / "file").read_text() == "ours"
    assert (home / "blocked").read_text() == "ours"
    assert (home / "mine").read_text() == "the agent's"
    assert (home / "kept").is_symlink()


@pytest.mark.parametrize("name", ["/etc/planted", "../planted", "a/../../planted", ""])
def test_a_file_outside_of_the_home_is_refused(bare, name) -> None:
    with pytest.raises(Refused):
        bare.start("true", files={name: "text"})


def test_what_the_program_may_write_is_its_own(stage) -> None:
    exit, _ = stage.play(
        "echo more >> ~/.agent/settings && touch ~/new", files={".agent/settings": ""}
    )

    assert exit.code == 0
    user = owner()[0] if stage.sandboxed else os.geteuid()
    assert (stage.root / "homes" / ID / "new").stat().st_uid == user


# --- a reviewer's desk --------------------------------------------------------------------------


def test_a_reviewer_sees_the_checkout_and_can_change_none_of_it(tmp_path) -> None:
    if WHY_NOT:
        pytest.skip(f"needs bubblewrap: {WHY_NOT}")
    stage = Stage(tmp_path, sandboxed=True)
    checkout = tmp_path / "checkout"
    (checkout / "src").mkdir(parents=True)
    (checkout / "src" / "main.py").write_text("code")
    (checkout / "README").write_text("readme")
    (checkout / "secret").symlink_to(tmp_path / "outside")
    (checkout / "link").symlink_to("README")
    (tmp_path / "outside").write_text("secret")
    plan = stage.plan("")
    (plan.desk.directory / "TASK.md").write_text("task")
    os.chown(plan.desk.directory / "TASK.md", *owner())

    _, output = stage.play(
        "cat src/main.py README link TASK.md secret; echo; "
        "for it in src/main.py src/new README TASK.md; do (echo more >> $it) && echo $it; done",
        desk=Desk(directory=plan.desk.directory, checkout=checkout),
    )

    assert output.startswith("codereadmereadmetask\nTASK.md\n")
    assert (checkout / "README").read_text() == "readme"
    assert not (checkout / "src" / "new").exists()


def test_without_a_sandbox_a_reviewer_finds_the_checkout_by_links_beside_its_own_files(
    bare, tmp_path
) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "src").mkdir(parents=True)
    (checkout / "src" / "main.py").write_text("code")
    (checkout / "TASK.md").write_text("another's")
    plan = bare.plan("")
    (plan.desk.directory / "TASK.md").write_text("task")

    _, output = bare.play(
        "cat src/main.py TASK.md", desk=Desk(directory=plan.desk.directory, checkout=checkout)
    )

    assert output == "codetask"


# --- the door -----------------------------------------------------------------------------------


def heard_by_an_orchestrator(stage: Stage, script: str) -> tuple[list[Request], str]:
    heard = list[Request]()

    def answer(request: Request, _line: Line) -> Answer:
        heard.append(request)
        return Answer(4, "printed\n", "complained\n")

    door = Door(str(stage.home / "door.sock"), answer)
    door.serve()
    try:
        _, output = stage.play(script)
    finally:
        door.close()
    return heard, output


def test_a_signal_reaches_the_orchestrator_with_the_sessions_token(stage) -> None:
    heard, output = heard_by_an_orchestrator(
        stage, "LOCKGATE_TOKEN=forged lockgate task update --status 'agent review'; echo $?"
    )

    (request,) = heard
    assert request.token == "the-token"
    assert request.argv == ("task", "update", "--status", "agent review")
    assert request.cwd == str(stage.home)
    assert output == "printed\n4\n\ncomplained\n"


def test_what_a_session_may_not_ask_for_is_not_passed_on(stage) -> None:
    heard, output = heard_by_an_orchestrator(
        stage,
        "lockgate approve it; echo $?; lockgate; lockgate task delete; lockgate --json task list",
    )

    assert heard == []
    assert output.startswith("1\n")
    assert "'approve it' was not done: a session may not ask for it" in output


def test_a_review_is_read_where_the_reviewer_sees_it(stage) -> None:
    heard, _ = heard_by_an_orchestrator(
        stage, "echo findings > review.json; lockgate review submit --file review.json"
    )

    (request,) = heard
    assert (request.argv, request.stdin) == (("review", "submit", "--file", "-"), "findings\n")


NAMED = [
    ("--file", "SECRET"),
    ("--file=SECRET",),
    ("--file", "-", "--file", "SECRET"),
    ("--file=-", "--file=SECRET"),
    ("--file", "--file", "-"),
    ("--json", "--file", "./SECRET", "task-1"),
    ("--file", "/dev/stdin"),
    ("--file",),
]


@pytest.mark.parametrize("more", NAMED, ids=" ".join)
def test_no_file_that_a_session_names_is_read_for_it(tmp_path, more) -> None:
    ran = tmp_path / "ran"
    stub = tmp_path / "python"
    stub.write_text(f'#!/bin/sh\necho "$@" >> {ran}\n')
    stub.chmod(0o755)
    (tmp_path / "SECRET").write_text("secret")
    relay = Relay(home=str(tmp_path), token="the-token", python=str(stub))  # noqa: S106

    def asks(*argv: str) -> Answer:
        request = Request(token="", cwd="/", stdin="{}", argv=("review", "submit", *argv))
        answer = relay.answer(request, cast("Line", None))
        assert answer is not None
        return answer

    refused, taken = asks(*more), asks("--file", "-", "task-1")

    assert refused.code == 1
    assert "the review was not handed in" in refused.err
    assert "lockgate review submit --file - < FILE" in refused.err
    assert taken.code == 0
    assert ran.read_text() == "-P -m lockgate review submit --file - task-1\n"


def test_a_hooks_input_is_passed_on(stage) -> None:
    heard, _ = heard_by_an_orchestrator(
        stage, "echo '{\"hook\": 1}' | lockgate checkpoint --task-id x --done"
    )

    assert [it.stdin for it in heard] == ['{"hook": 1}\n']


def test_a_signal_is_heard_while_no_orchestrator_is_up(stage) -> None:
    _, output = stage.play("lockgate task complete no-such-task; echo $?")

    assert output.startswith("1\n")
    assert "the token in LOCKGATE_TOKEN belongs to no session" in output


def test_a_command_of_our_own_gets_the_sessions_token_and_nothing_of_the_agents(bare) -> None:
    stub = bare.root / "python"
    stub.write_text('#!/bin/sh\necho "$@"; env | grep LOCKGATE_ | sort; cat; exit 2\n')
    stub.chmod(0o755)
    plan = bare.plan("echo input | lockgate checkpoint; echo $?")
    lay_out(plan, bare.directory(), bare.home)
    spec = json.loads((bare.directory() / "spec.json").read_text())
    (bare.directory() / "spec.json").write_text(json.dumps(spec | {"python": str(stub)}))

    bare.start("")
    bare.wait()

    assert bare.sessions.output(ID).splitlines() == [
        "-P -m lockgate checkpoint",
        f"LOCKGATE_HOME={bare.home}",
        "LOCKGATE_NO_ORCHESTRATOR=1",
        "LOCKGATE_TOKEN=the-token",
        "input",
        "2",
    ]


def test_what_was_asked_before_the_program_ended_is_still_done(bare) -> None:
    heard = list[str]()

    def answer(request: Request, _line: Line) -> Answer:
        time.sleep(0.7)
        heard.append(request.argv[0])
        return Answer(0)

    door = Door(str(bare.home / "door.sock"), answer)
    door.serve()
    bare.play("lockgate checkpoint & sleep 0.4; exit 0")
    door.close()

    assert heard == ["checkpoint"]


def test_a_runner_does_not_wait_for_an_answer_from_whoever_ends_it(bare) -> None:
    """An orchestrator that ends the session in the very request that asked for it."""

    def answer(_request: Request, _line: Line) -> Answer:
        bare.sessions.end(ID, 0.2)
        return Answer(0)

    door = Door(str(bare.home / "door.sock"), answer)
    door.serve()
    begin = time.monotonic()
    exit, _ = bare.play("lockgate task complete; sleep 86140")
    door.close()

    assert exit.ending is Ending.ENDED
    assert time.monotonic() - begin < 10


# --- watching -----------------------------------------------------------------------------------


def test_ends_are_noticed_by_event(bare) -> None:
    watch = Watch()
    ids = [SessionId(f"task.{n}") for n in range(3)]
    for id in ids:
        bare.start(f"until test -e '{bare.root}/go'; do sleep 0.02; done", id=id)
        descriptor = bare.sessions.watch(id)
        assert descriptor is not None
        watch.add(id, descriptor)

    (bare.root / "go").touch()
    seen = list[SessionId]()
    while len(seen) < 3:
        ended = watch.wait(PATIENCE)
        assert all(bare.sessions.exit_of(it) for it in ended)
        seen += ended

    assert sorted(seen) == ids
    assert watch.watched() == frozenset()
    watch.close()


def test_a_wait_can_be_woken_from_another_thread_and_lets_go_of_everything() -> None:
    watch = Watch()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(watch.wait, PATIENCE)
        watch.wake()
        assert waiting.result(PATIENCE) == ()
    assert watch.wait(0.01) == ()

    watch.close()

    watch.wake()


def test_closing_a_watch_closes_what_it_was_given(bare) -> None:
    bare.start("sleep 86141")
    descriptor = bare.sessions.watch(ID)
    assert descriptor is not None
    watch = Watch()
    watch.add(ID, descriptor)

    watch.close()

    with pytest.raises(OSError, match="Bad file descriptor"):
        select.select([descriptor], [], [], 0)


# --- at a terminal ------------------------------------------------------------------------------


@pytest.fixture
def at_terminal(stage) -> Generator[Stage]:
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux")
    yield stage
    tmux(stage, "kill-server")


def tmux(stage: Stage, *argv: str) -> str:
    command = ["tmux", "-f", "/dev/null", "-S", "tmux.sock", *argv]
    done = subprocess.run(command, cwd=stage.home, capture_output=True, text=True, check=False)
    return done.stdout


@pytest.mark.tmux
def test_a_person_can_sit_at_an_interactive_session(at_terminal) -> None:
    at_terminal.start("echo ready; read word; echo heard $word > ~/heard; exit 3", interactive=True)
    pane = "=fix-login-3f9a_1:"
    eventually(lambda: "ready" in tmux(at_terminal, "capture-pane", "-p", "-t", pane))

    command = at_terminal.sessions.attach_command(ID)
    tmux(at_terminal, "send-keys", "-t", pane, "hello", "Enter")

    assert command is not None
    assert command[-2:] == ("-t", "=fix-login-3f9a_1")
    assert at_terminal.wait().code == 3
    assert (at_terminal.root / "homes" / ID / "heard").read_text() == "heard hello\n"
    eventually(lambda: at_terminal.sessions.attach_command(ID) is None)


@pytest.mark.tmux
def test_a_session_goes_on_when_tmux_does_not(at_terminal) -> None:
    at_terminal.start("touch ~/begun; sleep 1; exit 4", interactive=True)
    eventually((at_terminal.root / "homes" / ID / "begun").exists)

    tmux(at_terminal, "kill-server")

    exit = at_terminal.wait()
    assert (exit.ending, exit.code) == (Ending.EXITED, 4)


@pytest.mark.tmux
def test_an_interactive_session_is_ended_like_any_other(at_terminal) -> None:
    at_terminal.start("sleep 86142", interactive=True)
    assert at_terminal.sessions.attach_command(ID) is not None

    at_terminal.sessions.end(ID, 2.0)

    assert at_terminal.wait().ending is Ending.ENDED
    assert at_terminal.left() == ()


def test_where_tmux_is_missing_an_interactive_session_says_so(bare, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(Unavailable, match="tmux"):
        bare.start("true", interactive=True)


# --- services -----------------------------------------------------------------------------------

SERVER = Service(
    "server",
    f'exec {sys.executable} -c "import os, socket, time; '
    "it = socket.create_server(('127.0.0.1', int(os.environ['PORT']))); "
    "open(os.environ['DATA'] + '/up', 'w'); time.sleep(86131)\"",
    'test -e "$DATA/up"',
)


def serving(number: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and number.encode() in (entry / "cmdline").read_bytes():
                found.append(entry.name)
    return found


def test_a_session_finds_the_services_that_run_for_it_alone_and_they_end_with_it(stage) -> None:
    exit, output = stage.play('echo "$SERVER_HOST $((SERVER_PORT > 0))"', services=(SERVER,))

    assert (exit.ending, exit.code, output) == (Ending.EXITED, 0, "127.0.0.1 1\n")
    eventually(lambda: not serving("sleep(86131)"))
    eventually(lambda: not (stage.directory() / "services").exists())


def test_the_services_of_a_session_end_though_its_runner_is_killed(stage) -> None:
    stage.start("echo begun; sleep 600", services=(SERVER,))
    stage.says("begun")
    assert serving("sleep(86131)")

    os.kill(stage.runner(), signal.SIGKILL)

    eventually(lambda: not serving("sleep(86131)"))


def test_a_session_whose_service_is_not_ready_never_begins_and_says_why(stage) -> None:
    broken = Service("db", "echo no room left; exit 3", "false")

    exit, output = stage.play("echo begun", services=(broken,))

    assert (exit.ending, exit.code) == (Ending.SERVICE, None)
    assert exit.why == "db ended with exit code 3; it said: no room left"
    assert "begun" not in output


def test_a_program_that_exits_125_beside_its_services_has_exited(stage) -> None:
    exit, _ = stage.play("exit 125", services=(SERVER,))

    assert (exit.ending, exit.code) == (Ending.EXITED, 125)
