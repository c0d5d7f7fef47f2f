"""Command gates, by running them: what an attempt finds, what it may use, how it ends."""

import asyncio
import os
import shlex
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lockgate.adapters.gate_commands import CommandGates, _attempt
from lockgate.adapters.reports import read_reports
from lockgate.adapters.run import Finished
from lockgate.adapters.run import run as run_plainly
from lockgate.adapters.sandbox import Tried, attempt, probe, trouble
from lockgate.adapters.sandbox.ports import let_through
from lockgate.adapters.sandbox.services import orders
from lockgate.core.config.settings import SandboxLevel, SandboxSettings, Service
from lockgate.core.model.results import Good, believed
from lockgate.core.model.retry import ToolCall, ToolResult
from lockgate.core.model.task import AgentPhase
from lockgate.errors import SandboxRetryExhaustedError
from lockgate.ports import Cut
from lockgate.services.gates.command import SandboxRetryProtocol, ToolProxy
from tests.adapters.gatehouse import NEEDS_BUBBLEWRAP, Gatehouse, a_gatehouse, gate, unread

pytestmark = NEEDS_BUBBLEWRAP
PLACES = ["/var/tmp", "/dev/shm"]  # noqa: S108 - inside the sandbox, where they are its own
GREEN = '<testsuite><testcase name="a"/></testsuite>'
FAILED = '<testsuite><testcase name="a"><failure/></testcase></testsuite>'
COUNT = "echo 1 >> count; cat count; rm file; mkdir more"


@pytest.fixture
def house(tmp_path) -> Generator[Gatehouse]:
    """Whatever a gate did, its checkout is as it was and nothing lies beside it."""
    made = a_gatehouse(tmp_path)
    yield made
    assert (made.checkout / "file").read_text() == "as it was\n"
    assert [it.name for it in made.checkout.iterdir()] == ["file"]
    assert made.beside() == set()


@pytest.fixture
def _no_overlay(house, monkeypatch):
    monkeypatch.setitem(probe._OVERLAYS, house.place.stat().st_dev, False)


def python(script: str) -> str:
    return f"{shlex.quote(sys.executable)} -I -S -c {shlex.quote(script)}"


# --- the tree, and what is handed back ----------------------------------------------------------


def test_every_attempt_finds_the_same_tree(house) -> None:
    seen = [house.attempt(COUNT) for _ in range(3)]

    assert [it.out for it in seen] == ["1\n"] * 3
    assert seen[0].level.startswith("bubblewrap+")
    assert "+overlay+" in seen[0].level


@pytest.mark.usefixtures("_no_overlay")
def test_where_no_overlay_works_every_attempt_gets_a_copy(house) -> None:
    seen = [house.attempt(f"{COUNT}; echo report > $OUT/report") for _ in range(3)]

    assert [it.out for it in seen] == ["1\n"] * 3
    assert "+copy+watchdog" in seen[0].level
    assert (house.place / "reports" / "report").read_text() == "report\n"


@pytest.mark.usefixtures("_no_overlay")
def test_a_copy_that_was_shut_by_its_gate_is_removed_all_the_same(house) -> None:
    assert house.attempt("mkdir -p a/b/c; chmod 000 a/b a; exit 3").exit_code == 3


def test_without_a_sandbox_every_attempt_gets_a_copy_too(house) -> None:
    seen = [
        house.bare(f'{COUNT}; echo report > "$OUT/report"; pwd > "$SCRATCH/x"') for _ in range(3)
    ]

    assert [it.out for it in seen] == ["1\n"] * 3
    assert seen[0].level == "none"
    assert (house.place / "reports" / "report").read_text() == "report\n"


class Executor:
    """What the services' retry protocol asks for, on a gate of ours."""

    def __init__(self, house: Gatehouse) -> None:
        self.house = house
        self.seen: list[str] = []

    async def execute(self, tool_call: ToolCall) -> ToolResult:
        found = self.house.attempt(tool_call.argv[0])
        self.seen.append(found.out)
        return ToolResult(found.exit_code, found.out, found.cut is Cut.DEADLINE)


class Recorder:
    def record(self, tool_call: ToolCall, phase: AgentPhase, output: str = "") -> None:
        raise AssertionError("a transient failure is not recorded")


