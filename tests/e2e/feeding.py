"""Processes around a feed: readers that write down what they get, writers that commit."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# Follows until the last event came; each item is a line of its file: a seq, or what else it was.
READER = """\
import sys, json
from lockgate.faces.feed_client import follow
last, every, out = int(sys.argv[1]), sys.argv[2] == "every", open(sys.argv[3], "w", buffering=1)
for item in follow(since=0, flags=("--every",) if every else ()):
    if "event" in item:
        out.write(f"{item['event']['seq']}\\n")
        if item["row"]["id"] != item["event"]["task"]:
            out.write("wrong row\\n")
        if item["event"]["seq"] >= last:
            break
    else:
        out.write(f"{next(iter(item))}\\n")
out.write("end\\n")
"""
# Commits so many events, some at once, and wakes the orchestrator as a command does.
WRITER = """\
import os, sys
from msgspec.structs import replace
from lockgate.bootstrap import open_app
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.events import SummaryChanged
from lockgate.errors import Unavailable
from lockgate.faces import client
it, id, times, at_once = open_app(), sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for n in range(0, times, at_once):
    task = it.store.load(id)
    events = tuple(SummaryChanged(f"{m} of {id}") for m in range(n, min(n + at_once, times)))
    while True:
        try:
            it.store.commit(Decision(replace(task, rev=task.rev + 1), events))
            break
        except Unavailable:  # others had the database for too long
            pass
    client.call(["wake"])
"""


@dataclass
class Reader:
    """A process that follows; `said` is what it wrote down."""

    process: subprocess.Popen[bytes]
    file: Path

    @property
    def said(self) -> list[str]:
        return self.file.read_text().splitlines() if self.file.exists() else []

    @property
    def seqs(self) -> list[int]:
        return [int(it) for it in self.said if it.isdecimal()]

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def reads(home: Path, file: Path, last: int, *, every: bool = True) -> Reader:
    argv = [sys.executable, "-c", READER, str(last), "every" if every else "", str(file)]
    return Reader(_started(argv, home), file)


def writes(home: Path, task: str, times: int, at_once: int = 1) -> subprocess.Popen[bytes]:
    return _started([sys.executable, "-c", WRITER, task, str(times), str(at_once)], home)


def _started(argv: list[str], home: Path) -> subprocess.Popen[bytes]:
    environ = os.environ | {"LOCKGATE_HOME": str(home), "LOCKGATE_NO_ORCHESTRATOR": "1"}
    return subprocess.Popen(argv, env=environ)


def lines_of(connection_file: Path) -> list[dict[str, object]]:
    return [json.loads(it) for it in connection_file.read_text().splitlines()]
