"""Changes put onto a commit: merged, squashed or replayed, each in its own commit of ours.

No commit of ours is older than what it is on. A change that the target contains already is merged
all the same, so that every landed change has a commit for its evidence; squashed or replayed, it
adds nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lockgate.adapters.train.asking import EMAIL, NAME
from lockgate.adapters.train.loose import written_commit
from lockgate.adapters.train.marks import Facts
from lockgate.adapters.train.merges import Clash, Merged, merged
from lockgate.adapters.workspaces.hardened_git import git, told
from lockgate.adapters.workspaces.repositories import Repositories
from lockgate.core.config.settings import MergeStrategy
from lockgate.core.train.model import Commit, Conflict
from lockgate.ports.train import Load

_US = f"{NAME} <{EMAIL}>"
_KEPT = ("author ", "encoding ")  # of a replayed commit's head; a signature would not hold


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


def put_all(
    repos: Repositories, front: Front, loads: Sequence[Load], strategy: MergeStrategy
) -> Front | Conflict:
    """One after the other, up to the first that does not merge."""
    for load in loads:
        found = _put_on(repos, front, load, strategy)
        if isinstance(found, Clash):
            return Conflict(load.task, files=found.files)
        front = found
    return front


def clash(repos: Repositories, one: Commit, other: Commit) -> tuple[str, ...]:
    """The files in which these two do not merge."""
    found = merged(repos.judge, one, other)
    return found.files if isinstance(found, Clash) else ()


def _put_on(
    repos: Repositories, front: Front, load: Load, strategy: MergeStrategy
) -> Front | Clash:
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
    found = merged(repos.judge, front.commit, load.commit)
    if isinstance(found, Clash):
        return found
    facts = Facts(found.tree, max(found.made, front.facts.seconds))
    author = f"author {_US} {facts.seconds} +0000"
    words = load.message.encode("utf-8", "replace").decode().replace("\0", "").rstrip("\n")
    message = f"{words or '(no summary)'}\n"
    return _committed(repos, facts, parents, (author,), message)


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
            front = _rewritten(repos, front, found, step)
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
    facts = Facts(front.facts.tree, 0)
    author = f"author {_US} 0 +0000"
    stand_in = _committed(repos, facts, (step.parent,), (author,), "lockgate\n")
    return merged(repos.judge, stand_in.commit, step.commit)


def _rewritten(repos: Repositories, front: Front, found: Merged, step: Replayed) -> Front:
    head, _, message = step.text.partition("\n\n")
    kept = tuple(it for it in head.split("\n") if it.startswith(_KEPT))
    facts = Facts(found.tree, max(found.made, front.facts.seconds))
    return _committed(repos, facts, (front.commit,), kept, message)


def _committed(
    repos: Repositories,
    facts: Facts,
    parents: tuple[Commit, ...],
    kept: tuple[str, ...],
    message: str,
) -> Front:
    """In git's own words: `kept` is the author, and the encoding where there is one."""
    author, *encoding = kept
    lines = (f"tree {facts.tree}", *(f"parent {it}" for it in parents), author)
    ours = f"committer {_US} {facts.seconds} +0000"
    text = "\n".join((*lines, ours, *encoding, "", message))
    return Front(written_commit(repos, text), facts)
