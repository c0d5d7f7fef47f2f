"""What a gate's command may try against the machine that judges it, each tried for real.

Those that use something up are bounded and end by themselves.
"""

import os
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from lockgate.adapters.sandbox import bubblewrap
from lockgate.adapters.sandbox.launch import scoping
from lockgate.ports import Attempt, Cut
from tests.adapters.gatehouse import NEEDS_BUBBLEWRAP, Gatehouse, a_gatehouse

pytestmark = NEEDS_BUBBLEWRAP
FOUND = "reached"  # what an attack says that got through


@pytest.fixture
def house(tmp_path) -> Generator[Gatehouse]:
    made = a_gatehouse(tmp_path)
    before = {it: it.read_bytes() for it in everything(made)}
    yield made
    shutil.rmtree(made.place / "reports", ignore_errors=True)
    assert {it: it.read_bytes() for it in everything(made)} == before
    assert made.beside() == set()


def everything(house: Gatehouse) -> list[Path]:
    return sorted(it for it in house.place.rglob("*") if it.is_file())


def tries(house: Gatehouse, script: str, **more) -> Attempt:
    """A script in Python, as a gate's command."""
    command = f"{shlex.quote(sys.executable)} -I -S -c {shlex.quote(script)}"
    return house.attempt(command, **more)


# --- files --------------------------------------------------------------------------------------


def test_1_it_writes_nowhere_but_in_its_own(house, tmp_path) -> None:
    places = ("/", "/usr", "/etc", "/opt", "/run", "/dev", "/proc", "/sys", "/base.git", tmp_path)

    done = house.attempt(
        f"for it in {' '.join(map(str, places))} {shlex.quote(str(house.place))}; do "
        f'(: > "$it/planted") 2>/dev/null && echo {FOUND} $it; done; true'
    )

    assert (done.exit_code, done.out) == (0, "")
    assert not (tmp_path / "planted").exists()


def test_2_it_reads_no_secret(house, tmp_path, monkeypatch) -> None:
    state = tmp_path / "home"
    state.mkdir()
    secrets = [state / "lockgate.db", Path.home() / ".netrc"]
    for secret in secrets:
        secret.write_text(FOUND)

    done = house.attempt(f"cat {' '.join(map(str, secrets))} /etc/shadow /etc/gshadow; true")

    assert (done.exit_code, done.out) == (0, "")


def test_9_neither_base_nor_the_checkouts_repository_can_be_changed(house) -> None:
    for place in ("hooks", "objects"):
        (house.base / place).mkdir()
    (house.checkout / ".git").mkdir()
    (house.checkout / ".git" / "config").write_text("[core]\n")

    done = house.attempt(
        "rm -rf .git; mkdir .git; echo '[core] fsmonitor = evil' > .git/config && echo swapped; "
        f"for it in hooks/evil config objects/x file; do (echo x > /base.git/$it) 2>/dev/null && "
        f"echo {FOUND}; done; rm -rf /base.git/objects 2>/dev/null && echo {FOUND}; true"
    )

    assert (done.exit_code, done.out) == (0, "swapped\n")
    assert (house.checkout / ".git" / "config").read_text() == "[core]\n"
    assert (house.base / "objects").is_dir()
    shutil.rmtree(house.checkout / ".git")


def test_10_no_link_leads_outside(house, tmp_path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("secret")
    (house.checkout / "link").symlink_to(outside)
    (house.checkout / "up").symlink_to("../../..")

    done = house.attempt(
        f"cat link; echo planted > link; ls up/; cat up{outside}; "
        f"ln -s {outside} $OUT/report.xml; ln -s / $OUT/root"
    )

    assert "secret" not in done.out
    assert outside.read_text() == "secret"
    left = {it.name: it.read_bytes() for it in everything(house) if it.parent.name == "reports"}
    assert left == {"report.xml": b""}, "a report that is a link is there, and empty"
    for name in ("link", "up"):
        (house.checkout / name).unlink()


def test_17_the_kernels_settings_cannot_be_written(house) -> None:
    done = house.attempt(
        "for it in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /proc/sys/vm/overcommit_memory"
        f"; do (: >> $it) 2>/dev/null && echo {FOUND}; done; true"
    )

    assert (done.exit_code, done.out) == (0, "")


# --- the network and other sockets --------------------------------------------------------------


@contextmanager
def listeners(tmp_path: Path) -> Generator[dict[str, socket.socket]]:
    """TCP, UDP, a socket by its path and one in the abstract."""
    with ExitStack() as closing:
        path, name = str(tmp_path / "s"), f"\0lockgate-{os.getpid()}"
        found = {
            "tcp": closing.enter_context(socket.create_server(("127.0.0.1", 0))),
            "udp": closing.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)),
            "path": closing.enter_context(socket.socket(socket.AF_UNIX)),
            "abstract": closing.enter_context(socket.socket(socket.AF_UNIX)),
        }
        found["udp"].bind(("127.0.0.1", 0))
        for kind, where in (("path", path), ("abstract", name)):
            found[kind].bind(where)
            found[kind].listen()
        Path(path).chmod(0o777)
        yield found


