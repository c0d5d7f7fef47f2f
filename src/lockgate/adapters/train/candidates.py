"""Changes put onto a commit: merged, squashed or replayed, each in its own commit of ours.

No commit of ours is older than what it is on. A change that the target contains already is merged
all the same, so that every landed change has a commit for its evidence; squashed or replayed, or
where the target has a commit of its task already, it adds nothing.
"""

import hashlib
import secrets
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.train.git import answered, asked, failed, scripted, signed_commit
from lockgate.adapters.workspaces.git import git, told, user_of
from lockgate.adapters.workspaces.git_files import write_commit
from lockgate.adapters.workspaces.repositories import Repositories, writing
from lockgate.core.config.settings import MergeStrategy
from lockgate.core.model.commits import (
    LOCKGATE,
    NOBODY,
    TASK_TRAILER,
    Byline,
    Person,
    byline,
    person_in,
    with_trailers,
)
from lockgate.core.train.model import Commit, Conflict, Tree
from lockgate.errors import Unavailable
from lockgate.ports import Project
from lockgate.ports.train import Load, Reverts, Span, Target

# Merging two commits of a bare repository, without a work tree.


MOST_FILES = 50  # that a conflict names
MOST_COMMITS = 20  # that the message of a revert names


# In a repository, onto a commit, another: when that one was made, then how the two merge.
_MERGE = """\
export GIT_DIR="$1"
git rev-list --no-walk --no-commit-header --format=%ct "$3" &&
exec git merge-tree --write-tree -z --name-only --messages "$2" "$3"
"""


class Merged(Struct, frozen=True):
    """`made` is when the commit was made that was merged onto the other, in seconds."""

    tree: Tree
    made: int


class Clash(Struct, frozen=True):
    """In these files; in none of them where the two have no history in common."""

    files: tuple[str, ...] = ()


def merged(judge: Path, one: Commit, other: Commit) -> Merged | Clash:
    done = scripted(_MERGE, str(judge), one, other)
    made, _, said = done.out.partition("\n")
    if done.code == 0:
        return Merged(Tree(said.split("\0", 1)[0]), int(made))
    if done.code == 1 and "\0" in said:
        return Clash(_files(said, (f"~{one}", f"~{other}")))
    what = f"{other} was not merged onto {one}"
    if "unrelated histories" not in done.err:
        raise failed(what, done)
    if (judge / "shallow").exists():
        why, fix = "the history that they share is cut off here", "git fetch --unshallow"
        raise Unavailable(what, why=why, fix=fix)
    return Clash()


def _files(said: str, moved: tuple[str, ...]) -> tuple[str, ...]:
    """A file that git would move out of a directory's way counts under its own name."""
    found: set[str] = set()
    for name in (*_listed(said), *_told(said)):
        end = next((it for it in moved if it in name), "")
        found.add(name.partition(end)[0] if end else name)
    return tuple(sorted(found))[:MOST_FILES]


def _listed(said: str) -> list[str]:
    return said.split("\0\0", 1)[0].split("\0")[1:]


def _told(said: str) -> Iterator[str]:
    """Each message is the number of its paths, they themselves, its kind and its text."""
    fields = iter(said.partition("\0\0")[2].split("\0"))
    for count in fields:
        if not count.strip().isdigit():
            return
        paths = [next(fields, "") for _ in range(int(count))]
        kind, _ = next(fields, ""), next(fields, "")
        if kind.startswith("CONFLICT"):
            yield from paths


# What judge.git is known to have whole: tips of targets and candidates, each kept by a ref.
#
# A commit alone proves nothing: a copy that was killed may have left it without what it reaches.


_TRAIN = "refs/lockgate/train"
_FACTS = ("rev-list", "--no-walk", "--no-commit-header", "--format=%T %ct")
_FEED = 'file=$1 && shift && exec git "$@" <"$file"'


class Facts(Struct, frozen=True):
    """Of a commit: its tree, and when it was made."""

    tree: Tree
    seconds: int


def name_of(target: Target) -> str:
    named = f"{target.project.id}\0{target.remote}\0{target.branch}"
    return hashlib.sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def mark_of(target: Target, commit: Commit) -> str:
    return f"{_TRAIN}/{name_of(target)}/{commit}"


def mark(repos: Repositories, target: Target, commit: Commit) -> None:
    """Under `writing`. Where git keeps refs in files, this is how it writes one."""
    name, what = mark_of(target, commit), f"candidate {commit} was not kept"
    if not (repos.judge / "refs" / "heads").is_dir():
        answered(what, repos.judge, "update-ref", name, commit)
        return
    place = repos.judge / name
    lock = place.with_name(f"{commit}.lock")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        lock.write_text(f"{commit}\n", encoding="ascii")
        lock.rename(place)
    except OSError as error:
        raise Unavailable(what, why=str(error), fix="see that the disk has room") from error


def marked(repos: Repositories, target: Target, commit: Commit) -> Facts | None:
    """None where judge.git may not have it whole."""
    done = asked(repos.judge, *_FACTS, mark_of(target, commit), "--")
    return _read(done.out) if done.code == 0 else None


