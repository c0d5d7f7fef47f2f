"""The work trees of the user that show a branch: which they are, and how they follow it.

Git's own fast-forward writes the files, then the index, then the branch, in one process. Killed in
between, it leaves the branch where it was; what it has written is then the same as what is to land,
and the next landing goes over it. `index.lock` names no owner, so it is never removed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lockgate.adapters.run import Finished
from lockgate.adapters.train.user_git import in_checkout
from lockgate.adapters.workspaces.hardened_git import told
from lockgate.core.train.model import Commit
from lockgate.ports import Project
from lockgate.ports.train import InTheWay

MOST_FILES = 50  # that are looked at one by one, and named
_FORWARD = (
    *("merge", "--ff-only", "--no-overwrite-ignore", "--no-autostash", "--no-verify-signatures"),
    *("--no-squash", "--commit", "--no-stat", "--quiet"),
)
_WORK = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "BISECT_LOG": "a bisection",
}
_CLAIMS = (
    *("rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs"),
    "BISECT_START",
)


@dataclass(frozen=True, slots=True)
class Checkout:
    """A work tree that shows the branch, which is at `head`."""

    tree: Path
    head: Commit


def claimed(project: Project, branch: str) -> InTheWay | None:
    """A rebase or bisection will want to find the branch where it left it."""
    names = {branch, f"refs/heads/{branch}"}
    for git_dir in _git_dirs(project):
        if any(names & set(_text(git_dir / it).splitlines()) for it in _CLAIMS):
            return InTheWay(f"{branch} is being rebased or bisected in a work tree ({git_dir})")
    return None


def checkouts_of(project: Project, branch: str) -> tuple[Checkout, ...]:
    """Git is asked only where a look at the HEADs does not settle it."""
    if not any(_may_show(it / "HEAD", branch) for it in _git_dirs(project)):
        return ()
    what = f"the work trees of {project.root} were not listed"
    asked = ("worktree", "list", "--porcelain", "-z")
    said = told(what, Path(project.common_dir), *asked)
    return tuple(_shown(said, f"branch refs/heads/{branch}"))


def moved_forward(checkout: Checkout, commit: Commit) -> Finished | InTheWay:
    """The branch with its files, or neither; edits to other files stay as they are."""
    if found := _hindrance(checkout.tree):
        return found
    done = in_checkout(checkout.tree, *_FORWARD, commit)
    files = _named(done)
    if files and _stage_same(checkout.tree, commit, files):
        done = in_checkout(checkout.tree, *_FORWARD, commit)
        files = _named(done)
    if files:
        why = f"local edits or untracked files in {checkout.tree} would be overwritten"
        return InTheWay(why, files[:MOST_FILES])
    return _hindrance(checkout.tree) or done if done.code != 0 else done


def _git_dirs(project: Project) -> tuple[Path, ...]:
    common = Path(project.common_dir)
    return common, *(common / "worktrees").glob("*")


def _may_show(head: Path, branch: str) -> bool:
    said = _text(head).strip()
    return head.is_symlink() or said in {f"ref: refs/heads/{it}" for it in (branch, ".invalid")}


def _shown(listed: str, line: str) -> Iterator[Checkout]:
    for entry in listed.split("\0\0"):
        lines = entry.split("\0")
        if line in lines and not any(it.startswith("prunable") for it in lines):
            tree, head = (it.partition(" ")[2] for it in lines[:2])
            yield Checkout(Path(tree), Commit(head))


def _hindrance(tree: Path) -> InTheWay | None:
    if not tree.is_dir():
        return InTheWay(f"the work tree {tree} shows the branch and is not there")
    git_dir = Path(in_checkout(tree, "rev-parse", "--absolute-git-dir").out.rstrip("\n"))
    for name, work in _WORK.items():
        if (git_dir / name).exists():
            return InTheWay(f"{work} is under way in {tree}; finish or abort it")
    lock = git_dir / "index.lock"
    if lock.exists():
        why = "another git is at work there, or one was killed; when none runs, remove it"
        return InTheWay(f"{lock} exists: {why}")
    return None


def _named(done: Finished) -> tuple[str, ...]:
    """Git indents the files that it would have overwritten."""
    lines = done.err.splitlines() if done.code != 0 else []
    return tuple(it[1:] for it in lines if it.startswith("\t"))


def _stage_same(tree: Path, commit: Commit, files: Sequence[str]) -> bool:
    """Files that are already what is to land are nobody's edit; true where all of them are."""
    places = [tree / name for name in files]
    plain = all(it.is_file() and not it.is_symlink() for it in places)
    if len(files) > MOST_FILES or not plain:
        return False
    wanted = in_checkout(tree, "ls-tree", "-z", "--full-tree", commit, "--", *files).out
    found = in_checkout(tree, "hash-object", "--", *files).out.split()
    same = {
        f"{'100755' if place.stat().st_mode & 0o100 else '100644'} blob {blob}\t{name}"
        for place, blob, name in zip(places, found, files, strict=False)
    }
    if len(same) != len(files) or same != set(wanted.split("\0")[:-1]):
        return False
    return in_checkout(tree, "update-index", "--add", "--", *files).code == 0


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
