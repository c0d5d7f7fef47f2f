"""The programs that enclose another one and then become it, told apart from what they become."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lockgate.adapters.sandbox import launch
from lockgate.adapters.sandbox.enter import users_of
from lockgate.adapters.sandbox.layered import How, Layered, make_room
from lockgate.adapters.sandbox.probe import can_keep_overlay
from tests.adapters.gatehouse import NEEDS_BUBBLEWRAP

pytestmark = pytest.mark.measured

# Starts the program instead of becoming it, so that what came before is measured.
STARTS = """\
import os, subprocess, sys
from lockgate.adapters.sandbox import {module}
os.execv = lambda _, argv: sys.exit(subprocess.run(argv, close_fds=False).returncode)
{module}.main(sys.argv[1], sys.argv[2], sys.argv[3:])
"""
SAYS = """\
import os, sys
print(os.read(8, 9).decode(), sys.argv[1:])
os.write(9, b"proved")
if "--seccomp" in sys.argv:
    print(os.read(201, 99).decode())
"""
CONNECTS = "import socket, sys; socket.socket(socket.AF_UNIX).connect('\\0' + sys.argv[-1])"


def program(module: str, *argv: str) -> list[str]:
    return [sys.executable, "-c", STARTS.format(module=module), *argv]


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


# --- a set-up layer -----------------------------------------------------------------------------


@pytest.fixture
def layered(tmp_path: Path) -> Layered:
    if not can_keep_overlay(tmp_path):
        pytest.skip("needs a disk that keeps what is written over a layer")
    it = Layered(layer=tmp_path / "layer", room=tmp_path / "room", folders=("d",), how=How.OVERLAY)
    (it.layer / "d").mkdir(parents=True)
    (it.layer / "d" / "file").write_text("before\n")
    make_room(it)
    return it


def enters(it: Layered, script: str) -> subprocess.Popen[str]:
    room, layer = str(it.room), str(it.layer)
    argv = program("enter", room, layer, "/bin/sh", "-c", f'cd "{room}/tree/d" && {script}')
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@NEEDS_BUBBLEWRAP
def test_what_is_written_over_a_layer_is_kept_in_the_room_and_the_layer_stays(layered) -> None:
    first = enters(layered, "cat file && echo after > file").communicate(timeout=60)
    second = enters(layered, "cat file").communicate(timeout=60)

    assert (first, second) == (("before\n", ""), ("after\n", ""))
    assert (layered.layer / "d" / "file").read_text() == "before\n"
    assert (layered.written / "d" / "file").read_text() == "after\n"
    assert not os.path.ismount(layered.room / "tree")


@NEEDS_BUBBLEWRAP
def test_who_comes_while_another_is_in_sees_what_that_one_writes(layered) -> None:
    users = str(layered.room / "users")
    waits = "until test -e told; do sleep 0.01; done; cat told"
    first = enters(layered, f"echo one > mine; {waits}")
    until((layered.written / "d" / "mine").exists)
    inside = list(users_of(users))

    second = enters(layered, "cat mine; echo two > told").communicate(timeout=60)

    assert inside == [first.pid]
    assert (second, first.communicate(timeout=60)) == (("one\n", ""), ("two\n", ""))
    assert list(users_of(users)) == []
    assert list((layered.room / "users").iterdir()) == [], "those who left are forgotten"


@NEEDS_BUBBLEWRAP
def test_a_layer_that_is_gone_is_said(layered) -> None:
    (layered.layer / "d" / "file").unlink()
    (layered.layer / "d").rmdir()
    layered.layer.rmdir()

    started = enters(layered, "true")

    assert "the set-up layer cannot be seen" in started.communicate(timeout=60)[1]
    assert started.returncode == 1


# --- a box --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("filter", "more"), [("", []), ("7879", ["--seccomp", "201"])])
def test_the_box_gets_its_pipes_and_its_filter_by_descriptors(filter, more) -> None:
    status, proof, answer = os.pipe(), os.pipe(), os.pipe()
    os.write(proof[1], b"challenge")
    words = ["--json-status-fd", str(status[1])]
    asked = [*words, "--proof", str(proof[0]), str(answer[1]), "--die"]
    argv = program("launch", launch.OPEN, filter, sys.executable, "-c", SAYS, *asked)

    done = subprocess.run(
        argv,
        pass_fds=(status[1], proof[0], answer[1]),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    said = f"challenge {[*words, *more, '--die']}\n{'xy' if filter else ''}"
    assert (done.stdout.rstrip("\n"), done.stderr) == (said.rstrip("\n"), "")
    assert os.read(answer[0], 99) == b"proved"
    for end in (*status, *proof, *answer):
        os.close(end)


def test_nothing_is_started_for_a_process_that_has_ended() -> None:
    reads, writes = os.pipe()
    os.close(reads)
    argv = program("launch", launch.OPEN, "", "/bin/echo", "--json-status-fd", str(writes), "x")

    done = subprocess.run(
        argv, pass_fds=(writes,), capture_output=True, text=True, timeout=60, check=False
    )
    os.close(writes)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "the process that started this has ended\n"


def test_abstract_sockets_of_others_are_closed_or_nothing_is_started() -> None:
    reads, writes = os.pipe()
    name = f"lockgate-test-{os.getpid()}"
    argv = [sys.executable, "-c", CONNECTS, "--json-status-fd", str(writes), name]

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{name}")
        server.listen()
        open_, scoped = (
            subprocess.run(
                program("launch", how, "", *argv),
                pass_fds=(writes,),
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            for how in (launch.OPEN, launch.SCOPED)
        )
    os.close(reads)
    os.close(writes)

    assert open_.returncode == 0, open_.stderr
    assert scoped.returncode == 1
    why = "Operation not permitted" if launch.scoping() else "Landlock refused"
    assert why in scoped.stderr
