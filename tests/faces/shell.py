"""A repository and a home of its own, with Lockgate run there: as a program, or in this process."""

import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from lockgate.bootstrap import App, open_app
from lockgate.core.lifecycle.decision import SpawnAgent
from lockgate.core.lifecycle.sessions import Place
from lockgate.core.model.task import Role, Status, TaskId
from lockgate.faces.cli import output
from lockgate.faces.cli.app import run
from tests.agreeing import agree

CONFIG = """\
[project]
agent = "scripted"

[gates]
formula = "none"

[[gates.list]]
name = "review"
type = "parallel_review"
dimensions = ["general"]
"""
HANDOFF = "\n## Handoff\n\nDONE: the redirect\n"
PASS = "\n## Review\n\nPASS\n\nGood.\n"
FAIL = "\n## Review\n\nFAIL\n\nIt loops.\n"


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def facts(self) -> Any:  # whatever JSON can hold
        return json.loads(self.out)

    @property
    def why(self) -> str:
        """The whole complaint, which must have its three parts on stderr and nothing on stdout."""
        assert self.code in {1, 2}, self
        assert self.out == "", self
        what, colon, rest = self.err.partition(": ")
        why, newline, fix = rest.rstrip("\n").rpartition("\n  ")
        assert all((what.strip(), colon, why.strip(), newline, fix.strip())), self
        return self.err


class Shell:
    """`program` starts the real thing; `run` calls it in this process, for the big tables."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.repo = place / "repo"
        self.home = place / "home"
        self.user = place / "user"
        self.user.mkdir(parents=True, exist_ok=True)
        self.alone = True  # no command starts an orchestrator

    # --- Lockgate -------------------------------------------------------------------------------

    def environment(self, token: str | None = None, **more: str) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("LOCKGATE_", "GIT_"))
        }
        ours = {
            "HOME": str(self.user),
            "LOCKGATE_HOME": str(self.home),
            "GIT_CONFIG_NOSYSTEM": "1",
        } | ({"LOCKGATE_NO_ORCHESTRATOR": "1"} if self.alone else {})
        return kept | ours | ({} if token is None else {"LOCKGATE_TOKEN": token}) | more

    def program(
        self,
        *argv: str | bytes,
        token: str | None = None,
        stdin: bytes = b"",
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        seconds: float = 110,
    ) -> Answer:
        done = subprocess.run(
            [sys.executable, "-m", "lockgate", *argv],
            cwd=cwd or self.repo,
            env=self.environment(token, **(env or {})),
            input=stdin,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())

    def run(
        self,
        *argv: str,
        token: str | None = None,
        stdin: bytes = b"",
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
    ) -> Answer:
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            for name in [it for it in os.environ if it.startswith(("LOCKGATE_", "GIT_"))]:
                patch.delenv(name)
            for name, value in self.environment(token, **(env or {})).items():
                patch.setenv(name, value)
            patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            patch.chdir(cwd or self.repo)
            opened = _remembering(patch)
            code = run(list(argv))
            for app in opened:
                app.store.close()  # as the end of the process does
        return Answer(code, out.getvalue(), err.getvalue())

    def did(self, *argv: str, token: str | None = None, cwd: Path | None = None) -> str:
        """What a command that succeeds prints."""
        answer = self.run(*argv, token=token, cwd=cwd)
        assert answer.code == 0, answer
        return answer.out

    def agree(self, *more: str, cwd: Path | None = None) -> None:
        """To all that the repository asks for, as its user does who has read it."""
        asked = json.loads(self.did("trust", "--show", "--json", *more, cwd=cwd))
        self.did("trust", "--yes", asked["digest"], *more, cwd=cwd)

    def app(self) -> App:
        return open_app(self.environment())

    # --- tasks ----------------------------------------------------------------------------------

    def create(self, branch: str = "fix-login", *more: str) -> TaskId:
        return TaskId(self.did("task", "create", branch, "Fix the login", *more).strip())

    def status(self, id: str) -> Status:
        return Status(self.facts(id)["status"])

    def facts(self, id: str) -> Any:
        return json.loads(self.did("task", "show", id, "--json"))

    def file(self, id: str) -> Path:
        return self.home / "tasks" / id / "TASK.md"

    def write(self, id: str, text: str) -> None:
        file = self.file(id)
        file.write_text(file.read_text(encoding="utf-8") + text, encoding="utf-8")

    def rewrite(self, id: str, old: str, new: str) -> None:
        text = self.file(id).read_text(encoding="utf-8")
        assert old in text
        self.file(id).write_text(text.replace(old, new), encoding="utf-8")

    def begin(self, id: TaskId, role: Role, directory: Path | None = None) -> str:
        """The session that the task waits for, as the orchestrator begins it; its token."""
        app = self.app()
        wanted = [it.effect for it in app.store.pending_effects(id, 100)]
        spawn = [it for it in wanted if isinstance(it, SpawnAgent) and it.role is role][-1]
        token = f"token-{id}-{role}-{spawn.generation}"
        where = Place(None if directory is None else str(directory))
        app.attendance.session_started(id, spawn, token, where)
        app.store.close()
        return token

    def dies(self, id: TaskId) -> None:
        app = self.app()
        app.attendance.session_ended(app.store.sessions(id)[-1].id)
        app.store.close()

    def bring(self, id: TaskId, status: Status) -> None:
        """A task that is pending, by the commands that lead it there."""
        for argv, text in ROADS[status]:
            if text:
                self.write(id, text)
            self.did("task", "update", id, "--status", *argv.split())
        if status is Status.PAUSED_FOR_INTERVENTION:
            app = self.app()
            app.runner.run(id, lambda _task: "the tests are red")
            app.store.close()

    # --- what is there --------------------------------------------------------------------------

    def git(self, *argv: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.repo), *argv],
            env=self.environment(),
            capture_output=True,
            check=True,
        )
        return done.stdout.decode()

    def traces(self) -> object:
        """All that a command could have changed: rows, the tasks' files, the repository."""
        return self.rows(), files_of(self.home), files_of(self.repo)

    def rows(self) -> dict[str, list[tuple[object, ...]]]:
        if not (self.home / "lockgate.db").exists():
            return {}
        with closing(sqlite3.connect(self.home / "lockgate.db")) as db:
            return {
                name: db.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall()  # noqa: S608
                for name in tables_of(db)
            }


