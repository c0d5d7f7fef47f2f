"""Becomes bwrap for a session: `launch.py FILTER PROGRAM… --json-status-fd N --proof IN OUT -- …`.

Run by path and alone, between the session's runner and bwrap.
"""

import os
import select
import sys

FILTER = 201  # a descriptor above those that a runner hands over itself
PIPES = (8, 9)  # what a shell can name


def main(filter: str, argv: list[str]) -> None:
    told = select.poll()
    told.register(int(argv[argv.index("--json-status-fd") + 1]), 0)
    if told.poll(0):
        sys.exit("whoever started this is gone")
    for target in PIPES:
        os.dup2(int(argv[argv.index("--proof") + 1]), target)
        os.close(int(argv.pop(argv.index("--proof") + 1)))
    place = argv.index("--proof")
    argv[place : place + 1] = _filtered(bytes.fromhex(filter))
    os.execv(argv[0], argv)  # noqa: S606 - what the runner was told to start


def _filtered(program: bytes) -> list[str]:
    if not program:
        return []
    made = os.memfd_create("filter")
    os.write(made, program)
    os.lseek(made, 0, os.SEEK_SET)
    os.dup2(made, FILTER)
    return ["--seccomp", str(FILTER)]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
