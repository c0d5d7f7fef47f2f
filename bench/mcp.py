"""How soon `lockgate mcp` answers its client, beside a Python that does nothing."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from bench.harness import AtMost, Measure, clocked, interleave, main, say
from bench.home import make_home

ROUNDS = 40
LIVES = 7  # orchestrators of which the first answer is clocked
BARE = "python -c pass"
WARM, FIRST = "lockgate mcp, first answer", "lockgate mcp, first of an orchestrator's life"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}


def bench(where: Path) -> list[Measure]:
    say("\nMCP")
    app, _ = make_home(where)
    app.store.close()
    it = _Home(where)
    with it.orchestrated():
        found = interleave({WARM: clocked(it.answer), BARE: clocked(it.nothing)}, ROUNDS)
    lives = []
    for _ in range(LIVES):
        with it.orchestrated():
            lives.append(clocked(it.answer)())
    bare = found[BARE]
    return [
        Measure(name=WARM, ours=found[WARM], peer=BARE, theirs=bare, target=AtMost(9)),
        Measure(name=FIRST, ours=median(lives), peer=BARE, theirs=bare, target=AtMost(150)),
        Measure(name=WARM, ours=found[WARM], peer="150 ms", theirs=0.15, target=AtMost(1)),
        Measure(name=FIRST, ours=median(lives), peer="2.5 s", theirs=2.5, target=AtMost(1)),
    ]


class _Home:
    def __init__(self, where: Path) -> None:
        self.where = where
        self.environment = os.environ | {"LOCKGATE_HOME": str(where / "home")}

    @contextmanager
    def orchestrated(self) -> Iterator[None]:
        argv = [sys.executable, "-m", "lockgate", "up"]
        with subprocess.Popen(
            argv, cwd=self.where / "repository", env=self.environment, stderr=subprocess.DEVNULL
        ) as process:
            while not (self.where / "home" / "door.sock").exists():
                time.sleep(0.01)
            try:
                yield
            finally:
                process.terminate()

    def answer(self) -> None:
        """From its start to the first message that comes back."""
        argv = [sys.executable, "-m", "lockgate", "mcp"]
        with subprocess.Popen(
            argv,
            cwd=self.where / "repository",
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            said, _ = process.communicate(json.dumps(HELLO).encode() + b"\n", timeout=60)
        if b'"serverInfo"' not in said:
            raise RuntimeError(f"no answer: {said!r}")

    def nothing(self) -> None:
        subprocess.run([sys.executable, "-c", "pass"], check=True)


if __name__ == "__main__":
    main(bench)
