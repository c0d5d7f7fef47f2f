"""The port's methods, each one a few words over the modules beside this one."""

from collections.abc import Sequence
from pathlib import Path

from lockgate.adapters.train import landing, notes, targets
from lockgate.adapters.train.candidates import Front, put_on
from lockgate.adapters.train.marks import Facts, facts_of, mark, unmark
from lockgate.adapters.train.merges import Clash, merged
from lockgate.adapters.workspaces.repositories import Repositories, repositories_of, writing
from lockgate.core.settings import MergeStrategy
from lockgate.core.train_model import Built, Commit, Conflict
from lockgate.ports import Project
from lockgate.ports.train import Arrived, Elsewhere, InTheWay, Load, Target

MOST_KNOWN = 10_000


class GitYard:
    """The trains of all projects of one state directory.

    What it has seen of a commit it does not ask for again: that never changes.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self._known: dict[Commit, Facts] = {}  # those that judge.git has whole

    def tip(self, target: Target) -> Built:
        commit = targets.look(target)
        known = self._known.get(commit) or targets.bring(self._of(target.project), target, commit)
        self._remember(commit, known)
        return Built(commit, known.tree)

    def build(
        self, target: Target, onto: Commit, loads: Sequence[Load], strategy: MergeStrategy
    ) -> Built | Conflict:
        repos = self._of(target.project)
        front = Front(onto, self._known.get(onto) or facts_of(repos.judge, onto))
        for load in loads:
            found = put_on(repos, front, load, strategy)
            if isinstance(found, Clash):
                return Conflict(load.task, files=found.files)
            front = found
        with writing(repos):
            mark(repos, target, front.commit)
        self._remember(front.commit, front.facts)
        return Built(front.commit, front.facts.tree)

    def land(
        self, target: Target, expected: Commit, commit: Commit
    ) -> Arrived | Elsewhere | InTheWay:
        return landing.land(self._of(target.project), target, expected, commit)

    def has(self, target: Target, commit: Commit) -> bool:
        if target.remote:
            targets.look(target)
        return targets.contains(target, commit)

    def prune(self, target: Target, keep: Sequence[Commit]) -> None:
        """The tip stays too, so that it need not be brought again."""
        repos = self._of(target.project)
        if repos.judge.is_dir():
            unmark(repos, target, (*keep, *targets.seen(target)))

    def overlap(self, project: Project, one: Commit, other: Commit) -> tuple[str, ...]:
        found = merged(self._of(project).judge, one, other)
        return found.files if isinstance(found, Clash) else ()

    def note(self, project: Project, commit: Commit, text: str) -> None:
        notes.put_note(self._of(project), project, commit, text)

    def note_of(self, project: Project, name: str) -> tuple[Commit, str | None] | None:
        return notes.read_note(project, name)

    def _of(self, project: Project) -> Repositories:
        return repositories_of(self.home, project)

    def _remember(self, commit: Commit, facts: Facts) -> None:
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[commit] = facts
