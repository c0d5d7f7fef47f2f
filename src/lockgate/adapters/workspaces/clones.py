"""A clone that borrows base.git's objects, built by us where nobody else can write yet."""

import os
import re
import secrets
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from errno import EEXIST, ENOTEMPTY
from functools import partial
from glob import escape
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.run import Finished
from lockgate.adapters.workspaces.changes import blobs_of, dependencies
from lockgate.adapters.workspaces.files import discard, hand_over, owner_at, remove
from lockgate.adapters.workspaces.git import (
    add_hook,
    commit_at,
    fetched,
    git,
    is_ancestor,
    told,
    words_of,
)
from lockgate.adapters.workspaces.git_files import borrow, make_repository, set_ref, share_shallow
from lockgate.adapters.workspaces.repositories import Repositories, last_change, rules_of
from lockgate.core.model.commits import LOCKGATE, Byline
from lockgate.core.model.task import Pinned, Task
from lockgate.core.text.steering import Swapped, swapped
from lockgate.errors import Unavailable
from lockgate.ports import Candidate, Project

# A commit out of judge.git into a repository that borrows from base.git.


# Nothing waits for the disk: what a crash may take from a clone can be copied again.
_PACK = (
    *("-c", "core.fsync=none", "pack-objects", "--quiet", "--revs", "--local", "--non-empty"),
    "--delta-base-offset",
)


def copied(repos: Repositories, git_dir: Path, commit: str, base_commit: str) -> str | None:
    """What base.git lacks of it, and one that is judge.git too lacks nothing: why not, or None.

    A fetch would start seven programs for the same. What it alone can do is left to it: to find
    out what is there where history is cut off, and to write to another disk.
    """
    if commit == base_commit or repos.judge.is_symlink():
        return None
    cut_off = any((it / "shallow").exists() for it in (repos.base, repos.judge))
    if cut_off or git_dir.stat().st_dev != repos.judge.stat().st_dev:
        done = fetched(git_dir, repos.judge, commit)
    else:
        done = _packed(repos, git_dir, commit, base_commit)
    return None if done.code == 0 else words_of(done)


def _packed(repos: Repositories, git_dir: Path, commit: str, base_commit: str) -> Finished:
    """Only what is judge.git's own, and nothing where that is nothing."""
    (git_dir / "objects" / "pack").mkdir(exist_ok=True)
    wanted = git_dir / "lockgate-wanted"
    wanted.write_text(f"{commit}\n^{base_commit}\n", encoding="ascii")
    try:
        return git(repos.judge, *_PACK, f"{git_dir}/objects/pack/pack", given=wanted)
    finally:
        wanted.unlink()


BASE = "/base.git"  # where every sandbox shows it
OURS = ("TASK.md", "task.json")  # Lockgate's own files in a workspace
JUDGED = Byline(LOCKGATE, LOCKGATE)  # who commits where a change is only judged
_SPECIAL = re.compile(r"[\\*?\[\] ]")  # in a pattern of git's
EXCLUDED = ("/TASK.md", "/task.json", "/.TASK.md.*", "/.task.json.*", ".aider*")


class Order(Struct, frozen=True, kw_only=True):
    """What is to be cloned for whom."""

    candidate: Candidate
    repos: Repositories
    sandboxed: bool
    by: Byline = JUDGED  # whose name the work carries
    goal: str = ""  # what a commit of it says that its author did not make

    @property
    def project(self) -> Project:
        return self.candidate.project

    @property
    def name(self) -> str:
        """The task's id, or what stands for it."""
        return self.candidate.name

    @property
    def rules(self) -> Pinned:
        return rules_of(self.candidate)

    @property
    def what(self) -> str:
        return f"no clone was made for task {self.name}"

    @property
    def base_commit(self) -> str:
        return self.rules.base_commit

    @property
    def home(self) -> Path:
        return self.repos.directory.parents[1]

    @property
    def agent(self) -> tuple[int, int]:
        return owner_at(sandboxed=self.sandboxed)

    @property
    def shown_base(self) -> str:
        return BASE if self.sandboxed else str(self.repos.base)