@pytest.mark.req("R52")
def test_three_attempts_of_one_call_double_no_side_effect(house) -> None:
    executor, waits = Executor(house), list[float]()

    async def delay(milliseconds: float) -> None:
        waits.append(milliseconds)

    proxy = ToolProxy(SandboxRetryProtocol(executor, Recorder(), delay=delay))

    with pytest.raises(SandboxRetryExhaustedError):
        asyncio.run(proxy.call(ToolCall("1", (f"{COUNT}; exit 124",)), AgentPhase.VERIFY))

    assert executor.seen == ["1\n"] * 3
    assert waits == [500, 1000]


def test_what_is_left_in_out_is_handed_back_as_plain_files_of_ours(house) -> None:
    house.attempt(
        "mkdir -p $OUT/deep/er; echo one > $OUT/one.xml; echo two > $OUT/deep/er/two.xml; "
        "ln -s /etc/hostname $OUT/link; mkfifo $OUT/fifo; ln -s / $OUT/deep/root; "
        "echo no > $OUT/shut; chmod 000 $OUT/shut; head -c 70000000 /dev/zero > $OUT/huge"
    )

    left = {str(it.relative_to(house.place / "reports")) for it in files(house.place / "reports")}
    assert {"one.xml", "deep/er/two.xml"} <= left
    assert not left & {"link", "fifo", "deep/root"}
    assert (house.place / "reports" / "huge").stat().st_size == 70_000_000


@pytest.mark.parametrize(
    "command",
    [
        "ln -s /etc/hostname $OUT/junit.xml",
        "mkfifo $OUT/junit.xml",
        f"echo '{GREEN}' > $OUT/junit.xml; head -c 70000000 /dev/zero >> $OUT/junit.xml",
        f"cd $OUT; mkdir d; echo '{FAILED}' > d/junit.xml; chmod 000 d/junit.xml d",
        f"cd $OUT; seq 50 | xargs touch; echo '{FAILED}' > junit.xml; seq 51 99 | xargs touch",
    ],
    ids=["link", "pipe", "too big", "shut", "among too many"],
)
def test_a_report_that_is_left_and_cannot_be_taken_is_never_a_pass(
    house, monkeypatch, command
) -> None:
    monkeypatch.setattr(attempt, "ENTRIES", 20)
    house.attempt(command)

    found = read_reports(house.place / "reports", "", None)

    assert not isinstance(believed(0, found, expected_some=False), Good)


def test_a_link_to_a_report_beside_it_is_no_second_report(house) -> None:
    house.attempt(f"cd $OUT; echo '{GREEN}' > one.xml; ln -s one.xml latest.xml")

    found = read_reports(house.place / "reports", "", None)

    assert isinstance(believed(0, found, expected_some=False), Good)


def files(directory: Path) -> list[Path]:
    return [it for it in directory.rglob("*") if not it.is_dir()]


def test_more_files_in_out_than_are_looked_at_are_not_all_taken(house, monkeypatch) -> None:
    monkeypatch.setattr(attempt, "ENTRIES", 1000)
    house.attempt("cd $OUT; seq 3000 | xargs touch; mkdir -p 1d/2/3/4/5/6/7/8/9/10; touch 1d/x")

    assert 0 < len(files(house.place / "reports")) <= 1001  # one stands in for the rest


def test_a_gate_without_reports_hands_nothing_back(house) -> None:
    assert house.attempt("true").report_dir is None


def test_all_that_it_may_write_is_empty_and_its_own(house) -> None:
    done = house.attempt(
        "find $OUT $SCRATCH $HOME /var/tmp /dev/shm -mindepth 1 -maxdepth 1 -writable; "
        "for it in . $OUT $SCRATCH $HOME $TMPDIR /var/tmp /dev/shm; do touch $it/x; done; "
        "pwd; id -u"
    )

    uid = 65534 if os.geteuid() == 0 else os.geteuid()
    assert (done.out.split(), done.err) == (["/workspace", str(uid)], "")


def test_a_tool_that_lies_where_scratch_is_stays_there(house, tmp_path) -> None:
    (tmp_path / "tool").write_text("tool")

    assert house.attempt(f"cat {tmp_path}/tool", read=(str(tmp_path / "tool"),)).out == "tool"


