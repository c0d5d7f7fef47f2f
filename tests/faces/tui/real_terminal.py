"""A real terminal: a window of a tmux of its own, with keys that are sent and a screen to read."""

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

PATIENCE = float(os.environ.get("PATIENCE", "90"))  # seconds, on a busy machine


class Tmux:
    """One window with a shell in it; nothing of the user's own tmux is touched."""

    def __init__(self, environ: Mapping[str, str], where: Path, place: Path) -> None:
        self._where, self._socket = where, place / "tmux.sock"
        kept = {**environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", "PS1": "$ "}
        # Without what says another size than the window has.
        self._environ = {it: kept[it] for it in kept if it not in {"COLUMNS", "LINES", "TMUX"}}
        self.run("new-session", "-d", "-x", "100", "-y", "30", "-s", "it", "sh")

    def run(self, *argv: str) -> str:
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", "-S", str(self._socket), *argv],
            env=self._environ,
            cwd=self._where,
            capture_output=True,
            check=False,
        )
        return done.stdout.decode()

    def close(self) -> None:
        self.run("kill-server")

    def keys(self, *keys: str) -> None:
        self.run("send-keys", "-t", "it", *keys)

    @property
    def text(self) -> str:
        return self.run("capture-pane", "-p", "-t", "it")

    def sees(self, *texts: str) -> None:
        self.until(lambda: all(it in self.text for it in texts), str(texts))

    def until(self, holds: Callable[[], object], what: str = "") -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, f"{what}\n{self.text}"
            time.sleep(0.05)

    def children(self) -> list[int]:
        """The programs that the shell in it has started."""
        return children_of(int(self.run("list-panes", "-t", "it", "-F", "#{pane_pid}")))


def children_of(pid: int) -> list[int]:
    told = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(it) for it in told.split()]