def facts_of(judge: Path, commit: Commit) -> Facts:
    return _read(answered(f"{commit} was not looked up", judge, *_FACTS, commit, "--"))


def unmark(repos: Repositories, target: Target, keep: Iterable[Commit]) -> None:
    kept, listing = set(keep), ("for-each-ref", "--format=%(refname)")
    what = f"the candidates for {target.branch} were not pruned"
    refs = answered(what, repos.judge, *listing, f"{_TRAIN}/{name_of(target)}/").splitlines()
    dropped = [f"delete {it}\n" for it in refs if it.rpartition("/")[2] not in kept]
    if dropped:
        with writing(repos):
            _fed(what, repos, "".join(dropped), "update-ref", "--stdin")


def _read(said: str) -> Facts:
    tree, seconds = said.split()
    return Facts(Tree(tree), int(seconds))


def _fed(what: str, repos: Repositories, text: str, *argv: str) -> str:
    file = repos.directory / f".train-{secrets.token_hex(4)}"
    try:
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
        done = scripted(_FEED, str(file), f"--git-dir={repos.judge}", *argv)
    finally:
        file.unlink(missing_ok=True)
    if done.code != 0:
        raise failed(what, done)
    return done.out


_KEPT = ("author ", "encoding ")  # of a replayed commit's head; a signature would not hold


class Hand(Struct, frozen=True):
    """Who makes the commits of the train, and how they are signed."""

    project: Project | None
    person: Person = LOCKGATE
    user: Person = NOBODY
    signs: bool = False
    signoff: bool = False

    def by(self, load: Load) -> Byline:
        """Of a change that lands as one commit."""
        if not load.agent:
            return Byline(self.person, self.person)
        return byline(self.user, load.agent, load.author, signoff=self.signoff)

    @property
    def merging(self) -> Byline:
        """Of a merge: its parents say whose work it is."""
        given = self.signoff and self.user.name and self.user.email
        signed = (f"Signed-off-by: {self.user}",) if given else ()
        return Byline(self.person, self.person, signed)


US = Hand(None)


def hand_of(target: Target, *, signoff: bool) -> Hand:
    user = user_of(target.project)
    named = person_in(target.identity) or user.person
    known = named if named.name and named.email else LOCKGATE
    return Hand(target.project, known, user.person, user.signs, signoff)


class Landed(Struct, frozen=True):
    strategy: MergeStrategy
    hand: Hand


class Front(Struct, frozen=True):
    """How far the candidate is: the next change goes onto this commit."""

    commit: Commit
    facts: Facts


class Replayed(Struct, frozen=True):
    """A commit of a change, as it was written, and the one that it was written on."""

    commit: Commit
    parent: Commit
    text: str


def put_all(
    repos: Repositories, front: Front, loads: Sequence[Load], how: Landed
) -> Front | Conflict:
    """One after the other, up to the first that does not merge."""
    for load in loads:
        found = _put_on(repos, front, load, how)
        if isinstance(found, Clash):
            return Conflict(load.task, files=found.files)
        front = found
    return front


def clash(repos: Repositories, one: Span, other: Span) -> tuple[str, ...]:
    """The files in which these two do not merge, each put onto the other by itself as well."""
    found = merged(repos.judge, one.commit, other.commit)
    if not isinstance(found, Clash):
        return ()
    onto_one, onto_other = _replayed(repos, other, one), _replayed(repos, one, other)
    return tuple(it for it in found.files if it in onto_one and it in onto_other)


def _replayed(repos: Repositories, change: Span, onto: Span) -> tuple[str, ...]:
    """The files in which what this change did to its base cannot be done to the other commit."""
    tree = facts_of(repos.judge, onto.commit).tree
    found = merged(repos.judge, _stand_in(repos, tree, change.base), change.commit)
    return found.files if isinstance(found, Clash) else ()


def reverted(repos: Repositories, front: Front, it: Reverts, hand: Hand) -> Front | Clash:
    """The front without the change, as `git revert` makes it; the front itself where none is left.

    A merge whose base is the commit with the change: theirs is the commit before it.
    """
    before, after = _span_of(repos, it)
    tree = facts_of(repos.judge, before).tree
    ours, theirs = (_stand_in(repos, it, after) for it in (front.facts.tree, tree))
    found = merged(repos.judge, ours, theirs)
    if isinstance(found, Clash) or found.tree == front.facts.tree:
        return found if isinstance(found, Clash) else front
    by, facts = hand.merging, Facts(found.tree, front.facts.seconds)
    author = f"author {by.author} {facts.seconds} +0000"
    told_of = f"{it.message.rstrip()}\n\n{_commits_told(repos, before, after)}"
    message = with_trailers(told_of, (f"Lockgate-Reverts: {it.task}", *by.trailers))
    return _committed(repos, facts, (front.commit,), Words((author,), message), hand)