def test_a_gate_that_reads_the_whole_home_sees_neither_keys_nor_the_state(
    house, tmp_path, monkeypatch
) -> None:
    user, state = tmp_path / "ann", tmp_path / "ann" / "state"
    for file in (user / ".ssh" / "id", state / "lockgate.db", user / "notes"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{file.name}\n")
    for place in (tmp_path, user):
        place.chmod(0o755)
    monkeypatch.setenv("HOME", str(user))
    gates = CommandGates(reader=unread, home=state)

    told = f"cat {user}/notes {user}/.ssh/id {state}/lockgate.db"
    seen = gates.attempt(gate(told), house.run(read=("~", str(state))), lambda: False)

    assert seen.out == "notes\n"


# --- how it ends --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "code", "why"),
    [
        ("true", 0, ""),
        ("exit 3", 3, ""),
        ("exit 124", 124, ""),
        ("no-such-command", 127, ""),
        ("./file", 126, ""),
        ("exit 137", 137, "perhaps ended by SIGKILL"),
        ("kill -9 $$", 137, "perhaps ended by SIGKILL"),
        ("kill -TERM $$", 143, "perhaps ended by SIGTERM"),
        ("false | true", 0, ""),
    ],
)
def test_an_exit_is_reported_as_it_is(house, command, code, why) -> None:
    done = house.attempt(command)

    assert (done.exit_code, done.cut, done.why) == (code, None, why)


@pytest.mark.parametrize("level", list(SandboxLevel))
def test_our_own_time_out_is_no_exit_code(house, level) -> None:
    begin = time.monotonic()

    done = house.attempt("trap '' TERM; sleep 86126 & sleep 86126", timeout=1, level=level)

    assert (done.exit_code, done.cut) == (None, Cut.DEADLINE)
    assert done.why == "ended after 1 seconds"
    assert time.monotonic() - begin < 20
    assert not living("86126")


def living(mark: str) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [place.parent.name] if mark.encode() in place.read_bytes() else []
        except OSError:
            continue
    return found


@pytest.mark.parametrize("level", list(SandboxLevel))
def test_a_gate_that_is_called_off_ends(house, level) -> None:
    begin = time.monotonic()

    done = house.attempt(
        "sleep 86127", cancelled=lambda: time.monotonic() > begin + 0.3, level=level
    )

    assert (done.exit_code, done.cut, done.why) == (None, Cut.CANCELLED, "it was called off")
    assert not living("86127")


def test_a_base_that_is_gone_is_a_sandbox_that_failed(house) -> None:
    house.base.joinpath("file").unlink()
    house.base.rmdir()

    done = house.attempt("true")

    assert (done.exit_code, done.cut) == (125, Cut.BOX)
    assert "base.git" in done.why


def test_a_machine_that_encloses_nothing_breaks_the_gate(house, monkeypatch, tmp_path) -> None:
    trouble.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))

    done = house.attempt("true")

    trouble.cache_clear()
    assert (done.exit_code, done.cut) == (125, Cut.BOX)
    assert "bwrap is not on PATH" in done.why


# --- what it may use ----------------------------------------------------------------------------


@pytest.mark.parametrize("place", [".", "$OUT", "$SCRATCH", "$HOME", "$TMPDIR", *PLACES])
def test_scratch_that_is_used_up_breaks_it(house, place) -> None:
    done = house.attempt(f"head -c 20000000 /dev/zero > {place}/big", scratch_mb=8)

    assert (done.exit_code, done.cut) == (None, Cut.SCRATCH)
    assert done.why == "it used up its scratch ([sandbox] scratch_mb = 8)"


def test_scratch_that_was_full_and_no_longer_is_breaks_it_too(house) -> None:
    done = house.attempt(
        "head -c 20000000 /dev/zero > big; sleep 0.5; rm big; exit 1", scratch_mb=8
    )

    assert done.cut is Cut.SCRATCH


def test_too_many_files_use_scratch_up_as_well(house) -> None:
    done = house.attempt("seq 3000 | xargs touch", scratch_mb=8)

    assert done.cut is Cut.SCRATCH


def test_a_gate_that_passes_with_full_scratch_has_passed(house) -> None:
    assert house.attempt("head -c 9999999 /dev/zero > x; true", scratch_mb=4).exit_code == 0


