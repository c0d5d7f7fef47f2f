"""What must be true of a home when its tasks have ended, whatever happened on the way."""

import subprocess
import time
from collections import Counter
from pathlib import Path

from lockgate.core.model.task import Status
from tests.soak.town import ENDED, Town

PATIENCE = 30.0


def problems(town: Town) -> list[str]:
    """While the orchestrator is still up; then it is stopped, and nothing may be left."""
    _until_settled(town)
    return [*_chain(town), *_tasks(town), *_repositories(town), *_landed(town), *_left(town)]


def _until_settled(town: Town) -> None:
    """The last workspaces and sessions go after the last task has ended."""
    last = time.monotonic() + PATIENCE
    while time.monotonic() < last and any(
        town.app.store.pending_effects(it.id, 1) for it in town.all_tasks()
    ):
        time.sleep(0.1)


def _chain(town: Town) -> list[str]:
    broken = town.app.store.first_broken_event()
    return [] if broken is None else [f"the chain of events is broken at {broken}"]


def _tasks(town: Town) -> list[str]:
    found: list[str] = []
    tasks = town.all_tasks()
    if len(tasks) != town.tasks:
        found.append(f"there are {len(tasks)} tasks of {town.tasks}")
    open_ = [it for it in tasks if it.status not in ENDED]
    needed = {it.task for it in town.needs() if any(act.command for act in it.actions)}
    found += [
        f"task {it.id} is {it.status}, and nobody is told" for it in open_ if it.id not in needed
    ]
    for task in tasks:
        types = Counter(it.type for it in town.app.views.all_events(task.id))
        landed = types["change.landed"]
        if landed != (task.status is Status.DONE):
            found.append(f"task {task.id} is {task.status}, and landed {landed} times")
        lines = town.place / f"started-{task.branch}"
        starts = len(lines.read_text().splitlines()) if lines.exists() else 0
        sessions = len(town.app.store.sessions(task.id))
        if starts > sessions:
            found.append(
                f"task {task.id} has {sessions} sessions, and {starts} agents were started"
            )
    return found


def _repositories(town: Town) -> list[str]:
    """The user's, and those of the home."""
    found: list[str] = []
    repos = [it / ".git" for it in town.roots]
    repos += [it for it in (town.home / "repos").glob("*/*.git") if it.is_dir()]
    for it in repos:
        argv = ("git", "-c", "safe.directory=*", "--git-dir", str(it), "fsck", "--no-dangling")
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        bad = [line for line in (done.stdout + done.stderr).splitlines() if _is_bad(line)]
        if done.returncode or bad:
            found.append(f"git fsck of {it}: {done.returncode} {bad[:3]}")
    return found


def _is_bad(line: str) -> bool:
    return line.startswith(("missing", "broken", "error", "fatal"))


def _landed(town: Town) -> list[str]:
    """Each commit on a target is the user's or has its evidence, and each done task is there."""
    found: list[str] = []
    for root, project in town.known.items():
        shown = _git(root, "log", "--first-parent", "--format=%H %an %s", "main").splitlines()
        landed = [line for line in shown[:-1] if "by-user-" not in line]  # the last is the start
        for line in landed:
            verified = town.app.queue.verify(project, line.partition(" ")[0])
            if verified is None or verified.problem:
                found.append(f"{line} is not verified: {verified and verified.problem}")
        newest = [town.lockgate("verify", line.partition(" ")[0], root=root) for line in landed[:1]]
        found += [f"lockgate verify: {it.stdout}{it.stderr}" for it in newest if it.returncode]
        found += _missing(town, root)
    return found


def _missing(town: Town, root: Path) -> list[str]:
    names = set(_git(root, "ls-tree", "--name-only", "main").splitlines())
    done = [it for it in town.all_tasks() if it.status is Status.DONE]
    here = [it for it in done if town.where[it.branch] == root]
    gone = [it for it in here if f"n-{it.branch}" not in names]
    return [f"task {it.id} is done, and its file is not on main" for it in gone]


def _left(town: Town) -> list[str]:
    """After all is down: processes, mounts, and directories that nothing needs."""
    town.down()
    last = time.monotonic() + PATIENCE
    while town.processes() and time.monotonic() < last:
        time.sleep(0.1)
    found = [f"a process is left: {it}" for it in town.processes().values()]
    mounts = [it.split()[1] for it in Path("/proc/mounts").read_text().splitlines()]
    inside = f"{town.home}/".replace(" ", "\\040")
    found += [f"a mount is left: {it}" for it in mounts if it.startswith(inside)]
    ended = {it.id for it in town.all_tasks() if it.status in ENDED}
    for top in ("runs", "workspaces", "reviews"):
        base = town.home / top
        for path in base.iterdir() if base.is_dir() else ():
            if path.name in ended and (top != "runs" or any(path.iterdir())):
                found.append(f"{top}/{path.name} is left: {[it.name for it in path.iterdir()][:5]}")
    scratch = [it for it in town.home.rglob(".new-*") if it.parent.exists()]
    return [*found, *(f"{it.relative_to(town.home)} is left" for it in scratch)]


def _git(root: Path, *argv: str) -> str:
    done = subprocess.run(("git", "-C", str(root), *argv), check=True, capture_output=True)
    return done.stdout.decode()
