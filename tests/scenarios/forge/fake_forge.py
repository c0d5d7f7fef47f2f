"""A forge in memory, with people and CI that a test plays, over the small git of the train."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from lockgate.adapters.store.pulls import SqlPulls
from lockgate.core.forge.model import (
    Access,
    Check,
    CheckState,
    Comment,
    Failure,
    Identity,
    Issue,
    Person,
    Pull,
    Relation,
    Review,
    ReviewState,
    Rules,
    Seen,
    Unknown,
)
from lockgate.core.forge.pace import Budget
from lockgate.core.model.task import Task, TaskId
from lockgate.core.train.model import Commit, Tree
from lockgate.errors import Unavailable
from lockgate.ports import Candidate, Change, Project
from lockgate.ports.forge import (
    Asked,
    Forge,
    How,
    Merged,
    Moved,
    NewPull,
    NotYet,
    OfferedCommit,
    Overwrites,
    PullRequest,
    Pushed,
    Refused,
    Verdict,
)
from lockgate.ports.train import Target
from lockgate.services.train.intake import IssueIntake
from lockgate.services.train.offers import Offers
from lockgate.services.train.pull_control import PullControl
from lockgate.services.train.pulls import PullRequests
from lockgate.services.train.view import TrainView
from tests.scenarios.train.fake_yard import FakeYard, Railway, Works

PULLS = 'target = "pull_request"\n[forge]\nsettle = 60\n'
START = 1_900_000_000.0
ANN = Person("ann")
ASKS = Rules(checks=("build",), approvals=1, pull_request=True)
ME = Identity(login="lockgate[bot]", kind="app", repo="github.com/o/r")


@dataclass
class FakePullYard:
    """Branches of the remote, each commit with its parents."""

    yard: FakeYard
    branches: dict[str, Commit] = field(default_factory=dict)
    parents: dict[str, tuple[Commit, ...]] = field(default_factory=dict)
    refuses: str = ""
    merges: dict[str, Merged] = field(default_factory=dict)

    def compose(self, target: Target, it: OfferedCommit) -> Commit:
        commit = Commit(f"[{it.tree[:6]} on {' and '.join(it.parents)}]")
        self.yard.content[commit] = self.yard.content[it.like]
        self.parents[commit] = it.parents
        return commit

    def push_branch(
        self, target: Target, branch: str, commit: Commit, expected: Commit | None
    ) -> Pushed | Overwrites | Refused:
        if self.refuses:
            return Refused(self.refuses)
        if self.branches.get(branch) == commit:
            return Pushed()
        if self.branches.get(branch) != expected:
            return Overwrites()
        self.branches[branch] = commit
        return Pushed()

    def branch_at(self, target: Target, branch: str) -> Commit | None:
        return self.branches.get(branch)

    def reaches(self, commit: Commit, other: Commit) -> bool:
        return commit == other or any(
            self.reaches(it, other) for it in self.parents.get(commit, ())
        )

    def relation(self, target: Target, pushed: Commit, head: Commit) -> Relation:
        if self.reaches(head, pushed):
            return Relation.AHEAD
        return Relation.BEHIND if self.reaches(pushed, head) else Relation.REWRITTEN

    def fork(self, target: Target, head: Commit) -> Commit | None:
        while self.parents.get(head):
            head = self.parents[head][-1]
        return head if head in self.yard.history else None

    def bring(self, target: Target, branch: str, head: Commit) -> None: ...

    def tree_of(self, target: Target, commit: Commit) -> Tree | None:
        return self.yard.tree(commit) if commit in self.yard.content else None

    def contains(self, target: Target, commit: Commit, other: Commit) -> bool:
        return self.reaches(commit, other)

    def delete_branch(self, target: Target, branch: str, expected: Commit) -> bool:
        return self.branches.pop(branch, None) == expected

    def merged(self, target: Target, merge: Commit, head: Commit) -> Merged | None:
        return self.merges.get(merge)


@dataclass
class FakeForge:
    """What people and CI do is set by a test; each write is counted."""

    git: FakePullYard
    pulls: dict[int, Seen] = field(default_factory=dict)
    branch_of: dict[int, str] = field(default_factory=dict)
    asks: Rules = ASKS
    me: Identity = ME
    old: dict[int, str] = field(default_factory=dict)  # a head that its answers still show
    checked: dict[int, str] = field(default_factory=dict)  # the head that CI judged
    failed: tuple[Failure, ...] = ()
    writers: set[str] = field(default_factory=lambda: {"ann"})
    said: list[str] = field(default_factory=list)
    lost: set[str] = field(
        default_factory=set
    )  # writes that happen, and whose answer does not come
    issues_: dict[int, Issue] = field(default_factory=dict)
    silent: bool = False
    lands: Asked | NotYet | Moved = field(default_factory=Asked)
    at: float = START
    leaves: Budget = field(default_factory=Budget)
    looks: int = 0
    costs: int = 0  # of the limit, a look

    def wrote(self, word: str, more: str = "") -> None:
        self.said.append(f"{word} {more}".strip())
        if word in self.lost:
            self.lost.discard(word)
            raise Unavailable("the forge did not answer", why="502", fix="wait")

    def budget(self) -> Budget:
        return self.leaves

    def whoami(self) -> Identity:
        return self.me

    def rules(self, branch: str) -> Rules:
        if self.silent:
            raise Unavailable("the forge was not asked", why="it is silent", fix="wait")
        return self.asks

    def find(self, branch: str) -> PullRequest | None:
        for number, it in self.pulls.items():
            if self.branch_of[number] == branch:
                return PullRequest(number=number, head=it.head, url=it.url, open=it.open)
        return None

    def open(self, new: NewPull) -> PullRequest:
        number = 12 + len(self.pulls)
        url = f"https://github.com/o/r/pull/{number}"
        seen = Seen(number=number, head="", base=new.base, at=self.at, url=url, body=new.body)
        self.pulls[number], self.branch_of[number] = replace(seen, mergeable=True), new.branch
        self.sees(number, draft=new.draft)
        self.wrote("open", f"{number}: {new.title}{' as a draft' if new.draft else ''}")
        return PullRequest(number=number, head="", url=url)

    def amend(self, number: int, *, body: str = "", reopen: bool = False) -> None:
        self.said.append(f"{'reopen' if reopen else 'amend'} {number}")
        if reopen:
            self.sees(number, open=True)

    def ready(self, number: int) -> None:
        self.wrote("ready", str(number))
        self.sees(number, draft=False)

    def look(self, numbers: Iterable[int]) -> Mapping[int, Seen | Unknown]:
        self.looks += 1
        self.leaves = replace(self.leaves, paid=self.leaves.paid + self.costs)
        return {number: self.seen(number) for number in numbers}

    def seen(self, number: int) -> Seen:
        it = self.pulls[number]
        there = self.git.branches.get(self.branch_of[number], Commit(it.head))
        head = Commit(it.head) if it.merged else Commit(self.old.get(number, there))
        checks = it.checks if self.checked.get(number) == head else ()
        return replace(it, head=head, at=self.at, checks=checks)

    def failures(self, seen: Seen, checks: Sequence[Check]) -> tuple[Failure, ...]:
        return self.failed

    def rerun(self, seen: Seen, checks: Sequence[Check]) -> None:
        self.said.append(f"rerun {', '.join(it.name for it in checks)}")

    def report(self, commit: str, verdict: Verdict) -> None:
        where = "" if commit in self.git.branches.values() else f" on {commit}"
        self.wrote("report", f"{verdict.target} {verdict.passed}{where}")

    def land(self, number: int, head: str, how: How) -> Asked | NotYet | Moved:
        if isinstance(self.lands, Asked):
            self.merge(number)
        self.wrote("land", f"{number} {how}")
        return self.lands

    def reply(self, number: int, thread: int, words: str) -> None:
        if f"reply {thread}: {words}" not in self.said:
            self.wrote("reply", f"{thread}: {words}")

    def issues(self, label: str, since: str) -> tuple[Issue, ...]:
        return tuple(self.issues_.values())

    def comment(self, issue: int, key: str, words: str) -> None:
        self.said.append(f"comment {issue}: {words}")

    def close_issue(self, number: int) -> None:
        self.said.append(f"close issue {number}")

    def may(self, login: str) -> Access:
        return Access.WRITE if login in self.writers else Access.READ

    # What people and CI do.

    def sees(self, number: int, **fields: object) -> None:
        self.pulls[number] = replace(self.pulls[number], **fields)

    def ci(self, number: int, state: CheckState, base: CheckState = CheckState.PASSED) -> None:
        checks, base_checks = ((Check("build", it, 7),) for it in (state, base))
        self.checked[number] = self.seen(number).head
        self.sees(number, checks=checks, base_checks=base_checks)

    def review(self, number: int, state: ReviewState, body: str = "", by: Person = ANN) -> None:
        known = self.pulls[number].reviews
        one = Review(id=100 + len(known), by=by, state=state, body=body, at=self.at)
        self.sees(number, reviews=(*known, one))

    def comments(self, number: int, body: str, by: Person = ANN) -> None:
        known = self.pulls[number].comments
        one = Comment(id=200 + len(known), by=by, body=body, updated=self.at, path="a.txt", line=1)
        self.sees(number, comments=(*known, one))

    def pushes(self, number: int, feature: str, *, over: bool = False) -> Commit:
        """A person's commit on top of the branch, or in place of what is there."""
        branch = self.branch_of[number]
        head = self.git.branches[branch]
        commit = Commit(f"{head} and {feature} by ann")
        self.git.yard.content[commit] = self.git.yard.content[head] | {feature}
        self.git.parents[commit] = (self.git.yard.history[0],) if over else (head,)
        self.git.branches[branch] = commit
        return commit

    def merge(self, number: int, *, adds: str = "", whole: bool = True) -> Commit:
        """The target has it, in a commit of the forge's own."""
        yard, branch = self.git.yard, self.branch_of[number]
        head, tip = self.git.branches[branch], yard.history[-1]
        commit = Commit(f"merge of {number} on {tip}")
        yard.content[commit] = yard.content[tip] | yard.content[head] | ({adds} if adds else set())
        yard.history.append(commit)
        tree = yard.tree(commit)
        self.git.merges[commit] = Merged(commit=commit, tree=tree, onto=tip, whole=whole)
        self.sees(number, merged=True, open=False, merge_commit=commit, head=head)
        return commit


