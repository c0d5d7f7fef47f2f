"""A program that runs beside us until we end: started again where it dies, ended with us.

It gets a pipe as its stdin and ends when that closes, so that it never outlives us.
"""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from lockgate.adapters.run import Process, ended_within, start_piped
from lockgate.errors import LockgateError

FIRST, LONGEST = 1.0, 60.0  # seconds before it is started again
LASTED = 30.0  # seconds after which its death is no sign of a bad start
LEAVES = 3.0


class KeptChild:
    """What it says goes to `report`, line by line."""

    def __init__(self, argv: Sequence[str], report: Callable[[str], None]) -> None:
        self._argv, self._report = tuple(argv), report
        self._ending = threading.Event()
        self._process: Process | None = None
        self._thread = threading.Thread(target=self._keep, name="kept child", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process and process.poll() is None else None

    def close(self) -> None:
        self._ending.set()
        process = self._process
        if process is not None:
            if process.stdin:
                with suppress(OSError):
                    process.stdin.close()
            if not ended_within(process, LEAVES):
                process.kill()
        self._thread.join(LEAVES)

    def _keep(self) -> None:
        pause = FIRST
        while not self._ending.is_set():
            lasted = self._run()
            if self._ending.is_set():
                return
            pause = FIRST if lasted else min(pause * 2, LONGEST)
            self._report(f"it is started again in {pause:.0f} s")
            self._ending.wait(pause)

    def _run(self) -> bool:
        """Whether it lasted for a while."""
        try:
            process = start_piped(self._argv, None, (), environment=os.environ)
        except LockgateError as error:
            self._report(f"{error} ({error.fix})")
            return False
        self._process = process
        timer = threading.Event()
        clock = threading.Timer(LASTED, timer.set)
        clock.start()
        try:
            for line in process.stderr or ():
                self._report(line.decode("utf-8", "replace").rstrip())
            process.wait()
        finally:
            clock.cancel()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    with suppress(OSError):
                        stream.close()
        return timer.is_set()