def clone_for_work(order: Order, task: Task, place: Path) -> None:
    """On the task's branch: at its change, the user's branch or the base commit."""

    def fill(new: Path) -> None:
        git_dir, branch = new / ".git", f"refs/heads/{task.branch}"
        set_ref(git_dir, branch, _start(order, task, git_dir))
        set_ref(git_dir, "HEAD", f"ref: {branch}")
        told(order.what, git_dir, "read-tree", "-m", "-u", "HEAD", tree=new)
        exclude(git_dir, dependencies(order.repos.base, order.base_commit))
        add_hook(git_dir, order.by)
        _leave_ours_alone(order, new)

    build(order, place, fill, order.by)


def clone_of_commit(order: Order, place: Path, commit: str) -> None:
    """On no branch, at exactly this commit, with its own copy of what base.git does not have.

    Anything else that is there already is replaced.
    """
    if is_clone_of(place, commit):
        return
    discard(place)

    def fill(new: Path) -> None:
        git_dir = new / ".git"
        copy_commit(order, git_dir, commit)
        set_ref(git_dir, "HEAD", commit)
        told(order.what, git_dir, "read-tree", "-m", "-u", "HEAD", tree=new)

    build(order, place, fill)


def clone_for_review(order: Order, place: Path, commit: str, named: Sequence[str]) -> None:
    """As `clone_of_commit`, with base's instruction files laid out instead of the commit's.

    HEAD and the index have the commit as it is, so every diff shows what it does to those files.
    """
    if is_clone_of(place, commit):
        return
    discard(place)

    def fill(new: Path) -> None:
        git_dir = new / ".git"
        copy_commit(order, git_dir, commit)
        set_ref(git_dir, "HEAD", commit)
        change, base = blobs_of(git_dir, commit), blobs_of(git_dir, order.base_commit)
        view = swapped(base, change, partial(_text_of, order, git_dir), named)
        if view.gone or view.base:
            _lay_out(order, new, view, len(commit))
        else:
            told(order.what, git_dir, "read-tree", "-m", "-u", "HEAD", tree=new)

    build(order, place, fill)


def _lay_out(order: Order, new: Path, view: Swapped, id_length: int) -> None:
    """What differs from HEAD is hidden from git: it is neither a change nor a new file."""
    git_dir = new / ".git"
    told(order.what, git_dir, "read-tree", "HEAD")
    entries = [f"0 {'0' * id_length}\t{path}" for path in view.gone]
    entries += [f"{blob}\t{path}" for path, blob in view.base.items()]
    _fed(order, git_dir, entries, "update-index", "-z", "--index-info")
    told(order.what, git_dir, "checkout-index", "--all", "--force", tree=new)
    told(order.what, git_dir, "read-tree", "HEAD")
    _fed(order, git_dir, view.gone, "update-index", "-z", "--skip-worktree", "--stdin")
    git(git_dir, "update-index", "-q", "--refresh", tree=new)
    (git_dir / "info").mkdir()
    hidden = [_SPECIAL.sub(r"\\\g<0>", path) for path in view.base]
    (git_dir / "info" / "exclude").write_bytes(os.fsencode("".join(f"/{it}\n" for it in hidden)))


def _fed(order: Order, git_dir: Path, lines: Sequence[str], *argv: str) -> None:
    """Each line ended by a zero byte."""
    given = git_dir / "lockgate-lines"
    given.write_bytes(b"".join(os.fsencode(line) + b"\0" for line in lines))
    told(order.what, git_dir, *argv, tree=git_dir.parent, given=given)
    given.unlink()


def _text_of(order: Order, git_dir: Path, blob: str) -> str:
    return told(order.what, git_dir, "cat-file", "blob", blob.rpartition(" ")[2])


def is_clone_of(place: Path, commit: str) -> bool:
    """Whether this is what `clone_of_commit` has put there; asks no git."""
    try:
        return (place / ".git" / "HEAD").read_text(encoding="ascii").strip() == commit
    except (OSError, UnicodeDecodeError):
        return False


