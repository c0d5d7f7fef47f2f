"""The system calls that nothing enclosed may make, as a program for the kernel's filter.

Everything else is allowed: this is a second wall, for what the namespaces leave open.
"""

import errno
import functools
import os
import struct
import sys

from msgspec import Struct

# classic BPF: load a word, jump if equal, jump if any of these bits, return
LOAD, EQUAL, ANY, RETURN = 0x20, 0x15, 0x45, 0x06
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # where they lie in what is filtered
ALLOW, ERROR, KILL = 0x7FFF0000, 0x00050000, 0x80000000

CLONE_NEWUSER = 0x10000000
X32 = 0x40000000  # calls of x86_64's other table
FAMILIES = (17, 31, 38, 40)  # packet, bluetooth, alg, vsock: not bound to a network namespace
REQUESTS = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: type into somebody else's terminal


class Machine(Struct, frozen=True, kw_only=True):
    """The calls by their numbers; `special` are clone, socket, ioctl."""

    audit: int
    denied: tuple[int, ...]
    special: tuple[int, int, int]


# The same everywhere: io_uring, the newer calls that mount.
_SHARED = (425, 426, 427, 428, 429, 430, 431, 432, 433, 442)
_CLONE3 = 435

# ptrace, process_vm_readv, process_vm_writev; mount, umount2, pivot_root; unshare, setns; keyctl,
# add_key, request_key; bpf, perf_event_open, userfaultfd; kexec_load, kexec_file_load,
# init_module, finit_module, delete_module; open_by_handle_at
MACHINES = {
    "x86_64": Machine(
        audit=0xC000003E,
        denied=(
            *(101, 310, 311, 165, 166, 155, 272, 308, 250, 248, 249),
            *(321, 298, 323, 246, 320, 175, 313, 176, 304, *_SHARED),
        ),
        special=(56, 41, 16),
    ),
    "aarch64": Machine(
        audit=0xC00000B7,
        denied=(
            *(117, 270, 271, 40, 39, 41, 97, 268, 219, 217, 218),
            *(280, 241, 282, 104, 294, 105, 273, 106, 265, *_SHARED),
        ),
        special=(220, 198, 29),
    ),
}


def program_for(machine: str) -> bytes:
    """Empty where the machine is not among those known."""
    known = MACHINES.get(machine)
    if known is None or sys.byteorder != "little":
        return b""
    denied = (_if_equal(number, _refuse(errno.EPERM)) for number in known.denied)
    steps = (
        _load(ARCHITECTURE),
        _step(EQUAL, known.audit, 1, 0),
        _step(RETURN, KILL),
        _load(NUMBER),
        *(_step(ANY, X32, 0, 1), _refuse(errno.ENOSYS)),
        *denied,
        _if_equal(_CLONE3, _refuse(errno.ENOSYS)),  # its flags lie in memory; clone is tried next
        *_arguments(known),
        _step(RETURN, ALLOW),
    )
    return b"".join(steps)


@functools.cache
def our_program() -> bytes:
    return program_for(os.uname().machine)


def _arguments(known: Machine) -> tuple[bytes, ...]:
    clone, socket, ioctl = known.special
    no_user = _step(ANY, CLONE_NEWUSER, 0, 1) + _refuse(errno.EPERM)
    families = b"".join(_if_equal(it, _refuse(errno.EPERM)) for it in FAMILIES)
    requests = b"".join(_if_equal(it, _refuse(errno.EPERM)) for it in REQUESTS)
    return (
        _if_equal(clone, _load(_argument(0)) + no_user + _step(RETURN, ALLOW)),
        _if_equal(socket, _load(_argument(0)) + families + _step(RETURN, ALLOW)),
        _if_equal(ioctl, _load(_argument(1)) + requests + _step(RETURN, ALLOW)),
    )


def _argument(index: int) -> int:
    """Its lower half, which is all that these calls look at."""
    return ARGUMENTS + 8 * index


def _if_equal(value: int, then: bytes) -> bytes:
    return _step(EQUAL, value, 0, len(then) // 8) + then


def _refuse(error: int) -> bytes:
    return _step(RETURN, ERROR | error)


def _load(offset: int) -> bytes:
    return _step(LOAD, offset)


def _step(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_so, if_not, value)
