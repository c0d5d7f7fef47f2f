"""Carries out what the train meant to do at a forge: push and open a pull request, or merge it.

What is meant is on disk before it begins; done twice, it finds what the first time left.
"""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.config.settings import ForgeSettings
from lockgate.core.forge.decide import (
    NeedPeople,
    TakeCommits,
    Wait,
    as_the_remote_has_it,
    merges_itself,
    of_other_head,
)
from lockgate.core.forge.findings import theirs_is_missing
from lockgate.core.forge.model import Intent, Pull, Relation, Rules, Seen
from lockgate.core.forge.summary import PEOPLE
from lockgate.core.forge.text import our_part, with_our_part
from lockgate.core.lifecycle import pulls as turns
from lockgate.core.lifecycle.decision import Decision, Declined, Evidence
from lockgate.core.model.task import Status, Task
from lockgate.core.train.model import Commit, Tree
from lockgate.errors import TurnDeclined
from lockgate.ports import Clock
from lockgate.ports.forge import (
    Asked,
    Forge,
    How,
    Moved,
    NewPull,
    NotYet,
    OfferedCommit,
    Overwrites,
    Pulls,
    PullYard,
    Pushed,
    Refused,
    Verdict,
)
from lockgate.services.task.coordinator import Coordinator
from lockgate.services.train.view import Train

Decide = Callable[[Evidence], Decision | Declined]


class Offers(Struct, frozen=True, kw_only=True):
    pulls: Pulls
    yard: PullYard
    coordinator: Coordinator
    clock: Clock

    def carry_out(self, train: Train, forge: Forge, pull: Pull, rules: Rules) -> Pull:
        """The row after it; what is meant for a task that has gone another way is dropped."""
        task = self.coordinator.store.find(pull.task)
        if task is None or task.status is not Status.REVIEWING:
            return self.keep(replace(pull, intent=Intent.NONE))
        match pull.intent:
            case Intent.OFFER:
                return self._offer(train, forge, pull, task)
            case Intent.MERGE:
                return self._merge(train, forge, pull, rules)
            case Intent.REOPEN:
                forge.amend(pull.number, reopen=True)
                return self.keep(replace(pull, intent=Intent.NONE))
            case Intent.CLOSE | Intent.NONE:
                return pull

    def draft(self, train: Train, forge: Forge, pull: Pull, task: Task) -> Pull:
        """Shown before the train has tested it; done twice, it is the same commit."""
        if self._lacks_theirs(train, pull, task):
            return self.keep(replace(pull, early=task.candidate))  # its offer sends it back
        commit = self.yard.compose(train.target, self._commit(train, pull, task))
        expected = Commit(pull.pushed) if pull.pushed else None
        pushed = self.yard.push_branch(train.target, pull.branch, commit, expected)
        if not isinstance(pushed, Pushed):
            return self.keep(replace(pull, early=task.candidate))  # its offer says what that means
        found = forge.find(pull.branch)
        if found is None or not found.open:
            found = forge.open(_new(train, pull, task, draft=True))
        shown = replace(pull, number=found.number, url=found.url, pushed=commit, change="")
        return self.keep(replace(shown, draft=True, early=task.candidate, base=pull.meant_base))

    def keep(self, pull: Pull) -> Pull:
        self.pulls.put(pull)
        return pull

    def turn(self, pull: Pull, decide: Decide) -> bool:
        """False where the task has gone another way meanwhile."""
        try:
            self.coordinator.turn(pull.task, decide)
        except TurnDeclined:
            return False
        return True

    def _offer(self, train: Train, forge: Forge, pull: Pull, task: Task) -> Pull:
        if self._lacks_theirs(train, pull, task):
            said = theirs_is_missing(pull.branch)
            self.turn(pull, lambda seen: turns.reviewed(seen, said, task.candidate, train.rules))
            return self.keep(replace(pull, intent=Intent.NONE))
        commit = self.yard.compose(train.target, self._commit(train, pull, task))
        expected = Commit(pull.pushed) if pull.pushed else None
        match self.yard.push_branch(train.target, pull.branch, commit, expected):
            case Pushed():
                return self._opened(train, forge, _pushed(pull, commit, task), task)
            case Overwrites():
                return self._not_ours(train, pull)
            case Refused(why):
                return self._needs_people(pull, f"its push was refused: {why}")

    def _lacks_theirs(self, train: Train, pull: Pull, task: Task) -> bool:
        """A person's commits must stay in what is pushed on top of them."""
        change, theirs = Commit(task.candidate), Commit(pull.theirs)
        return bool(theirs) and not self.yard.contains(train.target, change, theirs)

    def _commit(self, train: Train, pull: Pull, task: Task) -> OfferedCommit:
        base, pushed = Commit(pull.meant_base), Commit(pull.pushed)
        there = bool(pushed) and self.yard.contains(train.target, pushed, base)
        both = (pushed,) if there else (pushed, base)
        return OfferedCommit(
            tree=Tree(pull.meant_tree),
            parents=both if pushed else (base,),
            message=f"{task.goal}\n\nLockgate-Task: {task.id}\n",
            like=Commit(pull.meant),
            sign=train.settings.forge.sign,
        )

    def _not_ours(self, train: Train, pull: Pull) -> Pull:
        """Somebody pushed meanwhile: what is pushed next must have their commits in it."""
        if not pull.pushed:
            return self._needs_people(pull, f"a branch {pull.branch} exists and is not Lockgate's")
        target, pushed = train.target, Commit(pull.pushed)
        rests = replace(pull, intent=Intent.NONE)
        head = self.yard.branch_at(target, pull.branch) or ""
        found = self.yard.relation(target, pushed, Commit(head)) if head else Relation.GONE
        match of_other_head(as_the_remote_has_it(found, head, head), head):
            case TakeCommits(theirs):
                self.yard.bring(target, pull.branch, Commit(theirs))
                return self.keep(replace(rests, pushed=theirs, theirs=theirs, change=""))
            case NeedPeople(why):
                return self._needs_people(pull, why)
            case Wait(why):
                return self.keep(replace(rests, waits=why))

    def _needs_people(self, pull: Pull, why: str) -> Pull:
        self.turn(pull, lambda seen: turns.needs_people(seen, pull.number, why))
        kept = replace(pull, intent=Intent.NONE, ready=False, waits=why, whom=PEOPLE)
        return self.keep(kept)

    def _opened(self, train: Train, forge: Forge, pull: Pull, task: Task) -> Pull:
        """The push is on disk first: after a crash the pull request is searched, not made again."""
        self.keep(pull)
        ours, said = _body(pull, task), "pushed"
        found = forge.find(pull.branch)
        if found is None or not (found.open or pull.number):
            said = "opened"
            found = forge.open(_new(train, pull, task))
        else:
            forge.amend(found.number, body=with_our_part(found.body, ours))
        if pull.draft:
            forge.ready(found.number)
            pull = replace(pull, draft=False)
        forge.report(pull.pushed, Verdict(train.target.branch, passed=True, summary=PASSED))
        return self._told(forge, replace(pull, number=found.number, url=found.url), said)

    def _told(self, forge: Forge, pull: Pull, said: str) -> Pull:
        for thread in pull.answered:
            forge.reply(pull.number, thread, f"Answered in {pull.pushed[:12]}.")
        pull = self.keep(replace(pull, intent=Intent.NONE, answered=(), waits="CI"))
        self.turn(pull, lambda seen: turns.told(seen, pull.number, f"{said} as {pull.pushed[:12]}"))
        return pull

    def _merge(self, train: Train, forge: Forge, pull: Pull, rules: Rules) -> Pull:
        """Asked once; whether it was merged is for a look to say, also where no answer came."""
        if pull.asked or not _is_open(forge, pull.number):
            return pull
        how = _how(train, rules)
        match forge.land(pull.number, pull.pushed, how):
            case Asked():
                return self.keep(replace(pull, asked=self.clock.now()))
            case NotYet(why, final=True):
                told = f"the forge did not merge it: {why}"
                refused = replace(pull, refused=pull.pushed, refusal=why, intent=Intent.NONE)
                self.turn(pull, lambda seen: turns.refused(seen, pull.number, told))
                return self.keep(replace(refused, ready=False, waits=told, whom=PEOPLE))
            case NotYet(why):
                return self.keep(replace(pull, intent=Intent.NONE, ready=False, waits=why))
            case Moved():
                return self.keep(replace(pull, intent=Intent.NONE, ready=False, waits="a look"))


