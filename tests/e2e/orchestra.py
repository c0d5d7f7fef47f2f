"""A real orchestrator as its own process, scripted agents under real runners, a real repository."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from lockgate.adapters.sessions.runner.command_socket import Request, ask
from lockgate.bootstrap import App, open_app
from lockgate.core.model.task import Status, Task, TaskId
from lockgate.services.task.callers import HUMAN
from lockgate.services.task.tasks import NewTask
from tests.adapters.measuring import watched
from tests.agreeing import agree
from tests.scenarios.world import git

PATIENCE = 60.0
SERVER = "-m lockgate.faces.mcp.child"
CONFIG = """\
[project]
agent = "scripted"
slots = 9
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "grep -q good answer.txt"
attempts = 1
[[gates.list]]
name = "review"
type = "parallel_review"
dimensions = ["general"]
[retry]
max_iterations = 9
"""
REVIEWER = """
[[reviewer]]
steps = [
  { shell = "echo reviewer >> ~/starts" },
  { section = "Review", text = "PASS" },
  { signal = "update reviewing" },
]
"""


def worker(*steps: str, when: str = "") -> str:
    """One session of a scripted worker; each start leaves a line in its home."""
    told = f'when = "{when}"\n' if when else ""
    lines = ",\n  ".join(('{ shell = "echo worker >> ~/starts" }', *steps))
    return f"\n[[worker]]\n{told}steps = [\n  {lines},\n]\n"


def writes(text: str) -> str:
    return f'{{ write = "answer.txt", text = "{text}\\n" }}'


def hands_off(text: str) -> str:
    return f'{{ section = "Handoff", text = "DONE: {text}" }}'


COMPLETE = '{ signal = "complete" }'


@dataclass
class Orchestra:
    """One home, one repository; the orchestrator can be started, killed and stopped."""

    place: Path
    config: str = CONFIG
    scripts: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.home, self.root = self.place / "home", self.place / "a repo"
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.place),
            "LOCKGATE_HOME": str(self.home),
            "LOCKGATE_NO_ORCHESTRATOR": "1",
            **watched(),
        }
        self.root.mkdir(parents=True)
        git(self.root, "init", "--quiet", "--initial-branch=main")
        (self.root / ".lockgate" / "agents").mkdir(parents=True)
        (self.root / ".lockgate" / "config.toml").write_text(self.config)
        for branch, script in self.scripts.items():
            (self.root / ".lockgate" / "agents" / f"{branch}.toml").write_text(script)
        (self.root / "answer.txt").write_text("nothing\n")
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", "--message", "one")
        agree(self.root, self.environ)
        self.app: App = open_app(self.environ)

    def create(self, branch: str, **fields: object) -> TaskId:
        asked = NewTask(branch=branch, summary=f"Do {branch}", **fields)  # type: ignore[arg-type]  # a test's own
        return self.app.tasks.create(self.app.projects.here(self.root), asked, HUMAN).id

    def up(self, *more: str) -> None:
        log = (self.place / "orchestrator.log").open("ab")
        with log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "lockgate", "up", *more],
                env=self.environ,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def down(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(PATIENCE)

    def lockgate(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "lockgate", *argv],
            env=self.environ,
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def wake(self) -> None:
        request = Request(token="", cwd="/", stdin="", argv=("wake",))
        ask(str(self.home / "door.sock"), request, patience=5)

    def task(self, id: TaskId) -> Task:
        return self.app.store.load(id)

    def until(self, done: Callable[[], bool], patience: float = PATIENCE) -> None:
        last = time.monotonic() + patience
        while not done():
            if time.monotonic() > last:
                raise AssertionError(self.story())
            time.sleep(0.02)

    def until_status(self, id: TaskId, *statuses: Status) -> Task:
        self.until(lambda: self.task(id).status in statuses)
        return self.task(id)

    def settled(self, id: TaskId) -> bool:
        """Nothing is left to do for it, and nobody works on it."""
        alive = any(it.ended is None for it in self.app.store.sessions(id))
        return not alive and not self.app.store.pending_effects(id, 10)

    def types(self, id: TaskId) -> list[str]:
        return [event.type for event in self.app.views.all_events(id)]

    def starts(self, id: TaskId) -> int:
        """How often a worker's program was really started, by its own word."""
        file = self.home / "homes" / id / "starts"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def left_over(self) -> list[str]:
        """Processes of this home that are still there, but the orchestrator and its MCP server."""
        ours = self.process.pid if self.process else 0
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) not in {ours, os.getpid()}:
                line = _read(entry / "cmdline")
                if SERVER in line and self.process:  # it ends with the orchestrator
                    continue
                if str(self.home) in line or str(self.home) in _read(entry / "environ"):
                    found.append(f"{entry.name} {line}")
        return found

    def story(self) -> str:
        """All that happened, for whoever reads a failure."""
        events = self.app.store.events(None, 0, 1000)
        lines = [f"{it.seq} {it.task} {it.type} {json.dumps(dict(it.data))[:300]}" for it in events]
        log = (self.place / "orchestrator.log").read_text(errors="replace")[-3000:]
        return "\n".join([*lines, "orchestrator:", log, "left over:", *self.left_over()])

    def close(self) -> None:
        self.down()
        for session in self.app.store.sessions_alive():
            self.app.sessions.end(session.id, 0.0)
        self.app.store.close()


def _read(path: Path) -> str:
    try:
        return path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
