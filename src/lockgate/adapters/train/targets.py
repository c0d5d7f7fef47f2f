"""Where a target is, how its tip comes into our repositories, and how a remote's branch is moved.

A push has a time limit, and a fence where one is asked for. The fence is a ref beside the branch
that moves with each landing. A new orchestrator moves it first: a push that an earlier one began
names its old value, and is refused as a whole.
"""

from pathlib import Path

from msgspec.structs import replace

from lockgate.adapters.run import Finished
from lockgate.adapters.train.candidates import Facts, facts_of, mark, marked, name_of
from lockgate.adapters.train.git import (
    alone,
    asked,
    commit_named,
    failed,
    push_within,
    scripted,
    with_remote,
)
from lockgate.adapters.workspaces.git import COMMIT, fetched, git, words_of
from lockgate.adapters.workspaces.git_files import share_shallow
from lockgate.adapters.workspaces.repositories import Repositories, make_both, writing
from lockgate.core.config.settings import MergeFence
from lockgate.core.train.model import PUSH_WITHIN, Commit
from lockgate.errors import Unavailable
from lockgate.ports.train import Leave, Target

FETCH = (
    "fetch",
    "--quiet",
    "--no-tags",
    "--no-prune",
    "--no-auto-maintenance",
    "--no-recurse-submodules",
    "--no-write-fetch-head",
)
_PUSH = (
    *("push", "--porcelain", "--no-verify", "--no-follow-tags", "--no-signed"),
    "--recurse-submodules=no",
)
# An empty commit on top of the last one: a remote that takes no rewritten refs takes it too.
_COMMIT = """\
tree=$(git --git-dir="$1" mktree </dev/null) &&
exec git --git-dir="$1" commit-tree "$tree" -m "$2" ${3:+-p "$3"}
"""
_KILLED = -9


def ref_of(target: Target) -> str:
    return f"refs/{f'remotes/{target.remote}' if target.remote else 'heads'}/{target.branch}"


def shown(target: Target) -> str:
    return f"{target.remote}/{target.branch}" if target.remote else target.branch


def look(target: Target) -> Commit:
    """Where it is now; a remote is asked."""
    if target.remote:
        with alone(target.project):
            ask_remote(target)
    return look_here(target)


def look_here(target: Target) -> Commit:
    """Where it is as far as the user's repository knows."""
    for found in seen(target):
        return found
    raise _gone(target)


def seen(target: Target) -> tuple[Commit, ...]:
    """The same, or none."""
    theirs, ref = Path(target.project.common_dir), ref_of(target)
    found = _written(theirs / ref) or commit_named(theirs, ref)
    return (found,) if found else ()


def ask_remote(target: Target) -> None:
    """Under `alone`. A branch that was rewritten there is simply at another commit."""
    refspec = f"+refs/heads/{target.branch}:{ref_of(target)}"
    done = with_remote(target.project, *FETCH, "--", target.remote, refspec)
    if done.code == 0:
        return
    if "couldn't find remote ref" in done.err:
        raise _gone(target)
    what, fix = f"{shown(target)} was not fetched", f"try it: git fetch {target.remote}"
    raise Unavailable(what, why=words_of(done), fix=fix)


def contains(target: Target, commit: Commit) -> bool:
    """As far as the user's repository knows. A commit that it does not have is not in it."""
    where = Path(target.project.common_dir)
    done = asked(where, "merge-base", "--is-ancestor", commit, ref_of(target))
    if done.code not in {0, 1}:
        look_here(target)
    return done.code == 0


def has_more_history(repos: Repositories, target: Target) -> bool:
    """The user's repository was cut off when it was copied, and is whole now."""
    theirs = Path(target.project.common_dir)
    return (repos.judge / "shallow").exists() and not (theirs / "shallow").exists()


def bring(repos: Repositories, target: Target, commit: Commit) -> Facts:
    """Into base.git, which lends to judge.git, with all that it reaches."""
    deepen = has_more_history(repos, target)
    found = marked(repos, target, commit) if repos.judge.is_dir() and not deepen else None
    if found is not None:
        return found
    source = Path(target.project.common_dir)
    there = f"refs/lockgate/remotes/{name_of(target)}" if target.remote else ref_of(target)
    with writing(repos):
        make_both(repos, target.project, commit)
        copied = _deepened if deepen else fetched
        done = copied(repos.base, source, f"+{commit}:{there}")
        if done.code != 0:
            what = f"{shown(target)} was not taken from {target.project.root}"
            raise Unavailable(what, why=words_of(done), fix="see that it is whole: git fsck")
        share_shallow(repos.base, repos.judge)
        if deepen:
            (repos.judge / "shallow").unlink(missing_ok=True)
        mark(repos, target, commit)
    return facts_of(repos.judge, commit)


