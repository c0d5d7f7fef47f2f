"""Parts of the sandbox by themselves: the filter, control groups, and what agents get of them."""

import os
import shlex
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from lockgate.adapters.sandbox import Box, boxed, cgroup, run_boxed, trouble, usage
from lockgate.adapters.sandbox.scratch import MOUNTING, room_for, sweep_rooms
from lockgate.adapters.sandbox.seccomp import MACHINES, program_for

WHY_NOT = trouble()
NEEDS_BOX = pytest.mark.skipif(WHY_NOT is not None, reason=f"needs bubblewrap: {WHY_NOT}")
ALLOWED, REFUSED, UNKNOWN, KILLED = 0x7FFF0000, 0x50001, 0x50026, 0x80000000


# --- the filter ---------------------------------------------------------------------------------


def verdict(program: bytes, audit: int, number: int, *arguments: int) -> int:
    """What the kernel would say to a call: the filter's program, step by step."""
    values = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("<IIQ6Q", number, audit, 0, *values)
    steps = list(struct.iter_unpack("<HBBI", program))
    place = word = 0
    while True:
        code, if_so, if_not, value = steps[place]
        place += 1
        if code == 0x20:
            (word,) = struct.unpack_from("<I", data, value)
        elif code == 0x06:
            return int(value)
        else:
            taken = word == value if code == 0x15 else bool(word & value)
            place += if_so if taken else if_not


@pytest.mark.parametrize("machine", MACHINES)
def test_on_each_machine_the_filter_refuses_its_list_and_allows_the_rest(machine) -> None:
    known, program = MACHINES[machine], program_for(machine)
    clone, open_socket, ioctl = known.special

    def said(number: int, *arguments: int) -> int:
        return verdict(program, known.audit, number, *arguments)

    refused = {number for number in range(500) if said(number) != ALLOWED}
    assert refused == {*known.denied, 435}
    assert {said(number) for number in known.denied} == {REFUSED}
    assert said(435) == UNKNOWN
    assert said(clone, 0x11) == ALLOWED
    assert said(clone, 0x10000011) == REFUSED
    assert [said(open_socket, family) for family in (1, 2, 10, 16)] == [ALLOWED] * 4
    assert [said(open_socket, family) for family in (17, 31, 38, 40)] == [REFUSED] * 4
    assert said(ioctl, 0, 0x5401) == ALLOWED
    assert [said(ioctl, 0, it) for it in (0x5412, 0x541C, 0x100005412)] == [REFUSED] * 3
    assert verdict(program, 0x40000003, 1) == KILLED


def test_calls_by_the_other_table_of_a_machine_are_unknown() -> None:
    known = MACHINES["x86_64"]

    assert verdict(program_for("x86_64"), known.audit, 0x40000000 + 101) == UNKNOWN


def test_a_machine_that_is_not_known_has_no_filter() -> None:
    assert program_for("riscv64") == b""


@NEEDS_BOX
@pytest.mark.skipif(os.uname().machine not in MACHINES, reason="needs a machine with a filter")
def test_agents_have_the_filter_too_and_no_descriptor_of_it() -> None:
    script = (
        "import socket, os\n"
        "try: socket.socket(40, socket.SOCK_STREAM)\n"
        "except PermissionError: print('refused')\n"
        "print(len(os.listdir('/proc/self/fd')))"
    )
    command = f"{shlex.quote(sys.executable)} -I -S -c {shlex.quote(script)}"

    done = run_boxed(boxed(Box(mounts=(), directory="/", env={}), ("/bin/sh", "-c", command)))

    assert done.out.split() == ["refused", "4"]
    assert (
        "Seccomp:\t2"
        in run_boxed(boxed(Box(mounts=(), directory="/", env={}), ("cat", "/proc/self/status"))).out
    )


# --- control groups, on a directory that stands for the kernel's ---------------------------------


def a_tree(tmp_path: Path, handed: str) -> Path:
    (tmp_path / "user.slice" / "app.scope").mkdir(parents=True)
    for place in (tmp_path, tmp_path / "user.slice"):
        (place / "cgroup.subtree_control").write_text(handed)
    return tmp_path


@pytest.mark.parametrize(
    ("own", "handed", "found"),
    [
        ("/user.slice/app.scope", "cpu memory pids\n", "user.slice"),
        ("/", "memory pids\n", "."),
        ("/user.slice/app.scope", "memory\n", None),
        ("/gone/away", "memory pids\n", None),
        (None, "memory pids\n", None),
    ],
)
def test_a_group_is_made_beside_our_own_where_limits_are_handed_down(
    tmp_path, own, handed, found
) -> None:
    root = a_tree(tmp_path, handed)

    assert cgroup.parent_of(root, own) == (None if found is None else root / found)


def test_where_no_group_can_be_made_there_is_none(tmp_path) -> None:
    with cgroup.group(None, 1, 1) as none, cgroup.group(tmp_path / "gone", 1, 1) as neither:
        assert (none, neither) == (None, None)


def test_what_the_kernel_counted_is_read(tmp_path) -> None:
    (tmp_path / "memory.events").write_text("low 0\noom 1\noom_kill 7\n")
    (tmp_path / "pids.events").write_text("max 0\n")

    assert cgroup.ran_out_of_memory(tmp_path)
    assert not cgroup.ran_out_of_processes(tmp_path)
    assert not cgroup.ran_out_of_memory(tmp_path / "gone")


def test_the_kernels_own_groups_are_used_or_not_but_never_an_error() -> None:
    parent = cgroup.where()

    with cgroup.group(parent, 1 << 30, 64) as made:
        assert (made is None) is (parent is None)
        assert made is None or (made / "cgroup.procs").exists()
    assert made is None or not made.exists()


def test_a_room_enters_its_group_before_it_is_made() -> None:
    entering = MOUNTING.index("cgroup.procs")

    assert entering < MOUNTING.index("mount")


# --- how much is used ---------------------------------------------------------------------------


def test_the_processes_of_a_namespace_are_found_with_what_they_use() -> None:
    mine = usage.processes_in(usage.namespace_of(os.getpid()))

    assert os.getpid() in mine
    assert usage.threads_of((os.getpid(),)) >= 1
    assert usage.memory_of((os.getpid(),), 1 << 60) > 1 << 20
    assert 1 << 20 < usage.memory_of((os.getpid(),), 0) < 1 << 40


def test_a_process_that_is_gone_uses_nothing() -> None:
    gone = (1 << 22) + 1

    assert (usage.namespace_of(gone), usage.threads_of((gone,))) == (0, 0)
    assert usage.memory_of((gone,), 0) == 0


def test_the_room_of_a_killed_process_is_swept_and_the_one_of_a_living_one_stays(tmp_path) -> None:
    checkout = tmp_path / "runs/t1/1-tests"
    checkout.mkdir(parents=True)
    ended = subprocess.Popen(["true"])
    ended.wait()
    gone = checkout.parent / f".room-{ended.pid}-abc"
    gone.mkdir()

    with room_for(checkout, 0, ()) as room:
        sweep_rooms(tmp_path / "runs")

        assert not gone.exists()
        assert room.place.is_dir()