ROADS: dict[Status, tuple[tuple[str, str], ...]] = {
    Status.PENDING: (),
    Status.CLARIFICATION: (("clarification", ""),),
    Status.WORKING: (("working", ""),),
    Status.AGENT_REVIEW: (("working", ""), ("agent-review", HANDOFF)),
    Status.REVIEWING: (("working", ""), ("agent-review", HANDOFF), ("reviewing", PASS)),
    Status.STUCK: (("working", ""), ("stuck", "")),
    Status.PAUSED_FOR_INTERVENTION: (("working", ""),),
    Status.DONE: (
        ("working", ""),
        ("agent-review", HANDOFF),
        ("reviewing", PASS),
        ("done", ""),
    ),
    Status.CANCELLED: (("cancelled", ""),),
}


def _remembering(patch: pytest.MonkeyPatch) -> list[App]:
    """Every app that commands open from now on."""
    opened: list[App] = []
    really: Callable[[], App] = vars(output)["open_app"]  # as a test may have replaced it

    def remember() -> App:
        opened.append(really())
        return opened[-1]

    patch.setattr(output, "open_app", remember)
    return opened


def tables_of(db: sqlite3.Connection) -> list[str]:
    found = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return sorted(name for (name,) in found)


def files_of(root: Path) -> dict[str, str]:
    """Every file but the database's own and git's caches, by its digest; of others, their kind."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name.startswith("lockgate.db") or name in {".git/index", "logs"}:
            continue
        if path.is_symlink():
            found[name] = f"link to {path.readlink()}"
        elif path.is_file():
            found[name] = sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = "not a file"
    return found


def make_repository(root: Path, config: str | None = CONFIG, branch: str = "main") -> None:
    """One commit on the base branch, and a branch `fix-login` that is in it already."""
    shell = Shell(root.parent)
    shell.repo = root
    root.mkdir(parents=True)
    shell.git("init", "--quiet", "--template=", f"--initial-branch={branch}")
    shell.git("config", "user.name", "Test")
    shell.git("config", "user.email", "test@localhost")
    (root / "app.py").write_text("print('hello')\n", encoding="utf-8")
    if config is not None:
        commit_config(shell, config)
    else:
        shell.git("add", "app.py")
        shell.git("commit", "--quiet", "--message", "A small application")
    shell.git("branch", "fix-login")


def commit_config(shell: Shell, config: str) -> None:
    """As its user, who agrees to what it asks for."""
    (shell.repo / ".lockgate").mkdir(exist_ok=True)
    (shell.repo / ".lockgate" / "config.toml").write_text(config, encoding="utf-8")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "--message", "Configure")
    agree(shell.repo, shell.environment())


def a_shell(place: Path, template: Path) -> Shell:
    """A shell whose repository is a copy of the template, which costs less than git's own time."""
    shell = Shell(place)
    shutil.copytree(template, shell.repo, symlinks=True)
    return shell