def test_3_it_reaches_nobody_outside(house, tmp_path) -> None:
    with listeners(tmp_path) as outside:
        named = {kind: it.getsockname() for kind, it in outside.items()}
        done = tries(
            house,
            "import socket\n"
            "def reach(family, kind, where):\n"
            "    to = socket.socket(family, kind)\n"
            "    try:\n"
            "        to.connect(where); to.send(b'x')\n"
            "    except OSError:\n"
            "        return\n"
            f"    if kind != socket.SOCK_DGRAM: print('{FOUND}', where)\n"
            f"reach(socket.AF_INET, socket.SOCK_STREAM, {named['tcp']!r})\n"
            f"reach(socket.AF_INET, socket.SOCK_DGRAM, {named['udp']!r})\n"
            f"reach(socket.AF_UNIX, socket.SOCK_STREAM, {named['path']!r})\n"
            f"reach(socket.AF_UNIX, socket.SOCK_STREAM, {named['abstract']!r})\n"
            "own = socket.create_server(('127.0.0.1', 0))\n"
            "socket.create_connection(own.getsockname(), 5); print('own localhost works')",
        )
        for it in outside.values():
            it.setblocking(False)
        with pytest.raises(BlockingIOError):
            outside["udp"].recv(1)

    assert (done.exit_code, done.out) == (0, "own localhost works\n")


@pytest.mark.skipif(not scoping(), reason="needs Linux 6.12 or later with Landlock")
def test_3_with_the_network_it_still_reaches_no_abstract_socket_of_the_users(house) -> None:
    name = f"lockgate-test-{os.getpid()}"
    script = f"import socket; socket.socket(socket.AF_UNIX).connect('\\0{name}')"
    with socket.socket(socket.AF_UNIX) as theirs:
        theirs.bind(f"\0{name}")
        theirs.listen()

        done = tries(house, script, network=True)

    assert done.exit_code == 1
    assert "PermissionError" in done.err


def test_3_without_landlock_it_has_a_network_of_its_own_without_the_users_abstract_sockets(
    house, monkeypatch
) -> None:
    monkeypatch.setattr(bubblewrap, "scoping", lambda: False)
    if not bubblewrap.uplink():
        pytest.skip("only a normal user with pasta and /dev/net/tun has this second way")
    name = f"lockgate-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as theirs, socket.create_server(("127.0.0.1", 0)) as served:
        theirs.bind(f"\0{name}")
        theirs.listen()
        script = (
            f"import socket; socket.create_connection({served.getsockname()!r}, 20)\n"
            "print('reached the loopback')\n"
            f"socket.socket(socket.AF_UNIX).connect('\\0{name}')"
        )

        done = tries(house, script, network=True)

    assert (done.exit_code, done.out) == (1, "reached the loopback\n")
    assert "ConnectionRefusedError" in done.err


@pytest.mark.tmux
@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_13_it_does_not_control_the_hosts_tmux(house, tmp_path) -> None:
    control = str(tmp_path / "t")
    tmux = ["tmux", "-f", "/dev/null", "-S", control]
    subprocess.run([*tmux, "new-session", "-d", "-s", "hosts", "sleep 60"], check=True)
    try:
        done = house.attempt(f"tmux -S {control} list-sessions; ls -A {control} && echo {FOUND}")
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)

    assert done.exit_code != 0
    assert done.out == ""


@pytest.mark.parametrize("family", [40, 17, 38, 31], ids=["vsock", "packet", "alg", "bluetooth"])
def test_15_sockets_that_no_namespace_holds_are_refused(house, family) -> None:
    done = tries(
        house,
        "import socket\n"
        "for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):\n"
        f"    try: socket.socket({family}, kind); print('{FOUND}')\n"
        "    except PermissionError: print('refused')",
    )

    assert done.out.split() == ["refused"] * 3


# --- processes ----------------------------------------------------------------------------------


def test_4_it_kills_nobody_outside(house) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        done = house.attempt(
            f"for it in {os.getpid()} {other.pid} {os.getppid()}; do kill -9 $it && echo {FOUND}; "
            "done; trap '' TERM; kill -TERM -1; echo alone"
        )
        alive = other.poll() is None
        other.kill()

    assert alive
    assert done.out == "alone\n"


def test_5_a_fork_bomb_is_held_and_told_apart_from_a_failure(house) -> None:
    bomb = (
        "import os, time\n"
        "for n in range(5000):\n"
        "    try:\n"
        "        if os.fork() == 0: time.sleep(30); os._exit(0)\n"
        "    except BlockingIOError: break\n"
        "time.sleep(30)"
    )

    done = tries(house, bomb, pids=100, timeout=50)

    assert (done.exit_code, done.cut) == (None, Cut.PIDS)


