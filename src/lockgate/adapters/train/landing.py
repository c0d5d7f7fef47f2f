"""Moving a target by compare-and-swap: a branch of the user's repository, or one of a remote.

Hooks do not run. After a push the user's own branch of that name is left alone.
"""

from dataclasses import dataclass

from lockgate.adapters.run import Finished
from lockgate.adapters.train.asking import scripted
from lockgate.adapters.train.checkouts import (
    Checkout,
    checkouts_of,
    claimed,
    moved_forward,
)
from lockgate.adapters.train.pushes import Pushes
from lockgate.adapters.train.targets import ask_remote, look_here, ref_of, shown
from lockgate.adapters.train.user_git import alone
from lockgate.adapters.workspaces.hardened_git import is_ancestor, words_of
from lockgate.adapters.workspaces.repositories import Repositories
from lockgate.core.train.model import Commit
from lockgate.errors import Refused, Unavailable
from lockgate.ports.train import Arrived, Elsewhere, InTheWay, Leave, Target

# What the second commit does not have of the first, from one repository to the other, then the rest
# of the line. A copy that was killed is simply made again.
_COPY = """\
printf '%s\\n^%s\\n' "$1" "$2" |
git --git-dir="$3" pack-objects --quiet --revs --sparse --window=0 --threads=1 --stdout |
git --git-dir="$4" unpack-objects -q && shift 4 && exec "$@"
"""


@dataclass(frozen=True, slots=True)
class Move:
    """From one commit to the other, by whom."""

    expected: Commit
    commit: Commit
    leave: Leave


def land(
    repos: Repositories, target: Target, move: Move, pushes: Pushes
) -> Arrived | Elsewhere | InTheWay:
    with alone(target.project):
        if target.remote:
            return _push(repos, target, move, pushes)
        move.leave.check()
        return _land_here(repos, target, move.expected, move.commit)


def refuse_loss(repos: Repositories, target: Target, expected: Commit, commit: Commit) -> None:
    if is_ancestor(repos.judge, expected, commit):
        return
    why = f"that does not contain {expected}, whose work would be lost"
    fix = "build it anew on the target as it is"
    raise Refused(f"{shown(target)} was not moved to {commit}", why=why, fix=fix)


def _land_here(
    repos: Repositories, target: Target, expected: Commit, commit: Commit
) -> Arrived | Elsewhere | InTheWay:
    trees = checkouts_of(target.project, target.branch)
    for tree in trees:
        if tree.head != expected:
            return Arrived() if tree.head == commit else Elsewhere()
    if found := claimed(target.project, target.branch):
        return found
    match trees:
        case ():
            return _swap(repos, target, expected, commit)
        case (tree,):
            return _follow(repos, target, tree, commit)
        case _:
            where = " and ".join(str(it.tree) for it in trees)
            return InTheWay(f"{target.branch} is checked out more than once: {where}")


def _swap(
    repos: Repositories, target: Target, expected: Commit, commit: Commit
) -> Arrived | Elsewhere:
    """No work tree shows it: the branch alone moves."""
    move = ("update-ref", "-m", f"lockgate: landed {commit[:12]}", ref_of(target))
    git = ("git", f"--git-dir={target.project.common_dir}", *move, commit, expected)
    done = _copied(repos, target, expected, commit, *git)
    return Arrived() if done.code == 0 else _found_at(target, expected, commit, _said(done))


def _follow(
    repos: Repositories, target: Target, checkout: Checkout, commit: Commit
) -> Arrived | Elsewhere | InTheWay:
    expected = checkout.head
    copied = _copied(repos, target, expected, commit, "true")
    done = moved_forward(checkout, commit) if copied.code == 0 else copied
    if isinstance(done, InTheWay):
        return done
    return _found_at(target, expected, commit, _said(done))


def _push(repos: Repositories, target: Target, move: Move, pushes: Pushes) -> Arrived | Elsewhere:
    expected, commit = move.expected, move.commit
    done = _copied(repos, target, expected, commit, "true")
    if done.code == 0:
        done = pushes.push(target, expected, commit, move.leave)
    if done.code == 0:
        return Arrived()
    ask_remote(target)
    if look_here(target) == expected and pushes.moved_by_another(target):
        return Elsewhere()
    return _found_at(target, expected, commit, _said(done))


def _found_at(target: Target, expected: Commit, commit: Commit, said: str) -> Arrived | Elsewhere:
    """Where it is by now decides; where it has not moved, what git said is the reason."""
    now = look_here(target)
    if now == commit:
        return Arrived()
    if now != expected:
        return Elsewhere()
    what = f"{shown(target)} was not moved to {commit}"
    fix = "see that you may push there" if target.remote else "do as git says"
    raise Unavailable(what, why=said, fix=f"{fix}; it is tried again")


def _said(done: Finished) -> str:
    """The lines that name the trouble, without the advice around them."""
    lines = (*done.out.splitlines(), *done.err.splitlines())
    told = [it for it in lines if it.startswith(("!", "remote: ", "error: ", "fatal: "))]
    return "; ".join(it.rpartition("\t")[2].strip() for it in told) or words_of(done)


def _copied(
    repos: Repositories, target: Target, expected: Commit, commit: Commit, *then: str
) -> Finished:
    places = (str(repos.judge), target.project.common_dir)
    return scripted(_COPY, commit, expected, *places, *then)
