"""The port's methods, each one a few words over the modules beside this one."""

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from lockgate.adapters.train import landing, targets
from lockgate.adapters.train.candidates import (
    Facts,
    Front,
    Landed,
    clash,
    facts_of,
    hand_of,
    mark,
    put_all,
    unmark,
)
from lockgate.adapters.train.git import alone, in_repository
from lockgate.adapters.train.pushes import Pushes
from lockgate.adapters.workspaces.git import git, told
from lockgate.adapters.workspaces.repositories import Repositories, repositories_of, writing
from lockgate.core.config.settings import MergeStrategy
from lockgate.core.train.model import Built, Commit, Conflict
from lockgate.ports import Arrived, Elsewhere, InTheWay, Leave, Load, Project, Target
from lockgate.ports.train import ANYBODY, Span

# The evidence beside a landed commit, as a git note in the user's repository.


_NOTES = ("notes", "--ref=refs/notes/lockgate")
_WHO = ("-c", "user.name=Lockgate", "-c", "user.email=lockgate@localhost")


def put_note(repos: Repositories, project: Project, commit: Commit, text: str) -> None:
    """Byte for byte; it replaces the one that is there. Two at once wait for each other."""
    theirs, what = Path(project.common_dir), f"the evidence of {commit} was not kept"
    file = repos.directory / f".note-{secrets.token_hex(4)}"
    repos.directory.mkdir(parents=True, exist_ok=True)
    try:
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
        blob = told(what, theirs, "hash-object", "-w", "--no-filters", "--", str(file)).strip()
    finally:
        file.unlink(missing_ok=True)
    with alone(project):
        add = ("add", "-f", "--allow-empty", "-C", blob, f"{commit}^{{commit}}")
        told(what, theirs, *_WHO, *_NOTES, *add)


def read_note(project: Project, name: str) -> tuple[Commit, str | None] | None:
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    meant = in_repository(project, *asked)
    if meant.code != 0:
        return None
    theirs, commit = Path(project.common_dir), meant.out.strip()
    found = git(theirs, *_NOTES, "list", commit)
    if found.code != 0:
        return Commit(commit), None
    what = f"the evidence of {commit} was not read"
    return Commit(commit), told(what, theirs, "cat-file", "blob", found.out.strip())


MOST_KNOWN = 10_000


class GitYard:
    """The trains of all projects of one state directory.

    What it has seen of a commit it does not ask for again: that never changes.
    """

    def __init__(
        self,
        home: Path,
        pushes: Pushes | None = None,
        signoff: Callable[[], bool] = lambda: False,
    ) -> None:
        self.home, self._pushes, self._signoff = home, pushes or Pushes(), signoff
        self._known: dict[Commit, Facts] = {}  # those that judge.git has whole
        self._built_on: dict[Commit, Commit] = {}

    def tip(self, target: Target) -> Built:
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
        start = Front(onto, self._known.get(onto) or facts_of(repos.judge, onto))
        hand = hand_of(target, signoff=self._signoff())
        front = put_all(repos, start, loads, Landed(strategy, hand))
        if isinstance(front, Conflict):
            return front
        with writing(repos):
            mark(repos, target, front.commit)
        self._remember(front.commit, front.facts, onto)
        return Built(front.commit, front.facts.tree)

    def land(
        self, target: Target, expected: Commit, commit: Commit, leave: Leave = ANYBODY
    ) -> Arrived | Elsewhere | InTheWay:
        repos = self._of(target.project)
        if not self._was_built_on(commit, expected):
            landing.refuse_loss(repos, target, expected, commit)
        return landing.land(repos, target, landing.Move(expected, commit, leave), self._pushes)

    def shut_out(self, target: Target, leave: Leave) -> bool:
        return self._pushes.shut_out(target, leave)

    def has(self, target: Target, commit: Commit) -> bool:
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

    def overlap(self, project: Project, one: Span, other: Span) -> tuple[str, ...]:
        return clash(self._of(project), one, other)

    def note(self, project: Project, commit: Commit, text: str) -> None:
        put_note(self._of(project), project, commit, text)

    def note_of(self, project: Project, name: str) -> tuple[Commit, str | None] | None:
        return read_note(project, name)

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
