"""A real agent in a sandbox without a way out, with the fake model beside it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lockgate.adapters.harnesses import Registry
from lockgate.core.config.settings import Settings
from lockgate.core.model.agents import AGENT_HOME, WORKSPACE, Ending, Exit, Job, Launch, Report
from lockgate.core.model.task import Role
from tests.e2e.agents.fake_model import PORT

HERE = Path(__file__).parent
AGENTS = Path(os.environ.get("LOCKGATE_AGENTS") or Path.home() / ".cache" / "lockgate-agents")
PATH = f"{AGENTS / 'bin'}:{os.environ.get('PATH', os.defpath)}"
SETTINGS = Settings(formula="none", gates=())
URL = f"http://127.0.0.1:{PORT}"
WALL_SECONDS = 20.0
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt")
HOOK = f"{AGENT_HOME}/hook"
# Blocks the first stop, as `lockgate checkpoint --done` does without a Handoff, and no other.
HOOK_TEXT = """\
#!/bin/sh
cat >> "$HOME/hook.log"
echo >> "$HOME/hook.log"
if mkdir "$HOME/hook.blocked" 2>/dev/null; then
    echo '{"decision": "block", "reason": "no Handoff yet"}'
fi
"""

Answers = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One run: what the harness read from it, and what the model was asked."""

    report: Report
    exit: Exit
    output: str
    requests: tuple[dict[str, Any], ...]

    def asked(self) -> str:
        """Everything that the model was sent."""
        return json.dumps([it["body"] for it in self.requests], ensure_ascii=False)


@dataclass(slots=True)
class Stage:
    root: Path
    agent: str
    environ: dict[str, str]
    registry: Registry = field(default_factory=lambda: Registry(search=PATH))

    def __post_init__(self) -> None:
        for name in ("home", "workspace", "fake"):
            (self.root / name).mkdir(parents=True)
        hook = self.home / "hook"
        hook.write_text(HOOK_TEXT, encoding="utf-8")
        hook.chmod(0o755)
        self.write("CLAUDE.md", "The house word is marzipan.\n")
        self.write("AGENTS.md", "The house word is marzipan.\n")
        self.git("init", "--quiet", "--initial-branch=fix")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=Begin")
        self.write(".git/info/exclude", "/TASK.md\n")
        self.write("TASK.md", "## Context\nSay hello.\n")

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    def write(self, name: str, text: str) -> None:
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def text(self, name: str) -> str:
        return (self.workspace / name).read_text(encoding="utf-8")

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=Test", "-c", "user.email=test@localhost")
        argv = ("git", "-C", str(self.workspace), *who, *words)
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    def hooked(self) -> list[dict[str, Any]]:
        log = self.home / "hook.log"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [json.loads(line) for line in lines if line]

    def play(self, answers: Answers, *, wall: float = WALL_SECONDS, **job: Any) -> Played:
        """No answers at all means that the model is down."""
        about = {"prompt": "Say hello.", "role": Role.WORKER, "task": "t", "session": "s"} | job
        launch = self.registry.launch(self.agent, SETTINGS, Job(environ=self.environ, **about))
        self._put(launch)
        script, log = self.root / "fake/script.json", self.root / "fake/log"
        script.write_text(json.dumps(answers), encoding="utf-8")
        log.write_text("", encoding="utf-8")
        output, exit = _run(self._boxed(launch), launch.stdin, wall)
        return Played(
            report=self.registry.read(self.agent, SETTINGS, output, exit),
            exit=exit,
            output=output,
            requests=tuple(map(json.loads, log.read_text(encoding="utf-8").splitlines())),
        )

    def _put(self, launch: Launch) -> None:
        for name, text in {**launch.kept, **launch.files}.items():
            path = self.home / name
            if name in launch.files or not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")

    def _boxed(self, launch: Launch) -> list[str]:
        env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": AGENT_HOME,
            "TMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
            "LANG": "C.UTF-8",
            **launch.env,
        }
        shown = (*_toolchain(), str(HERE), *self.registry.paths(self.agent, SETTINGS))
        return [
            *("bwrap", "--unshare-net", "--unshare-pid", "--unshare-ipc", "--die-with-parent"),
            *(word for path in SYSTEM for word in ("--ro-bind-try", path, path)),
            *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),  # noqa: S108 - as above
            *(word for path in shown for word in ("--ro-bind", path, path)),
            *("--bind", str(self.workspace), WORKSPACE, "--bind", str(self.home), AGENT_HOME),
            *("--bind", str(self.root / "fake"), "/fake", "--chdir", WORKSPACE, "--clearenv"),
            *(word for name, value in env.items() for word in ("--setenv", name, value)),
            *("--", sys.executable, str(HERE / "fake_model.py")),
            *("/fake/script.json", "/fake/log", "--", *launch.argv),
        ]


def _toolchain() -> Iterator[str]:
    """Python, for the fake model."""
    for path in dict.fromkeys((sys.prefix, sys.base_prefix, os.path.realpath(sys.base_prefix))):
        if not path.startswith("/usr"):
            yield path


def _run(argv: list[str], stdin: str | None, wall: float) -> tuple[str, Exit]:
    begin = time.monotonic()
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    ending = Ending.EXITED
    try:
        raw, _ = process.communicate((stdin or "").encode(), timeout=wall)
    except subprocess.TimeoutExpired:
        ending = Ending.WALL_CLOCK
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        raw, _ = process.communicate()
    code = process.returncode if ending is Ending.EXITED else None
    return raw.decode(errors="replace"), Exit(
        ending=ending, code=code, seconds=time.monotonic() - begin
    )
