"""The train's repository: the port's methods, and moving a target by compare-and-swap.

A target is a branch of the user's repository, or one of a remote. Hooks do not run. After a push
the user's own branch of that name is left alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.run import Finished
from lockgate.adapters.train import targets
from lockgate.adapters.train.candidates import (
    Clash,
    Facts,
    Front,
    Landed,
    clash,
    facts_of,
    hand_of,
    mark,
    mark_of,
    put_all,
    reverted,
    unmark,
)
from lockgate.adapters.train.git import alone, in_checkout, scripted
from lockgate.adapters.train.notes import REF, notes_sound, put_note, read_note, rewrite_notes
from lockgate.adapters.train.pulls import needs_pull_request
from lockgate.adapters.train.targets import Pushes, ask_remote, look_here, ref_of, shown
from lockgate.adapters.workspaces.git import is_ancestor, told, words_of
from lockgate.adapters.workspaces.repositories import Repositories, repositories_of, writing
from lockgate.core.config.settings import MergeStrategy
from lockgate.core.hub import without
from lockgate.core.train.model import Built, Commit, Conflict
from lockgate.errors import Refused, Unavailable
from lockgate.ports import Load, Project
from lockgate.ports.hub import NO_HUB, Exchange
from lockgate.ports.train import (
    ANYBODY,
    TAKES_PULLS,
    Arrived,
    Elsewhere,
    InTheWay,
    Leave,
    Reverts,
    Span,
    Target,
)

MOST_KNOWN = 10_000
NOTE_TRIES = 5  # while other hosts write notes too


class GitYard:
    """The trains of all projects of one state directory.

    What it has seen of a commit it does not ask for again: that never changes.
    """

    def __init__(
        self,
        home: Path,
        pushes: Pushes | None = None,
        signoff: Callable[[], bool] = lambda: False,
        hub: Exchange = NO_HUB,
    ) -> None:
        self.home, self._pushes, self._signoff = home, pushes or Pushes(), signoff
        self._hub = hub
        self._known: dict[Commit, Facts] = {}  # those that judge.git has whole
        self._built_on: dict[Commit, Commit] = {}

    def tip(self, target: Target) -> Built:
        self._have_mirror(target.project)
        commit, repos = targets.look(target), self._of(target.project)
        known = self._known.get(commit)
        if known is None or targets.has_more_history(repos, target):
            known = targets.bring(repos, target, commit)
        self._remember(commit, known)
        return Built(commit, known.tree)

    def build(
        self, target: Target, onto: Commit, loads: Sequence[Load], strategy: MergeStrategy
    ) -> Built | Conflict:
        repos = self._of(target.project)
        self._bring(target, onto)
        for load in loads:
            self._hub.bring(target.project, (load.commit,), load.task)
        start = Front(onto, self._known.get(onto) or facts_of(repos.judge, onto))
        hand = hand_of(target, signoff=self._signoff())
        front = put_all(repos, start, loads, Landed(strategy, hand))
        if isinstance(front, Conflict):
            return front
        with writing(repos):
            mark(repos, target, front.commit)
        self._hub.send(target.project, {mark_of(target, front.commit): front.commit})
        self._remember(front.commit, front.facts, onto)
        return Built(front.commit, front.facts.tree)

    def revert(self, target: Target, onto: Commit, it: Reverts) -> Built | Conflict:
        repos = self._of(target.project)
        self._bring(target, onto)
        start = Front(onto, self._known.get(onto) or facts_of(repos.judge, onto))
        made = reverted(repos, start, it, hand_of(target, signoff=self._signoff()))
        if isinstance(made, Clash):
            return Conflict(it.task, files=made.files)
        with writing(repos):
            mark(repos, target, made.commit)
        self._hub.send(target.project, {mark_of(target, made.commit): made.commit})
        return Built(made.commit, made.facts.tree)

    def land(
        self, target: Target, expected: Commit, commit: Commit, leave: Leave = ANYBODY
    ) -> Arrived | Elsewhere | InTheWay:
        repos = self._of(target.project)
        self._bring(target, commit)
        if not self._was_built_on(commit, expected):
            refuse_loss(repos, target, expected, commit)
        return land(repos, target, Move(expected, commit, leave), self._pushes)

    def shut_out(self, target: Target, leave: Leave) -> bool:
        self._have_mirror(target.project)
        return self._pushes.shut_out(target, leave)

    def has(self, target: Target, commit: Commit) -> bool:
        self._have_mirror(target.project)
        if target.remote:
            targets.look(target)
        return targets.contains(target, commit)

    def lend(self, target: Target, commit: Commit) -> None:
        targets.lend(self._of(target.project), target, commit)

    def prune(self, target: Target, keep: Sequence[Commit]) -> None:
        """The tip stays too, so that it need not be brought again."""
        repos = self._of(target.project)
        if repos.judge.is_dir():
            unmark(repos, target, (*keep, *targets.seen(target)))
        there = self._hub.refs(target.project, f"{mark_of(target, Commit(''))}*")
        self._hub.send(target.project, {}, without(there, keep))

    def overlap(self, project: Project, one: Span, other: Span) -> tuple[str, ...]:
        """None where a change is at the hub no more: it landed, or was given up, days ago."""
        try:
            self._hub.bring(project, (one.commit, other.commit))
        except Unavailable:
            return ()
        return clash(self._of(project), one, other)

    def note(self, project: Project, commit: Commit, text: str) -> None:
        """Where other hosts write notes too, ours go on top of theirs."""
        for _ in range(NOTE_TRIES):
            self._hub.bring_notes(project, REF)
            put_note(self._of(project), project, commit, text)
            if self._hub.send_notes(project, REF):
                return
        why, fix = (
            f"{REF} moved there each time",
            "see that this host may push it; it is tried again",
        )
        raise Unavailable(f"the evidence of {commit} was not pushed", why=why, fix=fix)

    def note_of(self, project: Project, name: str) -> tuple[Commit, str | None] | None:
        """A hub that does not answer is no reason to know nothing."""
        with suppress(Unavailable):
            self._hub.bring_notes(project, REF)
        return read_note(project, name)

    def notes_sound(self, project: Project) -> bool:
        return notes_sound(project)

    def rewrite_notes(self, project: Project, notes: Mapping[Commit, str]) -> int:
        count = rewrite_notes(self._of(project), project, notes)
        self._hub.send_notes(project, REF, replace=True)
        return count

    def _have_mirror(self, project: Project) -> None:
        if project.url and not Path(project.common_dir).is_dir():
            self._hub.follow(project)

    def _bring(self, target: Target, commit: Commit) -> None:
        """A candidate that the leader before us has built, on its own host."""
        if target.project.url and commit not in self._known:
            self._hub.bring(target.project, (commit,))

    def _of(self, project: Project) -> Repositories:
        return repositories_of(self.home, project)

    def _was_built_on(self, commit: Commit, other: Commit) -> bool:
        """By this yard; of all else git must be asked."""
        while commit in self._built_on and commit != other:
            commit = self._built_on[commit]
        return commit == other

    def _remember(self, commit: Commit, facts: Facts, onto: Commit | None = None) -> None:
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
            self._built_on.clear()
        self._known[commit] = facts
        if onto is not None and onto != commit:
            self._built_on[commit] = onto


# The work trees of the user that show a branch: which they are, and how they follow it.
#
# Git's own fast-forward writes the files, then the index, then the branch, in one process. Killed
# in between, it leaves the branch where it was; what it has written is then the same as what is to
# land, and the next landing goes over it. `index.lock` names no owner, so it is never removed.


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


class Checkout(Struct, frozen=True):
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
        return InTheWay(why, files[:MOST_FILES], str(checkout.tree))
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


# What the second commit does not have of the first, from one repository to the other, then the rest
# of the line. A copy that was killed is simply made again.
_COPY = """\
printf '%s\\n^%s\\n' "$1" "$2" |
git --git-dir="$3" pack-objects --quiet --revs --sparse --window=0 --threads=1 --stdout |
git --git-dir="$4" unpack-objects -q && shift 4 && exec "$@"
"""


class Move(Struct, frozen=True):
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
    fix = "build it again on the target as it is now"
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


def _push(
    repos: Repositories, target: Target, move: Move, pushes: Pushes
) -> Arrived | Elsewhere | InTheWay:
    expected, commit = move.expected, move.commit
    done = _copied(repos, target, expected, commit, "true")
    if done.code == 0:
        done = pushes.push(target, expected, commit, move.leave)
    if done.code == 0:
        return Arrived()
    ask_remote(target)
    if look_here(target) == expected and needs_pull_request(done.out + done.err):
        return InTheWay(f'{target.branch} {TAKES_PULLS}: set [merge] target = "pull_request"')
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
