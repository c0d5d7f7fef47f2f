"""A clone that borrows base.git's objects, built by us where nobody else can write yet."""

import secrets
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EEXIST, ENOTEMPTY
from glob import escape
from pathlib import Path

from lockgate.adapters.run import run
from lockgate.adapters.workspaces.hardened_git import (
    commit_at,
    fetched,
    git,
    is_ancestor,
    object_format,
    told,
    words_of,
)
from lockgate.adapters.workspaces.repositories import (
    Repositories,
    borrow,
    last_change,
    rules_of,
    share_shallow,
)
from lockgate.adapters.workspaces.trees import hand_over, owner_at, remove
from lockgate.core.model import Task
from lockgate.errors import Unavailable
from lockgate.ports import Project

BASE = "/base.git"  # where every sandbox shows it
OURS = ("TASK.md", "task.json")  # Lockgate's own files in a workspace
EXCLUDED = ("/TASK.md", "/task.json", "/.TASK.md.*", "/.task.json.*", ".aider*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be cloned for whom."""

    project: Project
    task: Task
    repos: Repositories
    sandboxed: bool

    @property
    def what(self) -> str:
        return f"no clone was made for task {self.task.id}"

    @property
    def base_commit(self) -> str:
        return rules_of(self.task).base_commit

    @property
    def home(self) -> Path:
        return self.repos.directory.parents[1]

    @property
    def agent(self) -> tuple[int, int]:
        return owner_at(sandboxed=self.sandboxed)

    @property
    def shown_base(self) -> str:
        return BASE if self.sandboxed else str(self.repos.base)


def clone_for_work(order: Order, place: Path) -> None:
    """On the task's branch: at its change, the user's branch or the base commit."""

    def fill(new: Path) -> None:
        git_dir, branch = new / ".git", f"refs/heads/{order.task.branch}"
        told(order.what, git_dir, "update-ref", branch, _start(order, git_dir))
        told(order.what, git_dir, "symbolic-ref", "HEAD", branch)
        told(order.what, git_dir, "read-tree", "-m", "-u", "HEAD", tree=new)
        _leave_ours_alone(order, new)

    build(order, place, fill)


def clone_of_commit(order: Order, place: Path, commit: str) -> None:
    """On no branch, at exactly this commit, with its own copy of what base.git does not have."""

    def fill(new: Path) -> None:
        git_dir = new / ".git"
        copy_commit(order, git_dir, order.repos.judge, commit)
        told(order.what, git_dir, "update-ref", "--no-deref", "HEAD", commit)
        told(order.what, git_dir, "read-tree", "-m", "-u", "HEAD", tree=new)

    build(order, place, fill)


def is_clone_of(place: Path, commit: str) -> bool:
    """Whether this is what `clone_of_commit` has put there; asks no git."""
    try:
        return (place / ".git" / "HEAD").read_text(encoding="ascii").strip() == commit
    except (OSError, UnicodeDecodeError):
        return False


def build(order: Order, place: Path, fill: Callable[[Path], None]) -> None:
    """Filled beside its place, and moved there whole; whoever came first wins."""
    place.parent.mkdir(parents=True, exist_ok=True)
    for half in place.parent.glob(f".new-{escape(place.name)}-????????"):
        remove(half)
    with _half_made(place.with_name(f".new-{place.name}-{secrets.token_hex(4)}")) as new:
        _init(order, new)
        fill(new)
        _finish(order, new)
        try:
            new.rename(place)
        except OSError as error:
            if error.errno not in {EEXIST, ENOTEMPTY}:
                raise Unavailable(order.what, why=str(error), fix="try again") from error


@contextmanager
def _half_made(new: Path) -> Generator[Path]:
    try:
        yield new
    finally:
        remove(new)


def _init(order: Order, new: Path) -> None:
    rules, git_dir = rules_of(order.task), new / ".git"
    kind = f"--object-format={object_format(order.repos.base)}"
    told(order.what, None, "init", "--quiet", "--template=", kind, "--", str(new))
    borrow(git_dir, str(order.repos.base / "objects"))
    share_shallow(order.repos.base, git_dir)
    with (git_dir / "config").open("a", encoding="utf-8", errors="surrogateescape") as config:
        config.write(_configuration(order))
    (git_dir / "info").mkdir(exist_ok=True)
    (git_dir / "info" / "exclude").write_text("".join(f"{it}\n" for it in EXCLUDED))
    origin = "refs/remotes/origin"
    told(order.what, git_dir, "update-ref", f"{origin}/{rules.base}", rules.base_commit)
    told(order.what, git_dir, "symbolic-ref", f"{origin}/HEAD", f"{origin}/{rules.base}")


def _finish(order: Order, new: Path) -> None:
    """Whom it belongs to changes what git remembers of its files, so that is looked at again."""
    git_dir = new / ".git"
    hand_over(new, *order.agent)
    git(git_dir, "update-index", "-q", "--refresh", tree=new)
    borrow(git_dir, f"{order.shown_base}/objects")
    hand_over(git_dir, *order.agent)


def _start(order: Order, git_dir: Path) -> str:
    """Nothing is lost: a change that we have is left only for a branch that contains it."""
    theirs = Path(order.project.common_dir)
    tip = commit_at(theirs, f"refs/heads/{order.task.branch}")
    change = last_change(order.repos, order.task.id)
    for source, commit in ((theirs, tip), (order.repos.judge, change)):
        if commit:
            copy_commit(order, git_dir, source, commit)
    if tip and change and is_ancestor(git_dir, change, tip):
        return tip
    return change or tip or order.base_commit


def copy_commit(order: Order, git_dir: Path, source: Path, commit: str) -> None:
    done = fetched(git_dir, source, commit)
    if done.code != 0:
        why = f"commit {commit} was not taken from {source}: {words_of(done)}"
        raise Unavailable(order.what, why=why, fix="do as git says, then try again")


def _leave_ours_alone(order: Order, new: Path) -> None:
    """Where the repository tracks a file by the name of ours, git does not look at it here."""
    git_dir = new / ".git"
    tracked = told(order.what, git_dir, "ls-files", "-z", "--", *OURS, tree=new).split("\0")[:-1]
    if tracked:
        mark = ("update-index", "--skip-worktree", "--", *tracked)
        told(order.what, git_dir, *mark, tree=new)


def _configuration(order: Order) -> str:
    base = rules_of(order.task).base
    name, email = _identity(order)
    return (
        '[remote "origin"]\n'
        f"\turl = {_quoted(order.shown_base)}\n"
        f"\tfetch = {_quoted(f'+refs/heads/{base}:refs/remotes/origin/{base}')}\n"
        f"\tuploadpack = {_quoted(f'git -c safe.directory={BASE} upload-pack')}\n"
        f"[user]\n\tname = {_quoted(name)}\n\temail = {_quoted(email)}\n"
    )


def _identity(order: Order) -> tuple[str, str]:
    """The user's, as their own git has it; the agent's name where they have none."""
    asked = ("git", f"--git-dir={order.project.common_dir}", "config", "--get")
    name, email = (run((*asked, f"user.{it}")).out.strip() for it in ("name", "email"))
    return name or order.task.agent, email or f"{order.task.agent}@localhost"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