def _span_of(repos: Repositories, it: Reverts) -> tuple[Commit, Commit]:
    """The commits between which the change came. Alone it is all that its landing brought."""
    if it.alone:
        return it.before, it.landed
    what = f"the commits of task {it.task} were not found"
    trailer = f"%H %(trailers:key={TASK_TRAILER},valueonly,separator=%x20)"
    line = ("log", "--first-parent", f"--format={trailer}", it.landed, f"^{it.before}", "--")
    for found in told(what, repos.judge, *line).splitlines():
        commit, _, task = found.partition(" ")
        if task.strip() == it.task:
            return Commit(f"{commit}^1"), Commit(commit)
    fork = git(repos.judge, "merge-base", it.before, it.change).out.strip()
    return Commit(fork or it.before), it.change


def _commits_told(repos: Repositories, before: Commit, after: Commit) -> str:
    """What the message of a revert says of the commits that it takes back."""
    what = f"the commits up to {after} were not listed"
    line = ("log", "--format=%h %s", f"--max-count={MOST_COMMITS}", after, f"^{before}", "--")
    found = told(what, repos.judge, *line).splitlines()
    return "\n".join(("It takes back:", *(f"  {it}" for it in found)))


def _put_on(repos: Repositories, front: Front, load: Load, how: Landed) -> Front | Clash:
    match how.strategy:
        case MergeStrategy.MERGE:
            found = _joined(repos, front, load, (front.commit, load.commit), how.hand)
            same = isinstance(found, Front) and found.facts.tree == front.facts.tree
            return front if same and _landed_before(repos, front, load) else found
        case MergeStrategy.SQUASH:
            found = _joined(repos, front, load, (front.commit,), how.hand)
            same = isinstance(found, Front) and found.facts.tree == front.facts.tree
            return front if same else found
        case MergeStrategy.REBASE:
            return _rebase(repos, front, load.commit, how.hand)


def _landed_before(repos: Repositories, front: Front, load: Load) -> bool:
    """A database that lost its last commits in a failover may have forgotten a landing."""
    what = f"the commits of task {load.task} were not looked for"
    named = f"--grep=^{TASK_TRAILER}: {load.task}$"
    line = ("log", "--first-parent", "--max-count=1", "--format=%H", named, front.commit, "--")
    return bool(told(what, repos.judge, *line).strip())


def _joined(
    repos: Repositories, front: Front, load: Load, parents: tuple[Commit, ...], hand: Hand
) -> Front | Clash:
    found = merged(repos.judge, front.commit, load.commit)
    if isinstance(found, Clash):
        return found
    facts = Facts(found.tree, max(found.made, front.facts.seconds))
    by = hand.merging if len(parents) > 1 else hand.by(load)
    author = f"author {by.author} {facts.seconds} +0000"
    words = load.message.encode("utf-8", "replace").decode().replace("\0", "").rstrip("\n")
    named = f"Merge {load.task}: " if len(parents) > 1 else ""
    message = with_trailers(f"{named}{words or '(no summary)'}", by.trailers)
    return _committed(repos, facts, parents, Words((author,), message), hand)


def _rebase(repos: Repositories, front: Front, change: Commit, hand: Hand) -> Front | Clash:
    """A merge in the change is replayed as what it brought to its first parent."""
    if git(repos.judge, "merge-base", front.commit, change).code != 0:
        found = merged(repos.judge, front.commit, change)  # says whether history is cut off
        return found if isinstance(found, Clash) else Clash()
    for step in _history(repos, front.commit, change):
        found = _moved(repos, front, step)
        if isinstance(found, Clash):
            return found
        if found.tree != front.facts.tree:
            front = _rewritten(repos, front, found, step, hand)
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
    return merged(repos.judge, _stand_in(repos, front.facts.tree, step.parent), step.commit)


def _stand_in(repos: Repositories, tree: Tree, parent: Commit) -> Commit:
    """A commit with this tree on that parent, so that git takes the parent as the merge's base."""
    words = Words((f"author {US.person} 0 +0000",), "lockgate\n")
    return _committed(repos, Facts(tree, 0), (parent,), words, US).commit


def _rewritten(
    repos: Repositories, front: Front, found: Merged, step: Replayed, hand: Hand
) -> Front:
    head, _, message = step.text.partition("\n\n")
    kept = tuple(it for it in head.split("\n") if it.startswith(_KEPT))
    facts = Facts(found.tree, max(found.made, front.facts.seconds))
    return _committed(repos, facts, (front.commit,), Words(kept, message), hand)


class Words(Struct, frozen=True):
    """In git's own words: `kept` is the author, and the encoding where there is one."""

    kept: tuple[str, ...]
    message: str


def _committed(
    repos: Repositories, facts: Facts, parents: tuple[Commit, ...], words: Words, hand: Hand
) -> Front:
    author, *encoding = words.kept
    lines = (f"tree {facts.tree}", *(f"parent {it}" for it in parents), author)
    ours = f"committer {hand.person} {facts.seconds} +0000"
    text = "\n".join((*lines, ours, *encoding, "", words.message))
    if hand.signs and hand.project:
        return Front(signed_commit(repos, hand.project, text), facts)
    return Front(Commit(write_commit(repos.judge, text)), facts)
