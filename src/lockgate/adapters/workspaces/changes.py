"""What a change consists of, asked of judge.git, where no attribute or driver of its own counts."""

import secrets
from pathlib import Path

from lockgate.adapters.workspaces.hardened_git import commit_at, fetched, git, told, words_of
from lockgate.adapters.workspaces.repositories import Repositories, keep, rules_of, writing
from lockgate.core.model import Task
from lockgate.errors import Unavailable
from lockgate.ports import Change, Project

LARGEST_DIFF = 32 * 1024 * 1024
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color")


def change_of(repos: Repositories, task: Task, commit: str) -> Change:
    """A file that was renamed counts under both its names."""
    what = f"the files of {commit} were not listed"
    names = ("diff", "--name-only", "-z", "--no-renames", *_PLAIN)
    listed = told(what, repos.judge, *names, _fork(repos, task, commit), commit, "--")
    return Change(commit, tuple(listed.split("\0")[:-1]))


def tree_of(repos: Repositories, commit: str) -> str:
    what = f"the tree of {commit} was not found"
    return told(what, repos.judge, "rev-parse", "--verify", f"{commit}^{{tree}}").strip()


def diff_of(repos: Repositories, task: Task, commit: str) -> str:
    """By way of a file, so that a diff of any size costs only so much memory; it says if cut."""
    file = repos.directory / f".diff-{secrets.token_hex(4)}"
    asked = ("diff", *_PLAIN, f"--output={file}", _fork(repos, task, commit), commit, "--")
    try:
        told(f"the diff of {commit} was not made", repos.judge, *asked)
        with file.open("rb") as written:
            text = written.read(LARGEST_DIFF).decode("utf-8", "replace")
        left = file.stat().st_size - LARGEST_DIFF
    finally:
        file.unlink(missing_ok=True)
    return f"{text}\n… {left} bytes of this diff are left out …\n" if left > 0 else text


def adopted(repos: Repositories, project: Project, task: Task) -> str | None:
    """The tip of the task's branch in the user's repository, kept as the task's change."""
    theirs = Path(project.common_dir)
    tip = commit_at(theirs, f"refs/heads/{task.branch}")
    if tip is None:
        return None
    with writing(repos):
        done = fetched(repos.judge, theirs, tip)
        if done.code != 0:
            what = f"branch {task.branch} was not taken from {project.root}"
            raise Unavailable(what, why=words_of(done), fix="do as git says, then try again")
        keep(repos, task.id, tip)
    return tip


def _fork(repos: Repositories, task: Task, commit: str) -> str:
    """Where the change left its base; the base itself where they have nothing in common."""
    base = rules_of(task).base_commit
    return git(repos.judge, "merge-base", base, commit).out.strip() or base