class PullWorks(Works):
    """A person's commits are changes too."""

    def change(self, it: Candidate) -> Change:
        return Change(it.commit, ("theirs.txt",), f"patch of {it.commit}")


class Harbour(Railway):
    """A railway whose target takes pull requests."""

    def __init__(self, place: Path, mode: str = "auto", more: str = "") -> None:
        self.forge: FakeForge | None = None
        super().__init__(place, mode, more=PULLS + more)

    def restart(self) -> None:
        if self.forge is None:
            self.git = FakePullYard(self.yard)
            self.forge = FakeForge(self.git)
            self.stage.workspaces = PullWorks(self.stage.world.home, self.yard)
        super().restart()
        self.connect()

    @property
    def hub(self) -> FakeForge:
        assert self.forge
        return self.forge

    @property
    def rows(self) -> SqlPulls:
        return SqlPulls(self.stage.app.store.database)

    def view(self, log: object = None, yard: object = None) -> TrainView:
        return replace(super().view(log, yard), pulls=self.rows)

    @property
    def intake(self) -> IssueIntake:
        return IssueIntake(view=self.view(), pulls=self.rows, tasks=self.stage.app.tasks)

    @property
    def control(self) -> PullControl:
        return PullControl(
            view=self.view(),
            pulls=self.rows,
            yard=self.git,
            coordinator=self.stage.app.coordinator,
            forge_of=lambda _project: self.hub,
            intake=self.intake,
        )

    def connect(self) -> None:
        app, lander = self.stage.app, self.trains.lander
        offers = Offers(
            pulls=self.rows, yard=self.git, coordinator=app.coordinator, clock=self.stage.time
        )

        def forge_of(_project: Project) -> Forge:
            return self.hub

        self.requests = PullRequests(
            view=self.view(),
            offers=offers,
            lander=lander,
            workspaces=self.stage.workspaces,
            forge_of=forge_of,
            intake=self.intake.sync,
            nudge=self.trains.nudge,
        )
        self.stage.loop.crew.forge = self.requests

    def later(self, seconds: float = 150.0) -> None:
        """Time passes at the forge as well as here, and everything has its turn."""
        self.hub.at += seconds
        self.turn(seconds)
        self.turn(1)

    def pull(self, id: TaskId) -> Pull:
        found = self.rows.of(id)
        assert found
        return found

    def offered(self, branch: str = "a") -> TaskId:
        """A change that is shown as a pull request, with green CI."""
        id = self.ready(branch)
        self.opens()
        self.later(1)
        self.hub.ci(self.pull(id).number, CheckState.PASSED)
        return id

    def approve(self, id: TaskId) -> Task:
        self.hub.review(self.pull(id).number, ReviewState.APPROVED)
        self.later()
        return self.task(id)


def harboured(place: Path, mode: str = "auto", more: str = "") -> Iterator[Harbour]:
    it = Harbour(place, mode, more)
    yield it
    it.close()


__all__ = ["ANN", "Harbour", "Tree", "harboured"]
