"""`lockgate demo`: the rules at work on a throw-away repository, told by the real commands."""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import click

from lockgate.bootstrap import App, make_demo_repository, open_app
from lockgate.core.effects import SpawnAgent
from lockgate.core.model import Role, TaskId
from lockgate.errors import LockgateError
from lockgate.faces.cli.demo_story import tell

PAUSE = 0.4


@click.command()
@click.option("--keep", is_flag=True, help="Leave the repository and the state there afterwards.")
@click.option("--fast", is_flag=True, help="No pauses; there are none in a pipe anyway.")
def demo(*, keep: bool, fast: bool) -> None:
    """Show how tasks move: what is refused and why, what a crash does, what a human is asked.

    Needs git only: no agent, no key, no network. Your own repositories and state are not touched.
    """
    place = Path(tempfile.mkdtemp(prefix="lockgate-demo-"))
    slow = sys.stdout.isatty() and not fast
    try:
        with _inside(place):
            make_demo_repository(place / "repository")
            os.chdir(place / "repository")
            tell(Stage(place, PAUSE if slow else 0.0))
    finally:
        if keep:
            click.echo(f"\nkept: {place} (LOCKGATE_HOME={place / 'home'})")
        else:
            shutil.rmtree(place, ignore_errors=True)


@contextmanager
def _inside(place: Path) -> Generator[None]:
    """Another home and another directory, until the story is told."""
    before, directory = dict(os.environ), Path.cwd()
    os.environ.pop("LOCKGATE_TOKEN", None)
    os.environ.pop("LOCKGATE_DATABASE", None)
    os.environ["LOCKGATE_HOME"] = str(place / "home")
    try:
        yield
    finally:
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(before)


class StoryBroke(LockgateError):
    def __init__(self, why: str) -> None:
        fix = "run it again with --keep, and report what you see"
        super().__init__("the demo did not go as it should", why=why, fix=fix)


class Stage:
    """Where the story happens: says things, runs commands for real, and plays the orchestrator."""

    def __init__(self, place: Path, pause: float) -> None:
        self.place = place
        self.pause = pause

    def say(self, text: str) -> None:
        time.sleep(self.pause)
        click.echo(f"\n{text}")

    def require(self, claim: str, *, holds: bool) -> None:
        if not holds:
            raise StoryBroke(f"it is not so that {claim}")
        self.say(f"Checked: {claim}.")

    def lockgate(self, *argv: str, token: str = "", exits: int = 0) -> None:
        """One command as a user or an agent types it; the story ends where it exits otherwise."""
        from lockgate.faces.cli.app import run

        told = " ".join(("lockgate", *(f"'{it}'" if " " in it else it for it in argv)))
        click.echo(f"  $ {told}")
        os.environ["LOCKGATE_TOKEN"] = token
        code = run(list(argv))
        del os.environ["LOCKGATE_TOKEN"]
        sys.stdout.flush()
        if code != exits:
            raise StoryBroke(f"`{told}` exited {code}, not {exits}")
        time.sleep(self.pause)

    def app(self) -> App:
        return open_app()

    def task(self, branch: str) -> TaskId:
        return self.app().tasks.find(f"{branch}-")

    def begin(self, id: TaskId, role: Role) -> str:
        """The session that the task waits for, as the orchestrator begins it; its token."""
        app = self.app()
        wanted = [it.effect for it in app.store.pending_effects(id, 100)]
        spawn = [it for it in wanted if isinstance(it, SpawnAgent) and it.role is role][-1]
        token = f"demo-{id}-{role}-{spawn.generation}"
        app.coordinator.session_started(id, spawn, token)
        return token

    def dies(self, id: TaskId) -> str:
        """The worker's session ends; where the task stands then."""
        app = self.app()
        return app.coordinator.session_ended(app.store.sessions(id)[-1].id).status

    def write(self, id: TaskId, text: str) -> None:
        path = self.place / "home" / "tasks" / id / "TASK.md"
        path.write_text(f"{path.read_text(encoding='utf-8')}\n{text}", encoding="utf-8")
        click.echo("  TASK.md: " + " / ".join(text.strip().splitlines()))

    def rewrite(self, id: TaskId, old: str, new: str) -> None:
        path = self.place / "home" / "tasks" / id / "TASK.md"
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        click.echo(f"  TASK.md: {old.strip()} becomes {new.strip()}")
