"""Changes put onto a commit: merged, squashed or replayed, each in its own commit of ours.

No commit of ours is older than what it is on. A change that the target contains already is merged
all the same, so that every landed change has a commit for its evidence; squashed or replayed, it
adds nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from lockgate.adapters.train.asking import EMAIL, NAME, failed, scripted
from lockgate.adapters.train.marks import Facts, written_commit
from lockgate.adapters.train.merges import Clash, Merged, merged
from lockgate.adapters.workspaces.hardened_git import commit_made, git, told
from lockgate.adapters.workspaces.repositories import Repositories
from lockgate.core.settings import MergeStrategy
from lockgate.core.train_model import Commit, Tree
from lockgate.ports.train import Load

# In a repository, onto a commit, this change, not before that time: a commit with the rest.
_JOIN = """\
export GIT_DIR="$1"
made=$(git rev-list --no-walk --no-commit-header --format=%ct "$3") || exit
[ "$made" -gt "$4" ] || made=$4
export GIT_AUTHOR_DATE="@$made +0000" GIT_COMMITTER_DATE="@$made +0000"
tree=$(git merge-tree --write-tree "$2" "$3") && shift 4 &&
commit=$(git commit-tree "$@" "$tree") && echo "$commit $tree $made"
"""
_KEPT = ("author ", "encoding ")  # of a replayed commit's head; a signature would not hold
_SCRATCH = "lockgate"


@dataclass(frozen=True, slots=True)
class Front:
    """How far the candidate is: the next change goes onto this commit."""

    commit: Commit
    facts: Facts


@dataclass(frozen=True, slots=True)
class Replayed:
    """A commit of a change, as it was written, and the one that it was written on."""

    commit: Commit
    parent: Commit
    text: str


def put_on(repos: Repositories, front: Front, load: Load, strategy: MergeStrategy) -> Front | Clash:
    match strategy:
        case MergeStrategy.MERGE:
            return _joined(repos, front, load, (front.commit, load.commit))
        case MergeStrategy.SQUASH:
            found = _joined(repos, front, load, (front.commit,))
            same = isinstance(found, Front) and found.facts.tree == front.facts.tree
            return front if same else found
        case MergeStrategy.REBASE:
            return _rebase(repos, front, load.commit)


def _joined(
    repos: Repositories, front: Front, load: Load, parents: tuple[Commit, ...]
) -> Front | Clash:
    above = (part for it in parents for part in ("-p", it))
    given = (str(repos.judge), front.commit, load.commit, str(front.facts.seconds))
    done = scripted(_JOIN, *given, *above, "-m", load.message or "(no summary)")
    if done.code == 0:
        commit, tree, made = done.out.split()
        return Front(Commit(commit), Facts(Tree(tree), int(made)))
    found = merged(repos.judge, front.commit, load.commit)
    if isinstance(found, Clash):
        return found
    raise failed(f"the change of task {load.task} was not committed", done)


def _rebase(repos: Repositories, front: Front, change: Commit) -> Front | Clash:
    """A merge in the change is replayed as what it brought to its first parent."""
    if git(repos.judge, "merge-base", front.commit, change).code != 0:
        found = merged(repos.judge, front.commit, change)  # says whether history is cut off
        return found if isinstance(found, Clash) else Clash()
    for step in _history(repos, front.commit, change):
        found = _moved(repos, front, step)
        if isinstance(found, Clash):
            return found
        if found.tree != front.facts.tree:
            front = _rewritten(repos, front, found.tree, step)
    return front


def _history(repos: Repositories, onto: Commit, change: Commit) -> Iterator[Replayed]:
    what = f"the commits of {change} were not listed"
    asked = ("rev-list", "--reverse", "--first-parent", "--parents", change, f"^{onto}", "--")
    for line in told(what, repos.judge, *asked).splitlines():
        commit, *parents = line.split()
        text = told(what, repos.judge, "cat-file", "commit", commit)
        yield Replayed(Commit(commit), Commit(parents[0] if parents else ""), text)


def _moved(repos: Repositories, front: Front, step: Replayed) -> Merged | Clash:
    """What the commit did to its parent is done to the front: a merge whose base is the parent."""
    if not step.parent:
        return Clash()
    what = f"{step.commit} was not replayed"
    parents = (step.parent,)
    stand_in = commit_made(what, repos.judge, front.facts.tree, parents, _SCRATCH)
    return merged(repos.judge, Commit(stand_in), step.commit)


def _rewritten(repos: Repositories, front: Front, tree: Tree, step: Replayed) -> Front:
    head, _, message = step.text.partition("\n\n")
    lines = head.split("\n")
    made = next(int(it.split()[-2]) for it in lines if it.startswith("committer "))
    when = max(made, front.facts.seconds)
    author, *encoding = (it for it in lines if it.startswith(_KEPT))
    ours = (f"tree {tree}", f"parent {front.commit}", author)
    text = "\n".join((*ours, f"committer {NAME} <{EMAIL}> {when} +0000", *encoding, "", message))
    return Front(written_commit(repos, text), Facts(tree, when))
