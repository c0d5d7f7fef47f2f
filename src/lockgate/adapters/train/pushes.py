"""How a remote's branch is moved: within a time limit, and with a fence where one is asked for.

The fence is a ref beside the branch that moves with each landing. A new orchestrator moves it
first: a push that an earlier one began names its old value, and is refused as a whole.
"""

from pathlib import Path

from msgspec.structs import replace

from lockgate.adapters.run import Finished
from lockgate.adapters.train.git import (
    alone,
    commit_named,
    failed,
    push_within,
    scripted,
    with_remote,
)
from lockgate.adapters.train.targets import FETCH
from lockgate.adapters.workspaces.git import words_of
from lockgate.core.config.settings import MergeFence
from lockgate.core.train.epochs import PUSH_WITHIN
from lockgate.core.train.model import Commit
from lockgate.errors import Unavailable
from lockgate.ports.train import Leave, Target

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
        with alone(target.project):  # here, whoever comes after us looks at the epoch first
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
