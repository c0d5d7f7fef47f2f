"""Moves the target, once: what is meant is written down first, and looked at after a crash."""

import json
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import cast

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.core.forge.model import Intent, Pull
from lockgate.core.lifecycle import landing as train_turns
from lockgate.core.lifecycle.decision import Decision, Declined, Evidence
from lockgate.core.lifecycle.needs import RUN
from lockgate.core.model.facts import as_facts, canonical
from lockgate.core.model.task import Task, TaskId
from lockgate.core.train.model import (
    Built,
    Candidate,
    Change,
    Commit,
    Conflict,
    Drop,
    Fate,
    Land,
    Offer,
    SetAside,
    Term,
    fate,
)
from lockgate.errors import NotesBroken, TurnDeclined
from lockgate.ports import Arrived, Clock, Elsewhere, InTheWay, Landing, Leave
from lockgate.ports.forge import Merged
from lockgate.services.task.coordinator import Coordinator
from lockgate.services.train.view import Train, TrainView, span

RESULTS = 1000
BRANCHES = "lockgate"  # the branches of pull requests are below it
LEAST = 0.001  # seconds: 0 would mean that nothing is left open

Decide = Callable[[Evidence], Decision | Declined]


class Lander(Struct, frozen=True):
    view: TrainView
    coordinator: Coordinator
    clock: Clock
    term: Term = field(default_factory=Term)
    report: Callable[[str], None] = lambda _: None

    def recover(self, train: Train) -> float:
        """What was left open: the target tells whether it landed.

        In how many seconds to look again, or 0.
        """
        found = self.view.log.open_landings(train.name)
        if not found:
            return 0.0
        self.view.log.check_epoch(self.term.epoch)
        fates = [self._settled(train, it) for it in found]
        left = self.term.alone_from - self.clock.elapsed()
        return max(left, LEAST) if Fate.UNKNOWN in fates else 0.0

    def _settled(self, train: Train, landing: Landing) -> Fate:
        shut_out = landing.epoch < self.term.epoch and self.view.yard.shut_out(
            train.target, self._leave(landing)
        )
        there = self.view.yard.has(train.target, landing.commit)
        seen = fate(
            landing.epoch, self.term, there=there, shut_out=shut_out, now=self.clock.elapsed()
        )
        match seen:
            case Fate.LANDED:
                self._arrived(train, landing)
            case Fate.LOST:
                self._gave_up(train, landing)
            case Fate.UNKNOWN | Fate.NOT_OURS:
                pass
        return seen

    def _leave(self, landing: Landing) -> Leave:
        epoch = self.term.epoch
        return Leave(epoch, landing.number, lambda: self.view.log.check_epoch(epoch))

    def land(self, train: Train, step: Land) -> str:
        """Why it did not land and is to be tried again; nothing where it did, or never will so."""
        pull = self._pull(step.tasks[0]) if train.by_pull_request else None
        if pull:
            self._means(pull, Intent.MERGE, Built(Commit(pull.pushed), step.tree), step.expected)
            return ""
        meant = Landing(
            expected=step.expected,
            commit=step.commit,
            tree=step.tree,
            tasks=step.tasks,
            epoch=self.term.epoch,
        )
        landing = self.view.log.intend(train.name, meant, self.clock.now())
        if not self._departs(train, landing):
            self._gave_up(train, landing)
            return ""
        leave = self._leave(landing)
        match self.view.yard.land(train.target, step.expected, step.commit, leave):
            case Arrived():
                self._arrived(train, landing)
                return ""
            case Elsewhere():
                self._gave_up(train, landing)
                return ""
            case InTheWay() as found:
                self._gave_up(train, landing)
                return in_the_way(found)

    def offer(self, step: Offer) -> None:
        """Only written down here: another lane pushes it, and opens the pull request."""
        task = self.view.store.load(step.task)
        branch = f"{BRANCHES}/{task.id}"
        new = Pull(task=task.id, project=task.project, branch=branch)
        pull = self._pull(step.task) or new
        self._means(replace(pull, branch=branch), Intent.OFFER, step.built, step.base)

    def _means(self, pull: Pull, intent: Intent, built: Built, base: Commit) -> None:
        it = replace(pull, meant=built.commit, meant_tree=built.tree, meant_base=base)
        if self.view.pulls:
            self.view.pulls.put(replace(it, intent=intent, asked=0.0))

    def _pull(self, task: TaskId) -> Pull | None:
        return self.view.pulls.of(task) if self.view.pulls else None

    def merged(self, train: Train, task: Task, it: Merged) -> None:
        """The forge merged the change: that is its landing, and the target has it."""
        change = Change(task.id, Commit(task.candidate))
        candidate = Candidate(it.onto, (change,), Built(it.commit, it.tree))
        self.view.log.add_candidate(train.name, candidate)
        meant = Landing(
            expected=it.onto,
            commit=it.commit,
            tree=it.tree,
            tasks=(task.id,),
            epoch=self.term.epoch,
        )
        self._arrived(train, self.view.log.intend(train.name, meant, self.clock.now()))

    def send_back(self, train: Train, step: Drop | SetAside) -> None:
        match step:
            case Drop():
                self.view.yard.lend(train.target, train.tip.commit)
                self._turn(step.task, self._blamed(train, step))
            case SetAside(task, why):
                self._turn(task, lambda seen: train_turns.held(seen, why))

    def _blamed(self, train: Train, step: Drop) -> Decide:
        reason, change = step.reason, self.view.store.load(step.task).candidate
        named = reason.others if isinstance(reason, Conflict) else ()
        others = [it for it in (self.view.store.find(id) for id in named) if it]
        feedback = train_turns.met(reason, others, train.target.branch)
        return lambda seen: train_turns.sent_back(seen, feedback, change, train.rules)

    def with_others(self, train: Train, conflict: Conflict) -> Conflict:
        """Whose changes it is that this one does not merge with."""
        mine = self.view.store.load(conflict.task)
        known = (*self.view.waiting(mine.project), *self.view.landed_last(mine.project))
        there = [it for it in known if it.id != mine.id]
        project, own = train.target.project, span(mine)

        def overlaps(other: Task) -> bool:
            its = span(other)
            return bool(own and its and self.view.yard.overlap(project, own, its))

        return replace(conflict, others=tuple(it.id for it in there if overlaps(it)))

    def _departs(self, train: Train, landing: Landing) -> bool:
        changes = self._changes(train, landing)
        return all(
            self._turn(id, _departing(landing.commit, changes.get(id, ""))) for id in landing.tasks
        )

    def _arrived(self, train: Train, landing: Landing) -> None:
        changes = self._changes(train, landing)
        landed = [it for it in (self.view.store.find(id) for id in landing.tasks) if it]
        project = train.target.project
        self.view.configuration.landed(project, landing.expected, landing.commit, landed)
        if landing.commit != landing.expected:  # else it brought nothing, and the tip has its own
            self._note(train, landing, canonical(self._evidence(train, landing)))
        for id in landing.tasks:
            self._turn(id, _landing(landing.commit, changes.get(id, "")))
        self.view.log.settle(train.name, landing.number, landed=True, epoch=self.term.epoch)

    def _note(self, train: Train, landing: Landing, evidence: str) -> None:
        """Kept in the database first: where git has lost the notes, all are written again."""
        project = train.target.project
        self.view.log.keep_evidence(train.name, landing.number, evidence)
        try:
            self.view.yard.note(project, landing.commit, evidence)
        except NotesBroken as error:
            count = self.view.rewrite_notes(train.target)
            self.report(f"{error}; {count} notes in {project.name} were written again")

    def _gave_up(self, train: Train, landing: Landing) -> None:
        self.view.log.check_epoch(self.term.epoch)
        for id in landing.tasks:
            self._turn(id, lambda seen: train_turns.stays_here(seen, landing.commit))
        self.view.log.settle(train.name, landing.number, landed=False, epoch=self.term.epoch)

    def _turn(self, id: TaskId, decide: Decide) -> bool:
        """False where the task has gone another way meanwhile."""
        if self.view.store.find(id) is None:
            return False
        try:
            self.coordinator.turn(id, decide)
        except TurnDeclined:
            return False
        return True

    def _changes(self, train: Train, landing: Landing) -> dict[TaskId, Commit]:
        """The commit of each task that this landing brings."""
        found: dict[TaskId, Commit] = {}
        for it in self.view.log.candidates(train.name):
            if isinstance(it.outcome, Built) and it.outcome.commit == landing.commit:
                found.update({change.task: change.commit for change in it.changes})
        return found

    def _evidence(self, train: Train, landing: Landing) -> Mapping[str, object]:
        """What the landed commit's note says: which gates judged what, by which rules."""
        rules = self._rules(train, landing)
        proof = self.view.log.proof(train.name, rules, landing.tree)
        tasks = [it for it in (self.view.store.find(id) for id in landing.tasks) if it]
        unjudged = [it.reverts.unjudged for it in tasks if it.reverts and it.reverts.unjudged]
        return {
            "commit": landing.commit,
            "tree": landing.tree,
            "onto": landing.expected,
            "target": train.target.branch,
            "config_hash": rules,
            "train": json.loads(proof) if proof else [],
            "changes": [self._of_task(task) for task in tasks],
            **self._of_pull(landing.tasks[0]),
            **({"unjudged": unjudged[0]} if unjudged else {}),
        }

    def _of_pull(self, id: TaskId) -> Mapping[str, object]:
        pull = self._pull(id)
        if pull is None or not pull.number:
            return {}
        told = {"number": pull.number, "url": pull.url, "exact": pull.exact}
        return {"pull_request": {**told, **({"unjudged": pull.unjudged} if pull.unjudged else {})}}

    def _rules(self, train: Train, landing: Landing) -> str:
        """Those it was tested by are the rules of what it was put on, not of what it brings."""
        rules = self.view.configuration.rules_at
        return rules(train.target.project, landing.expected, train.target.branch).config_hash

    def _of_task(self, task: Task) -> Mapping[str, object]:
        records = self.view.store.gate_results(task.id, 0, RESULTS)
        judged = [it for it in records if _is_of(it.data, task.candidate)]
        return {
            "task": task.id,
            "summary": task.goal,
            **({"reverts": task.reverts.task} if task.reverts else {}),
            "change": task.candidate,
            "patch": task.patch,
            "config_hash": task.pinned.config_hash if task.pinned else "",
            "gates": [{"result": it.result, **it.data} for it in judged],
            "reviewers": list(self._reviewers(task)),
            "approvals": [as_facts(it) for it in task.approvals if it.patch == task.patch],
            "usd": task.usd,
            "tokens": task.tokens,
        }

    def _reviewers(self, task: Task) -> Iterable[str]:
        """Of the evaluation that passed."""
        sat = {(seat.name, seat.generation) for seat in task.seats}
        for session in self.view.store.sessions(task.id):
            if (session.seat, session.generation) in sat:
                yield f"{session.seat} by {session.agent}"


def in_the_way(found: InTheWay) -> str:
    """Why the target was not moved, with the command that puts such files away."""
    if not found.files:
        return found.why
    away = ("git", "-C", found.tree, "stash", "push", "--all", "--", *found.files)
    return f"{found.why}: {', '.join(found.files)}{RUN}{shlex.join(away)}"


def _is_of(result: Mapping[str, object], commit: str) -> bool:
    """Whether a gate's pass is one on this very commit."""
    proof = result.get("proof")
    return isinstance(proof, Mapping) and cast("Mapping[str, object]", proof)["commit"] == commit


def _departing(commit: Commit, change: str) -> Decide:
    return lambda seen: train_turns.departs(seen, commit, change)


def _landing(commit: Commit, change: str) -> Decide:
    return lambda seen: train_turns.landed(seen, commit, change)