def build(order: Order, place: Path, fill: Callable[[Path], None], who: Byline = JUDGED) -> None:
    """Fill a directory beside the place and move it there. If the place exists, it stays."""
    place.parent.mkdir(parents=True, exist_ok=True)
    for half in place.parent.glob(f".new-{escape(place.name)}-????????"):
        remove(half)
    with _half_made(place.with_name(f".new-{place.name}-{secrets.token_hex(4)}")) as new:
        try:
            _init(order, new, who)
            fill(new)
            finish(order, new)
            _move(new, place)
        except OSError as error:
            fix = "see that the disk has room, then try again"
            raise Unavailable(order.what, why=str(error), fix=fix) from error


def _move(new: Path, place: Path) -> None:
    try:
        new.rename(place)
    except OSError as error:
        if error.errno not in {EEXIST, ENOTEMPTY}:
            raise


@contextmanager
def _half_made(new: Path) -> Generator[Path]:
    try:
        yield new
    finally:
        remove(new)


def _init(order: Order, new: Path, who: Byline) -> None:
    rules, git_dir = order.rules, new / ".git"
    make_repository(git_dir, rules.base_commit, _configuration(order, who), bare=False)
    borrow(git_dir, str(order.repos.base / "objects"))
    share_shallow(order.repos.base, git_dir)
    origin = "refs/remotes/origin"
    set_ref(git_dir, f"{origin}/{rules.base}", rules.base_commit)
    set_ref(git_dir, f"{origin}/HEAD", f"ref: {origin}/{rules.base}")


def finish(order: Order, new: Path) -> None:
    """Whom it belongs to changes what git remembers of its files, so that is looked at again."""
    git_dir = new / ".git"
    if hand_over(new, *order.agent):
        git(git_dir, "update-index", "-q", "--refresh", tree=new)
        os.lchown(git_dir / "index", *order.agent)
    borrow(git_dir, f"{order.shown_base}/objects")


def _start(order: Order, task: Task, git_dir: Path) -> str:
    """Nothing is lost: a change that we have is left only for a branch that contains it."""
    theirs = Path(order.project.common_dir)
    tip = commit_at(theirs, f"refs/heads/{task.branch}")
    change = last_change(order.repos, task.id)
    if tip and tip != order.base_commit:
        done = fetched(git_dir, theirs, tip)
        if done.code != 0:
            raise _not_copied(order, tip, theirs, words_of(done))
    if change:
        copy_commit(order, git_dir, change)
    if tip and change and is_ancestor(git_dir, change, tip):
        return tip
    return change or tip or order.base_commit


def copy_commit(order: Order, git_dir: Path, commit: str) -> None:
    """With all that it reaches, as far as base.git does not have that."""
    if why := copied(order.repos, git_dir, commit, order.base_commit):
        raise _not_copied(order, commit, order.repos.judge, why)


def _not_copied(order: Order, commit: str, source: Path, why: str) -> Unavailable:
    why = f"commit {commit} was not taken from {source}: {why}"
    return Unavailable(order.what, why=why, fix="do as git says, then try again")


def _leave_ours_alone(order: Order, new: Path) -> None:
    """Where the repository tracks a file by the name of ours, git does not look at it here."""
    git_dir = new / ".git"
    tracked = told(order.what, git_dir, "ls-files", "-z", "--", *OURS, tree=new).split("\0")[:-1]
    if tracked:
        mark = ("update-index", "--skip-worktree", "--", *tracked)
        told(order.what, git_dir, *mark, tree=new)


def exclude(git_dir: Path, more: Iterable[str]) -> None:
    """Lockgate's own files are nobody's change, and these are none either."""
    (git_dir / "info").mkdir()
    lines = "".join(f"{it}\n" for it in (*EXCLUDED, *more))
    (git_dir / "info" / "exclude").write_bytes(os.fsencode(lines))


def _configuration(order: Order, who: Byline) -> str:
    base = order.rules.base
    people = {
        "user": who.committer,
        **({} if who.author == who.committer else {"author": who.author}),
    }
    named = "".join(
        f"[{key}]\n\tname = {_quoted(it.name)}\n\temail = {_quoted(it.email)}\n"
        for key, it in people.items()
    )
    return (
        '[remote "origin"]\n'
        f"\turl = {_quoted(order.shown_base)}\n"
        f"\tfetch = {_quoted(f'+refs/heads/{base}:refs/remotes/origin/{base}')}\n"
        f"\tuploadpack = {_quoted(f'git -c safe.directory={BASE} upload-pack')}\n"
    ) + named


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
