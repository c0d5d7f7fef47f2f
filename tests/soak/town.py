"""A whole home with several projects: real programs, scripted agents, and faults drawn by a seed.

Tasks are made while kills, full disks, restarts and the user's own git commands go on. Where a task
needs a human, the human does what `lockgate status` says. Then the faults end.
"""

import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lockgate.bootstrap import App, open_app
from lockgate.core.lifecycle.needs import Need
from lockgate.core.model.task import Status, Task, TaskId
from lockgate.errors import LockgateError
from lockgate.ports import TaskFilter
from lockgate.services.task.callers import HUMAN
from lockgate.services.task.tasks import NewTask
from tests.agreeing import agree
from tests.e2e.orchestra import COMPLETE, hands_off, worker
from tests.scenarios.world import git

S = Status
ENDED = frozenset({S.DONE, S.CANCELLED})
CONFIG = """\
[project]
agent = "scripted"
slots = 4
[sandbox]
level = "none"
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "! grep -rq bad n-*"
attempts = 1
[limits]
escalation_threshold = 5
[merge]
mode = "auto"
"""
DISK = 256  # megabytes of the home, where it may have a disk of its own
AT_ONCE = 12  # tasks that have not ended; then the next is made
ANSWERS = 2.0  # seconds between two looks of the human
PATIENCE = 600.0  # seconds without any event after which the home is said to stand still
MANY = 100_000
Fault = Callable[[], None]


def _plays(branch: str, kind: str) -> str:
    def session(text: str, *more: str, when: str = "") -> str:
        steps = (f'{{ write = "n-{branch}", text = "{text}\\n" }}', *more)
        return worker(f'{{ shell = "echo . >> ~/../../../started-{branch}" }}', *steps, when=when)

    good = session("good", hands_off(branch), COMPLETE)
    match kind:
        case "mends":
            return session("bad", hands_off(f"{branch} bad"), COMPLETE) + good
        case "crashes":
            return session("half", "{ crash = 1 }") + good
        case "exits":
            return session("good", hands_off(branch))
        case "slow":
            return session("good", "{ sleep = 1.5 }", hands_off(branch), COMPLETE)
        case _:
            return good


KINDS = ("good", "good", "good", "mends", "crashes", "exits", "slow")