def test_five_processes_together_use_memory_up(house) -> None:
    eats = python("import time; it = bytearray(200 << 20); time.sleep(60)")

    done = house.attempt(f"for n in 1 2 3 4 5; do {eats} & done; wait", memory_mb=512)

    assert (done.exit_code, done.cut) == (None, Cut.MEMORY)
    assert "memory_mb = 512" in done.why


def test_memory_that_no_process_has_mapped_counts_too(house) -> None:
    hides = python(
        "import os, time\n"
        "made = os.memfd_create('hidden')\n"
        "for _ in range(600): os.write(made, b'x' * (1 << 20))\n"
        "time.sleep(60)"
    )

    done = house.attempt(hides, memory_mb=256)

    assert (done.exit_code, done.cut) == (None, Cut.MEMORY)


def test_memory_that_processes_share_counts_once(house) -> None:
    shares = python(
        "import mmap, os, time; it = mmap.mmap(-1, 100 << 20); it.write(bytes(100 << 20)); "
        "pids = [os.fork() for n in range(3)]; sum(it[::4096]); "
        "time.sleep(0.6 if 0 in pids else 0.7)"
    )

    assert house.attempt(shares, memory_mb=400).exit_code == 0


def test_processes_that_are_used_up_break_it(house) -> None:
    done = house.attempt("for n in $(seq 100); do sleep 30 & done; wait; exit 1", pids=64)

    assert (done.exit_code, done.cut) == (None, Cut.PIDS)


# --- services -----------------------------------------------------------------------------------

SERVER = python(
    "import socket; it = socket.create_server(('127.0.0.1', 8123)); print('up', flush=True)\n"
    "while True: it.accept()[0].sendall(b'served')"
)
CLIENT = python(
    "import socket; print(socket.create_connection(('127.0.0.1', 8123)).recv(9).decode())"
)


def test_services_are_ready_before_the_command_and_end_with_it(house) -> None:
    server = Service("server", f"cat file; exec {SERVER} 86128", CLIENT)
    other = Service("other", "echo $SCRATCH > $SCRATCH/started", "test -e $SCRATCH/started")

    for _ in range(2):
        done = house.attempt(f"{CLIENT}; cat $SCRATCH/started; exit 3", services=(server, other))

        assert (done.exit_code, done.cut) == (3, None)
        assert done.out == "served\n/scratch\n"
    assert not living("86128")


def test_a_service_that_ends_before_it_is_ready_breaks_the_gate_in_its_own_words(house) -> None:
    fine = Service("fine", "echo fine; sleep 60")
    database = Service("database", "echo no such directory >&2; exit 3", "false")

    done = house.attempt("echo ran", services=(fine, database))

    assert (done.exit_code, done.cut, done.out) == (125, Cut.SERVICE, "")
    assert "no test is to blame; see [[services]] in .lockgate/config.toml: database " in done.why
    assert done.why.endswith("ended with exit code 3; it said: no such directory")


def test_a_service_that_never_becomes_ready_breaks_the_gate(house, monkeypatch) -> None:
    monkeypatch.setattr(orders, "READY_WITHIN", 1)

    done = house.attempt("true", services=(Service("slow", "echo wait; sleep 60", "sleep 60"),))

    assert done.cut is Cut.SERVICE
    assert done.why.endswith("slow was not ready within 1 s; it said: wait")


def test_a_service_that_ends_in_the_middle_is_told_apart_from_a_failing_test(house) -> None:
    service = Service("server", "sleep 0.3; echo the disk is full; exit 4")

    done = house.attempt("sleep 1; echo FAILED test_it; exit 1", services=(service,))

    assert (done.exit_code, done.cut, done.out) == (125, Cut.SERVICE, "FAILED test_it\n")
    assert done.why.endswith("server ended with exit code 4; it said: the disk is full")


def test_a_command_that_passes_though_a_service_has_ended_has_passed(house) -> None:
    done = house.attempt("sleep 0.5", services=(Service("server", "exit 4"),))

    assert (done.exit_code, done.cut) == (0, None)


def test_a_command_finds_the_port_and_the_data_of_its_service_by_variables(house) -> None:
    tell = 'touch "$DATA/mine" && exec ' + python(
        "import os, socket; it = socket.create_server(('127.0.0.1', int(os.environ['PORT'])))\n"
        "while True: it.accept()[0].sendall(b'served')"
    )
    ready = python(
        "import os, socket; socket.create_connection(('127.0.0.1', int(os.environ['PORT'])))"
    )
    wanted = Service("my-queue", tell, ready, env=(("QUEUE", "amqp://$MY_QUEUE_HOST:$PORT_IS"),))

    done = house.attempt('echo "$MY_QUEUE_HOST" $((MY_QUEUE_PORT > 0)) $QUEUE', services=(wanted,))

    assert (done.exit_code, done.out) == (0, "127.0.0.1 1 amqp://127.0.0.1:$PORT_IS\n")