TITLE = 120  # characters
PASSED = "every gate of Lockgate passed on this tree"


def _pushed(pull: Pull, commit: Commit, task: Task) -> Pull:
    return replace(
        pull,
        pushed=commit,
        change=task.candidate,
        tree=pull.meant_tree,
        base=pull.meant_base,
        since=0.0,
        ready=False,
        waits="",
        whom="",
    )


def _new(train: Train, pull: Pull, task: Task, *, draft: bool = False) -> NewPull:
    return NewPull(
        branch=pull.branch,
        base=train.target.branch,
        title=" ".join(task.goal.split())[:TITLE],
        body=with_our_part("", _body(pull, task)),
        draft=draft,
    )


def _body(pull: Pull, task: Task) -> str:
    number = pull.issue.rpartition("#")[2]
    return our_part(
        goal=task.goal,
        gates=task.passed,
        rules=task.pinned.config_hash if task.pinned else "",
        usd=task.usd,
        task=task.id,
        closes=int(number) if number else 0,
    )


def _is_open(forge: Forge, number: int) -> bool:
    """As one look finds it just now; False where that look did not come to its end."""
    seen = forge.look([number]).get(number)
    return isinstance(seen, Seen) and not seen.merged


def _how(train: Train, rules: Rules) -> How:
    settings: ForgeSettings = train.settings.forge
    if rules.queue:
        return How.QUEUE
    if merges_itself(settings):
        return How.AUTO
    wanted = train.settings.merge.strategy
    return How(wanted if wanted in rules.methods or not rules.methods else rules.methods[0])