@dataclass
class Town:
    place: Path
    tasks: int
    projects: int
    seed: int
    faults: Counter[str] = field(default_factory=Counter[str])
    process: subprocess.Popen[bytes] | None = None
    mounted: bool = False
    acts: dict[str, Fault] = field(default_factory=dict[str, Fault])

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)  # noqa: S311 - a seed is to be repeated
        self.home = self.place / "home"
        self.home.mkdir(parents=True)
        size = ("-o", f"size={DISK}m,mode=700")
        mount = ("mount", "-t", "tmpfs", *size, "none", str(self.home))
        self.mounted = os.getuid() == 0 and _done(mount)
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.place),
            "LOCKGATE_HOME": str(self.home),
            "LOCKGATE_NO_ORCHESTRATOR": "1",
        }
        branches = [f"t{number}" for number in range(self.tasks)]
        self.roots = [self.place / f"project {number}" for number in range(self.projects)]
        self.where = {it: self.chance.choice(self.roots) for it in branches}
        for root in self.roots:
            self._made(root, [it for it in branches if self.where[it] == root])
        self.app: App = open_app(self.environ)
        self.known = {root: self.app.projects.here(root) for root in self.roots}
        self.acts = {
            "orchestrator killed": self._killed,
            "orchestrator restarted": self._restarted,
            "runner or agent killed": self._agent_killed,
            "user commits": self._user_commits,
            "user collects garbage": lambda: self._user("gc", "--quiet", "--prune=now"),
            "user packs": lambda: self._user("repack", "-a", "-d", "--quiet"),
            "user packs refs": lambda: self._user("pack-refs", "--all"),
            "user makes a branch": self._user_branches,
        }
        if self.mounted:
            self.acts["disk full"] = self._disk_full

    def _made(self, root: Path, branches: list[str]) -> None:
        (root / ".lockgate" / "agents").mkdir(parents=True)
        git(root, "init", "--quiet", "--initial-branch=main")
        (root / ".lockgate" / "config.toml").write_text(CONFIG)
        for it in branches:
            script = _plays(it, self.chance.choice(KINDS))
            (root / ".lockgate" / "agents" / f"{it}.toml").write_text(script)
        (root / "n-0").write_text("good\n")
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "--message", "Start")
        agree(root, self.environ)

    # Its course.

    def lives(self, seconds: float) -> None:
        """Until all tasks have ended; faults end after so many seconds, or when few are left."""
        began = looked = moved = time.monotonic()
        left, head, storm = list(self.where), -1, 1.0
        self.up()
        while left or self.open_tasks():
            now = time.monotonic()
            self._tended()
            if left and len(self.open_tasks()) < AT_ONCE and self._created(left[0]):
                left.pop(0)
            wild = now - began < seconds and (left or len(self.open_tasks()) > self.tasks // 4)
            if wild and now - began > storm:
                storm += self.chance.uniform(0.2, 2.0)
                self._fault()
            if now - looked > ANSWERS:
                looked = now
                self._human_answers()
            if self.app.store.head() != head:
                head, moved = self.app.store.head(), now
            assert now - moved < PATIENCE, self.story()
            time.sleep(0.05)

    def up(self) -> None:
        with (self.place / "orchestrator.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "lockgate", "up"],
                env=self.environ,
                cwd=self.place,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def down(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)

    def close(self) -> None:
        self.down()
        with suppress(LockgateError):
            for session in self.app.store.sessions_alive():
                self.app.sessions.end(session.id, 0.0)
        self.app.store.close()
        if self.mounted:
            _done(("umount", str(self.home))) or _done(("umount", "--lazy", str(self.home)))

    def _tended(self) -> None:
        if self.process is None or self.process.poll() is not None:
            self.up()

    def _created(self, branch: str) -> bool:
        asked = NewTask(branch=branch, summary=f"Do {branch}")
        project = self.known[self.where[branch]]
        with suppress(LockgateError):  # the disk may be full: again in the next round
            known = self.app.store.on_branch(project.id, branch)
            return bool(known or self.app.tasks.create(project, asked, HUMAN))
        return False

    # Faults.

    def _fault(self) -> None:
        name = self.chance.choice(list(self.acts))
        self.faults[name] += 1
        self.acts[name]()

    def _killed(self) -> None:
        assert self.process
        self.process.kill()
        self.process.wait()

    def _restarted(self) -> None:
        self.down()

    def _agent_killed(self) -> None:
        """One process of a session: its runner, its agent, or what that one runs."""
        found = [pid for pid, line in self.processes().items() if "/sessions/" in line]
        if found:
            with suppress(ProcessLookupError):
                os.kill(self.chance.choice(found), signal.SIGKILL)

    def _disk_full(self) -> None:
        """For a while nothing can be written in the home."""
        ballast = self.home / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
        time.sleep(self.chance.uniform(0.2, 2.0))
        ballast.unlink()

    def _user(self, *argv: str) -> None:
        root = self.chance.choice(self.roots)
        _done(("git", "-C", str(root), *argv))

    def _user_commits(self) -> None:
        root = self.chance.choice(self.roots)
        name = f"by-user-{sum(self.faults.values())}"
        (root / name).write_text("mine\n")
        if not _done(("git", "-C", str(root), "add", name)):
            return
        _done(("git", "-C", str(root), "commit", "--quiet", "--message", name, "--", name))

    def _user_branches(self) -> None:
        self._user("branch", "--force", f"mine-{self.chance.randrange(5)}", "main")

    # The human, who does what `status` says.

    def _human_answers(self) -> None:
        with suppress(LockgateError):
            for need in self.needs():
                command = next((it.command for it in need.actions if _usable(it.command)), "")
                if command and need.task:
                    self.faults["needs answered"] += 1
                    words = shlex.split(command)[1:]
                    self.lockgate(*("go on" if it == "TEXT" else it for it in words))
                    return

    def lockgate(self, *argv: str, root: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "lockgate", *argv],
            env=self.environ,
            cwd=root or self.roots[0],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    # What is there.

    def needs(self) -> tuple[Need, ...]:
        return self.app.boards.inbox().needs

    def all_tasks(self) -> list[Task]:
        return list(self.app.store.page(TaskFilter(), None, MANY).tasks)

    def open_tasks(self) -> list[TaskId]:
        with suppress(LockgateError):
            return [it.id for it in self.all_tasks() if it.status not in ENDED]
        return [TaskId("not known")]

    def processes(self) -> Mapping[int, str]:
        """Those that have this home in their command or environment, but for the orchestrator."""
        ours = {os.getpid(), self.process.pid if self.process else 0}
        found: dict[int, str] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) not in ours:
                line = _read(entry / "cmdline")
                if str(self.home) in line or str(self.home) in _read(entry / "environ"):
                    found[int(entry.name)] = line
        return found

    def story(self) -> str:
        """The open tasks with their newest events, and what the orchestrator said last."""
        events = self.app.store.events(None, max(0, self.app.store.head() - 60), 60)
        lines = [f"{it.seq} {it.task} {it.type} {str(dict(it.data))[:200]}" for it in events]
        log = (self.place / "orchestrator.log").read_text(errors="replace")[-3000:]
        needs = [f"need: {it.ask}" for it in self.needs()]
        states = [f"{it.id} {it.status}" for it in self.all_tasks() if it.status not in ENDED]
        return "\n".join(["stands still", *states, *needs, *lines, "orchestrator:", log])


def _usable(command: str) -> bool:
    """A command that looks alone answers nothing; at a terminal nobody sits here."""
    words = command.split()
    looks = {"diff", "show", "why", "logs", "peek", "status", "doctor", "takeover", "cancel"}
    return words[:1] == ["lockgate"] and not looks & set(words)


def _done(argv: tuple[str, ...]) -> bool:
    who = {"GIT_AUTHOR_NAME": "U", "GIT_AUTHOR_EMAIL": "u@localhost"}
    who |= {"GIT_COMMITTER_NAME": "U", "GIT_COMMITTER_EMAIL": "u@localhost"}
    done = subprocess.run(argv, capture_output=True, env={**os.environ, **who}, check=False)
    return done.returncode == 0


def _read(path: Path) -> str:
    try:
        return path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
