"""base.git, which lends its objects to every clone, and judge.git, which no agent ever sees."""

import secrets
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.workspaces.files import locked, remove
from lockgate.adapters.workspaces.git import commit_at, fetched, git, told, words_of
from lockgate.adapters.workspaces.git_files import (
    SHARED,
    borrow,
    make_repository,
    open_to_all,
    ref_at,
    share_shallow,
)
from lockgate.core.model.task import Pinned
from lockgate.errors import Refused, Unavailable
from lockgate.ports import Candidate, Project

CHANGES = "refs/lockgate/changes"  # a task's newest change
SNAPSHOTS = "refs/lockgate/snapshots"  # every change a task ever had
PUBLISHED = "refs/lockgate/published"  # what we have set a task's branch to
_CHECKING = "[transfer]\n\tfsckObjects = true\n"


class Repositories(Struct, frozen=True):
    """Where the two of one project lie."""

    directory: Path

    @property
    def base(self) -> Path:
        return self.directory / "base.git"

    @property
    def judge(self) -> Path:
        return self.directory / "judge.git"

    def kept(self, task: str, commit: str) -> bool:
        """Whether it is, or was, the task's change here."""
        return commit_at(self.judge, f"{SNAPSHOTS}/{task}/{commit}") is not None


def repositories_of(home: Path, project: Project) -> Repositories:
    return Repositories(home / "repos" / project.id)


def task_lock(home: Path, name: str) -> AbstractContextManager[None]:
    """The one holder has the clones of the task, or of the candidate with this name, to itself."""
    return locked(home / "locks" / f"task-{name}")


def rules_of(it: Candidate) -> Pinned:
    if it.rules is None:
        raise Refused(
            f"task {it.name} has no workspace",
            why="it has not been started, so it has no base commit",
            fix=f"lockgate task update {it.name} --status working",
        )
    return it.rules


def up_to_date(home: Path, it: Candidate) -> Repositories:
    """The project's two, made where they are missing, with the candidate's base commit in them."""
    project = it.project
    repos, rules = repositories_of(home, project), rules_of(it)
    if repos.judge.is_dir() and _lends(repos.base, rules):
        return repos
    with writing(repos):
        make_both(repos, project, rules.base_commit)
        if commit_at(repos.base, rules.base_commit) is None:
            _bring(repos.base, project, rules)
        share_shallow(repos.base, repos.judge)
    return repos


def _lends(base: Path, rules: Pinned) -> bool:
    """Whether it has the base commit: its branch is there, or git finds it."""
    shown = ref_at(base, f"refs/heads/{rules.base}")
    return shown == rules.base_commit or commit_at(base, rules.base_commit) is not None


def show_base(repos: Repositories, project: Project, it: Candidate) -> None:
    """base.git, which clones call origin, gets the base branch as the project has it now."""
    branch = f"refs/heads/{rules_of(it).base}"
    with writing(repos):
        done = fetched(repos.base, Path(project.common_dir), f"+{branch}:{branch}")
    if done.code != 0:
        what = f"{rules_of(it).base} was not shown to agents"
        raise Unavailable(what, why=words_of(done), fix="see that the hub has the branch")


@contextmanager
def writing(repos: Repositories) -> Generator[None]:
    """Only we write now, so every lock file that git left here is a dead one's."""
    with locked(repos.directory / "lock"):
        for half in repos.directory.glob(".new-*"):
            remove(half)
        for repository in (repos.base, repos.judge):
            for stale in (*repository.glob("*.lock"), *(repository / "refs").rglob("*.lock")):
                stale.unlink(missing_ok=True)
        yield


def last_change(repos: Repositories, task: str) -> str | None:
    return commit_at(repos.judge, f"{CHANGES}/{task}")


def keep(repos: Repositories, task: str, commit: str) -> None:
    """Under `writing`: name it the task's change. While it lives no earlier one is lost."""
    what = f"the work of task {task} was not kept"
    for ref in (f"{SNAPSHOTS}/{task}/{commit}", f"{CHANGES}/{task}"):
        told(what, repos.judge, "update-ref", ref, commit)


def make_both(repos: Repositories, project: Project, commit: str) -> None:
    """Where they are missing, for objects that are named as this commit is."""
    for place in (repos.base, repos.judge):
        if place.is_dir():
            continue
        new = place.with_name(f".new-{secrets.token_hex(4)}")
        try:
            if place == repos.base:
                make_repository(new, commit, SHARED, bare=True)
            else:
                make_repository(new, commit, SHARED + _CHECKING, bare=True)
                borrow(new, str(repos.base / "objects"))
            open_to_all(new)
            new.rename(place)
        except OSError as error:
            what = f"{place.name} of {project.name} was not made"
            fix = "see that the disk has room, then try again"
            raise Unavailable(what, why=str(error), fix=fix) from error


def _bring(base: Path, project: Project, rules: Pinned) -> None:
    """The branch with its history, or, where it was rewritten since, the commit itself."""
    source, branch = Path(project.common_dir), f"refs/heads/{rules.base}"
    _ask_for_commits(source, project, rules)
    if commit_at(source, branch):
        fetched(base, source, f"+{branch}:{branch}")
        git(base, "symbolic-ref", "HEAD", branch)
    if commit_at(base, rules.base_commit):
        return
    done = fetched(base, source, f"{rules.base_commit}:refs/lockgate/bases/{rules.base_commit}")
    if done.code != 0:
        what = f"commit {rules.base_commit} was not taken from {project.root}"
        fix = "see that the repository still has it: git fsck; then try again"
        raise Unavailable(what, why=words_of(done), fix=fix)


def _ask_for_commits(source: Path, project: Project, rules: Pinned) -> None:
    if commit_at(source, rules.base_commit) or commit_at(source, f"refs/heads/{rules.base}"):
        return
    raise Refused(
        f"no workspace was made for {project.name}",
        why=f"{project.root} has no commit on {rules.base} to start from",
        fix=f"make one on {rules.base}: git commit --allow-empty --message start",
    )