def test_a_command_that_fails_beside_its_services_has_failed(house) -> None:
    done = house.attempt("exit 125", services=(Service("server", "sleep 60"),))

    assert (done.exit_code, done.cut) == (125, None)


def test_services_run_without_a_sandbox_too(house) -> None:
    up = '"$SCRATCH/up"'
    service = Service("server", f"touch {up}; exec sleep 86129", f"test -e {up}")

    assert house.bare(f"test -e {up}", services=(service,)).exit_code == 0
    assert not living("86129")


# --- ports --------------------------------------------------------------------------------------


@contextmanager
def a_server_that_turns_around() -> Generator[int]:
    """What it is sent, backwards, once all of it has come."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=turn_around, args=(server,))
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def turn_around(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            with connection.makefile("rb") as file:
                said = file.read()
            connection.sendall(said[::-1])


def test_one_port_of_the_host_is_let_through_and_no_other(house) -> None:
    with a_server_that_turns_around() as port, socket.create_server(("127.0.0.1", 0)) as closed:
        talk = python(
            "import os, socket\n"
            "for size in (3, 3_000_000):\n"
            "    said = os.urandom(size)\n"
            f"    to = socket.create_connection(('127.0.0.1', {port}), 20)\n"
            "    to.sendall(said); to.shutdown(socket.SHUT_WR)\n"
            "    heard = b''.join(iter(lambda: to.recv(65536), b''))\n"
            "    print(heard == said[::-1])\n"
            f"print(socket.socket().connect_ex(('127.0.0.1', {closed.getsockname()[1]})) != 0)"
        )

        done = house.attempt(talk, allow=(f"127.0.0.1:{port}",))

    assert done.out == "True\n" * 3
    assert done.level.endswith(f"+127.0.0.1:{port}")


def test_nobody_else_reaches_the_sockets_of_the_ports_that_are_let_through() -> None:
    with let_through(("127.0.0.1:5432",)) as (mount,):
        private = mount.source.parent

        assert private.stat().st_mode & 0o777 == 0o700
        assert private.parent == Path(tempfile.gettempdir())

    assert not private.exists()


def test_a_port_that_leads_nowhere_closes_what_comes(house) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    talk = f"import socket; print(socket.create_connection(('127.0.0.1', {port})).recv(9))"

    assert house.attempt(python(talk), allow=(f"127.0.0.1:{port}",)).out == "b''\n"


def test_a_port_that_cannot_be_opened_breaks_the_gate(house) -> None:
    done = house.attempt("true", allow=("127.0.0.1:80",))

    assert done.cut is Cut.SERVICE
    assert "Permission denied" in done.why


# --- what it costs ------------------------------------------------------------------------------


def test_what_a_gate_costs_is_printed(house, capsys) -> None:
    plain = [timed(lambda: run_plainly(("sh", "-c", "true"))) for _ in range(10)]
    gates = [timed(lambda: house.attempt("true")) for _ in range(10)]

    with capsys.disabled():
        print(  # noqa: T201 - its purpose
            f"\na plain true {statistics.median(plain):.1f} ms (min {min(plain):.1f}), as a gate "
            f"{statistics.median(gates):.1f} ms (min {min(gates):.1f})"
        )


def timed(what) -> float:
    begin = time.perf_counter()
    what()
    return (time.perf_counter() - begin) * 1000


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (-9, "it was ended by SIGKILL before the command's exit was known, and printed nothing"),
        (3, "it exited 3 before the command's exit was known, and printed nothing"),
    ],
)
def test_a_sandbox_that_failed_without_a_word_is_told_by_how_it_ended(code, told) -> None:
    ended = Finished(code, "", " \n", Cut.BOX)
    tried = Tried(finished=ended, said="", reports=None, seconds=0.1, level="none")

    assert _attempt(gate("true"), SandboxSettings(), tried).why == f"the sandbox failed: {told}"
