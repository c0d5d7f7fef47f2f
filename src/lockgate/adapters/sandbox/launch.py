"""Becomes what makes a box: `launch.py SCOPED FILTER PROGRAM… --json-status-fd N [--proof I O] …`.

Run by path and alone. It does what only a process can do to itself before it is enclosed.
"""

import functools
import os
import select
import sys

FILTER = 201  # a descriptor above those that a runner hands over itself
PIPES = (8, 9)  # what a shell can name
SCOPED, OPEN = "scoped", "open"

# Landlock: the same numbers on every machine. Its sixth version can close abstract sockets.
CREATE_RULESET, RESTRICT_SELF = 444, 446
ASK_FOR_VERSION, ABSTRACT_UNIX_SOCKETS, NEEDED_VERSION = 1, 1, 6
PR_SET_NO_NEW_PRIVS = 38


@functools.cache
def scoping() -> bool:
    """Whether this kernel can keep a process from the abstract sockets of all but its own."""
    import ctypes  # noqa: PLC0415 - two milliseconds, which most commands do not need

    asked = ctypes.CDLL(None).syscall(CREATE_RULESET, None, 0, ASK_FOR_VERSION)
    return int(asked) >= NEEDED_VERSION


def main(scoped: str, filter: str, argv: list[str]) -> None:
    told = argv.index("--json-status-fd") + 2
    listening = select.poll()
    listening.register(int(argv[told - 1]), 0)
    if listening.poll(0):
        sys.exit("the process that started this has ended")
    if scoped == SCOPED:
        _close_abstract_sockets()
    if argv[told] == "--proof":
        _hand_on(argv[told + 1 : told + 3])
        argv[told : told + 3] = _filtered(bytes.fromhex(filter))
    os.execv(argv[0], argv)  # noqa: S606 - what the runner was told to start


def _close_abstract_sockets() -> None:
    """For us and all that we start. It handles no files, so that a box can still be mounted."""
    import ctypes  # noqa: PLC0415 - two milliseconds, which most commands do not need

    libc = ctypes.CDLL(None, use_errno=True)
    wanted = (ctypes.c_uint64 * 3)(0, 0, ABSTRACT_UNIX_SOCKETS)
    ruleset = libc.syscall(CREATE_RULESET, ctypes.byref(wanted), ctypes.sizeof(wanted), 0)
    if os.geteuid() != 0:
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if ruleset < 0 or libc.syscall(RESTRICT_SELF, ruleset, 0) != 0:
        sys.exit(f"Landlock refused: {os.strerror(ctypes.get_errno())}")
    os.close(ruleset)


def _hand_on(descriptors: list[str]) -> None:
    for descriptor, target in zip(map(int, descriptors), PIPES, strict=True):
        os.dup2(descriptor, target)
        os.close(descriptor)


def _filtered(program: bytes) -> list[str]:
    if not program:
        return []
    made = os.memfd_create("filter")
    os.write(made, program)
    os.lseek(made, 0, os.SEEK_SET)
    os.dup2(made, FILTER)
    return ["--seccomp", str(FILTER)]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
