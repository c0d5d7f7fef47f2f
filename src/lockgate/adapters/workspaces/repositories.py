"""base.git, which lends its objects to every clone, and judge.git, which no agent ever sees."""

import os
import secrets
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.workspaces.files import locked, remove
from lockgate.adapters.workspaces.git import commit_at, fetched, git, told, words_of
from lockgate.core.model.task import Pinned
from lockgate.errors import Refused, Unavailable
from lockgate.ports import Candidate, Project

# A repository of ours, written as the few files that it is: git would start a program for each.


# All may read what a sandbox shows, whatever the umask: as root another uid reads it.
SHARED = "[core]\n\tsharedRepository = 0644\n[receive]\n\tdenyNonFastForwards = true\n"
_FOLDERS = ("objects", "objects/info", "refs")  # git makes the others where it wants them
_LONG_NAME = 64  # of a commit in a repository whose objects are named by SHA-256
_EXECUTABLE = 0o100


def make_repository(git_dir: Path, commit: str, settings: str, *, bare: bool) -> None:
    """For objects that are named as this commit is, with no ref yet."""
    git_dir.mkdir(parents=True)
    for folder in _FOLDERS:
        (git_dir / folder).mkdir()
    set_ref(git_dir, "HEAD", "ref: refs/heads/main")
    text = _configuration(git_dir / "HEAD", bare=bare, long=len(commit) == _LONG_NAME)
    (git_dir / "config").write_bytes(os.fsencode(text + settings))


def open_to_all(git_dir: Path) -> None:
    """What is in a new repository that is shared; git itself does so with what it adds."""
    for place in (git_dir, *git_dir.rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)


def set_ref(git_dir: Path, name: str, value: str) -> None:
    """To a commit, or to `ref: ` and another; only while nobody else uses the repository."""
    if any(part in {"", ".", ".."} for part in name.split("/")):
        raise ValueError(f"not the name of a ref: {name!r}")
    place = git_dir / name
    if ref_at(git_dir, name) != value:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(os.fsencode(value) + b"\n")


def ref_at(git_dir: Path, name: str) -> str | None:
    """What a ref's own file says; None where git has to be asked."""
    try:
        return (git_dir / name).read_text(encoding="ascii").rstrip("\n")
    except (OSError, UnicodeDecodeError):
        return None


def _configuration(head: Path, *, bare: bool, long: bool) -> str:
    facts = {
        "repositoryformatversion": "1" if long else "0",
        "bare": _word(bare),
        "logAllRefUpdates": _word(not bare),
        "filemode": _word(_keeps_modes(head)),
        "ignorecase": _word(head.with_name("head").exists()),
    }
    lines = "".join(f"\t{name} = {value}\n" for name, value in facts.items())
    return f"[core]\n{lines}" + ("[extensions]\n\tobjectFormat = sha256\n" if long else "")


def _keeps_modes(file: Path) -> bool:
    """Whether the disk does, as git tries it."""
    before = file.stat().st_mode
    file.chmod(before ^ _EXECUTABLE)
    kept = file.stat().st_mode != before
    file.chmod(before)
    return kept


def _word(it: object) -> str:
    return "true" if it else "false"


_CHANGES = "refs/lockgate/changes"  # a task's newest change
_SNAPSHOTS = "refs/lockgate/snapshots"  # every change a task ever had
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
    return commit_at(repos.judge, f"{_CHANGES}/{task}")


def keep(repos: Repositories, task: str, commit: str) -> None:
    """Under `writing`: name it the task's change. No commit that was once one is ever lost."""
    what = f"the work of task {task} was not kept"
    for ref in (f"{_SNAPSHOTS}/{task}/{commit}", f"{_CHANGES}/{task}"):
        told(what, repos.judge, "update-ref", ref, commit)


def borrow(git_dir: Path, objects: str) -> None:
    (git_dir / "objects" / "info" / "alternates").write_bytes(os.fsencode(objects) + b"\n")


def share_shallow(base: Path, git_dir: Path) -> None:
    """Where the user's history is cut off, so is that of all who borrow it."""
    if (base / "shallow").exists():
        (git_dir / "shallow").write_bytes((base / "shallow").read_bytes())


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
