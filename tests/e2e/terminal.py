"""A `lockgate` command at a real terminal, and a person who reads and types."""

import os
import pty
import select
import subprocess
import sys
import time

from tests.e2e.orchestra import PATIENCE, Orchestra


class Terminal:
    """A program that has a real terminal."""

    def __init__(self, it: Orchestra, *argv: str) -> None:
        ours, theirs = pty.openpty()
        self.fd, self.said = ours, ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lockgate", *argv],
            env=it.environ | {"TERM": "xterm", "SHELL": "/bin/sh"},
            cwd=it.root,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def until(self, wanted: str) -> None:
        last = time.monotonic() + PATIENCE
        while wanted not in self.said:
            if time.monotonic() > last:
                raise AssertionError(self.said)
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.said += os.read(self.fd, 65536).decode()
                except OSError:  # the other side has been closed
                    raise AssertionError(self.said) from None

    def type(self, line: str) -> None:
        os.write(self.fd, f"{line}\n".encode())

    def code(self) -> int:
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        os.close(self.fd)
