"""A task's branch in the user's repository: set only where it is absent, behind, or ours."""

from pathlib import Path

from lockgate.adapters.workspaces.hardened_git import (
    commit_at,
    fetched,
    git,
    is_ancestor,
    told,
    words_of,
)
from lockgate.adapters.workspaces.repositories import PUBLISHED, Repositories, writing
from lockgate.core.model import Task
from lockgate.ports import Project

_REBASING = ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START")


def published(repos: Repositories, project: Project, task: Task, commit: str) -> str | None:
    """Why the branch was not set; None where it now is at the commit."""
    theirs, branch = Path(project.common_dir), f"refs/heads/{task.branch}"
    with writing(repos):
        tip = commit_at(theirs, branch)
        if tip == commit:
            return None
        if why := _in_use(theirs, task.branch) or _copied(theirs, repos.judge, commit):
            return why
        mine = f"{PUBLISHED}/{task.id}"
        ours = tip is None or commit_at(repos.judge, f"{mine}/{tip}")
        if tip and not ours and not is_ancestor(theirs, tip, commit):
            return f"{task.branch} has work that is not part of the change: {tip}"
        told(f"{task.branch} was not set", repos.judge, "update-ref", f"{mine}/{commit}", commit)
        message = f"lockgate: task {task.id}"
        expected = tip or "0" * len(commit)
        done = git(theirs, "update-ref", "-m", message, branch, commit, expected)
        return None if done.code == 0 else f"{task.branch} was not set: {words_of(done)}"


def _copied(theirs: Path, judge: Path, commit: str) -> str | None:
    done = fetched(theirs, judge, commit)
    return None if done.code == 0 else f"{commit} was not copied: {words_of(done)}"


def _in_use(theirs: Path, branch: str) -> str | None:
    """Moving a branch under a work tree would show the user changes that they never made."""
    asked = told(f"{branch} was not set", theirs, "worktree", "list", "--porcelain", "-z")
    for tree in asked.split("\0\0"):
        lines = tree.split("\0")
        if f"branch refs/heads/{branch}" in lines:
            return f"{branch} is checked out in {lines[0].removeprefix('worktree ')}"
    for git_dir in (theirs, *(theirs / "worktrees").glob("*")):
        if any(_names(git_dir / it, branch) for it in _REBASING):
            return f"{branch} is being rebased or bisected in a work tree of {theirs}"
    return None


def _names(file: Path, branch: str) -> bool:
    try:
        said = file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return False
    return said.removeprefix("refs/heads/") == branch