def test_6_nothing_stays_behind_and_what_it_edits_late_has_no_effect(house) -> None:
    edits = "while true; do date > file; date > $OUT/late; sleep 0.01; done"

    done = house.attempt(f"(setsid sh -c '{edits}; # 86130' >/dev/null 2>&1 &); echo done")

    assert (done.exit_code, done.out) == (0, "done\n")
    first = (house.checkout / "file").read_text()
    time.sleep(0.1)
    assert (house.checkout / "file").read_text() == first == "as it was\n"
    assert not living("86130")


def living(mark: str) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += [place.parent.name] if mark.encode() in place.read_bytes() else []
    return found


def test_11_it_looks_into_no_process_of_ours(house) -> None:
    done = tries(
        house,
        "import ctypes, errno, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        f"for pid in ({os.getpid()}, {os.getppid()}):\n"
        "    for name in ('mem', 'environ', 'root', 'fd'):\n"
        "        if os.access(f'/proc/{pid}/{name}', os.R_OK): print('reached', pid, name)\n"
        "for request, pid in ((16, os.getppid()), (16, 1), (0, 0)):\n"
        "    if libc.ptrace(request, pid, 0, 0) == 0: print('reached ptrace')\n"
        "    assert ctypes.get_errno() == errno.EPERM, ctypes.get_errno()\n"
        "print('refused')",
    )

    assert (done.exit_code, done.out) == (0, "refused\n"), done.err


def test_14_neither_our_environment_nor_our_descriptors_are_there(house, monkeypatch) -> None:
    monkeypatch.setenv("SECRET_KEY", FOUND)
    inherited = os.dup(0)
    os.set_inheritable(inherited, True)

    done = house.attempt(
        "env; cat /proc/1/environ /proc/1/cmdline /proc/self/environ; ls -l /proc/1/fd; "
        "for it in /proc/self/fd/*; do echo fd ${it##*/}; done"
    )

    os.close(inherited)
    assert FOUND not in done.out
    assert "--setenv" not in done.out
    descriptors = {int(it.split()[1]) for it in done.out.splitlines() if it.startswith("fd ")}
    assert descriptors <= {0, 1, 2, 3}


def test_16_it_gets_no_namespace_of_its_own(house) -> None:
    done = house.attempt(
        f"for it in -U -Ur -m -p -n; do unshare $it true && echo {FOUND}; done 2>&1; "
        "unshare -U true; echo $?"
    )

    assert FOUND not in done.out
    assert done.out.splitlines()[-1] == "1"


# --- what it can use up -------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [1, 5], ids=["7a", "7b"])
def test_7_memory_is_bounded_whoever_takes_it(house, processes) -> None:
    eats = (
        "import os, time\n"
        f"for n in range({processes - 1}):\n"
        "    if os.fork() == 0: break\n"
        f"it = bytearray({1000 // processes} << 20); time.sleep(30)"
    )

    done = tries(house, eats, memory_mb=512)

    assert (done.exit_code, done.cut) == (None, Cut.MEMORY)


def test_8_all_that_it_can_fill_is_bounded_together(house) -> None:
    before = shutil.disk_usage(house.place).free

    done = house.attempt(
        "for it in . $OUT $SCRATCH $HOME /tmp /var/tmp /dev/shm /dev /run /; do "
        "head -c 50000000 /dev/zero > $it/big; done 2>/dev/null; "
        "du -sbc . $OUT $SCRATCH $HOME /tmp/big /var/tmp/big /dev/shm | tail -n 1; exit 1",
        scratch_mb=32,
    )

    assert done.cut is Cut.SCRATCH
    assert int(done.out.split()[0]) < 33 << 20
    assert before - shutil.disk_usage(house.place).free < 200 << 20


def test_12_half_a_gigabyte_of_output_costs_little(house) -> None:
    before = peak_memory()

    done = house.attempt("echo first; head -c 500000000 /dev/zero; echo last", timeout=120)

    assert done.out.startswith("first\n")
    assert done.out.endswith("last\n")
    assert len(done.out) < 2_500_000
    assert peak_memory() - before < 50_000


def peak_memory() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(it for it in lines if it.startswith("VmHWM")).split()[1])


def test_attacks_at_the_same_time_do_not_meet(house, tmp_path) -> None:
    others = [a_gatehouse(tmp_path / str(n)) for n in range(4)]
    seen: list[Attempt] = []
    command = "echo 1 >> count; echo x > /tmp/x; ls /tmp/x /scratch | wc -l; cat count; sleep 0.3"
    threads = [
        threading.Thread(target=lambda it=it: seen.append(it.attempt(command))) for it in others
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({it.out for it in seen}) == 1
    assert [it.exit_code for it in seen] == [0] * 4