def lend(repos: Repositories, target: Target, commit: Commit) -> None:
    """base.git, which clones call origin, gets the branch as it is now."""
    with writing(repos):
        refspec = f"+{commit}:refs/heads/{target.branch}"
        done = fetched(repos.base, Path(target.project.common_dir), refspec)
    if done.code != 0:
        what = f"{shown(target)} was not shown to agents"
        raise Unavailable(what, why=words_of(done), fix="see that it is whole: git fsck")


def _deepened(base: Path, source: Path, refspec: str) -> Finished:
    other_end = "--upload-pack=git -c 'safe.directory=*' upload-pack"
    return git(base, *FETCH, "--unshallow", other_end, "--", str(source), refspec)


def _written(ref: Path) -> Commit | None:
    """A branch in a file of its own, as one is that has just moved; git knows the other ways."""
    try:
        said = ref.read_text(encoding="ascii").rstrip("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return Commit(said) if COMMIT.fullmatch(said) else None


def _gone(target: Target) -> Unavailable:
    branch, remote = target.branch, target.remote
    where = f"remote {remote}" if remote else target.project.root
    again = f"git push {remote} COMMIT:refs/heads/{branch}" if remote else f"git branch {branch}"
    return Unavailable(
        f"nothing lands on {shown(target)}",
        why=f"{where} has no branch {branch} with a commit",
        fix=f"make it again: {again}; or name another base in .lockgate/config.toml",
    )


# How a remote's branch is moved.


class Pushes:
    """`within`: seconds from before the last look at the epoch until a push is ended."""

    def __init__(self, within: float = PUSH_WITHIN) -> None:
        self._within = within
        self._held: dict[str, Commit] = {}  # where each target's fence is, as we left it

    def push(self, target: Target, expected: Commit, commit: Commit, leave: Leave) -> Finished:
        """Under `alone`."""
        branch = f"refs/heads/{target.branch}"
        lease, moves = f"--force-with-lease={branch}:{expected}", f"{commit}:{branch}"
        if target.fence is MergeFence.WAIT:
            return self._pushed(target, leave, (lease,), (moves,))
        was = self._take(target, leave)
        new = _made(target, leave, was)
        both = ("--atomic", lease, _lease(target, was))
        done = self._pushed(target, leave, both, (moves, f"{new}:{fence_of(target)}"))
        if done.code == 0:
            self._held[target.name] = new
        return done

    def shut_out(self, target: Target, leave: Leave) -> bool:
        with alone(
            target.project
        ):  # the next process that locks the project looks at the epoch first
            if target.remote and target.fence is MergeFence.REF:
                self._take(target, leave)
        return not target.remote or target.fence is MergeFence.REF

    def moved_by_another(self, target: Target) -> bool:
        """Under `alone`. Whether the fence is not where we left it; then it is taken again."""
        if target.fence is MergeFence.WAIT or self._held.get(target.name) == _there(target):
            return False
        self._held.pop(target.name, None)
        return True

    def _take(self, target: Target, leave: Leave) -> Commit:
        """Where the fence is; it is moved first, so that no earlier push knows where."""
        if target.name in self._held:
            return self._held[target.name]
        was = _there(target)
        new = _made(target, leave, was)
        done = self._pushed(target, leave, (_lease(target, was),), (f"{new}:{fence_of(target)}",))
        if done.code != 0:
            raise Unavailable(
                f"nothing lands on {target.remote}/{target.branch}",
                why=f"{fence_of(target)} was not moved there: {words_of(done)}",
                fix='see that you may push it, or set fence = "wait" under [merge]',
            )
        self._held[target.name] = new
        return new

    def _pushed(
        self, target: Target, leave: Leave, options: tuple[str, ...], moves: tuple[str, ...]
    ) -> Finished:
        argv = (*_PUSH, *options, "--", target.remote, *moves)
        done = push_within(target.project, leave.check, self._within, *argv)
        if done.code != _KILLED:
            return done
        return replace(done, err=f"fatal: the push had not ended after {self._within:g} s")


def fence_of(target: Target) -> str:
    return f"refs/lockgate/fence/{target.branch}"


def _lease(target: Target, was: Commit | None) -> str:
    return f"--force-with-lease={fence_of(target)}:{was or ''}"


def _there(target: Target) -> Commit | None:
    """Where the fence is at the remote; None where there is none yet."""
    here = f"refs/lockgate/fence/{target.remote}/{target.branch}"
    done = with_remote(target.project, *FETCH, "--", target.remote, f"+{fence_of(target)}:{here}")
    if done.code == 0:
        return commit_named(Path(target.project.common_dir), here)
    if "couldn't find remote ref" in done.err:
        return None
    what, fix = f"{fence_of(target)} was not fetched", f"try it: git fetch {target.remote}"
    raise Unavailable(what, why=words_of(done), fix=fix)


def _made(target: Target, leave: Leave, was: Commit | None) -> Commit:
    said = f"lockgate fence\n\nepoch: {leave.epoch}\nlanding: {leave.number}\n"
    done = scripted(_COMMIT, target.project.common_dir, said, was or "")
    if done.code != 0:
        raise failed(f"{fence_of(target)} was not made", done)
    return Commit(done.out.strip())
