"""What the test server remembers: people, pull requests, issues, checks and rules."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

from tests.forge.bare import Bare

BOT = "lockgate[bot]"
NOT_MERGEABLE = "Pull Request is not mergeable"


@dataclass
class Comment:
    """Words under an issue, a pull request or at a line of it."""

    id: int
    author: str
    body: str
    created_at: str
    updated_at: str
    path: str = ""
    line: int | None = None
    original_line: int | None = None
    side: str = "RIGHT"
    hunk: str = ""
    commit: str = ""
    review: int | None = None
    answers: int | None = None
    resolved: bool = False


@dataclass
class Review:
    id: int
    author: str
    state: str  # APPROVED, CHANGES_REQUESTED, COMMENTED, DISMISSED
    body: str
    commit: str
    submitted_at: str


@dataclass
class Event:
    """A row of an issue's history."""

    id: int
    kind: str  # labeled, unlabeled, renamed, closed, reopened
    actor: str
    at: str
    label: str = ""
    before: str = ""
    after: str = ""


@dataclass
class Issue:
    """An issue, and the half of a pull request that is one."""

    number: int
    title: str
    body: str
    author: str
    created_at: str
    updated_at: str
    state: str = "open"
    closed_at: str | None = None
    labels: list[str] = field(default_factory=list)
    assignees: list[str] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    edited_at: str | None = None


@dataclass
class Pull:
    """The other half; `issue` has its title, body, labels and conversation."""

    issue: Issue
    head: str
    base: str
    sha: str
    draft: bool = False
    merged: bool = False
    merged_at: str | None = None
    merged_by: str | None = None
    merge_commit: str | None = None
    auto_merge: str | None = None  # the method
    place: int | None = None  # in the merge queue
    reviews: list[Review] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)

    @property
    def number(self) -> int:
        return self.issue.number


@dataclass(frozen=True)
class Annotation:
    path: str
    line: int
    message: str


@dataclass
class Check:
    """A check run; of Actions it is a job of a run too, with a log."""

    id: int
    sha: str
    name: str
    status: str = "completed"
    conclusion: str | None = "success"
    app: str = "github-actions"
    at: str = ""
    log: str | None = ""
    step: str = "Run tests"
    annotations: tuple[Annotation, ...] = ()
    title: str | None = None
    summary: str | None = None
    attempt: int = 1


@dataclass
class Status:
    id: int
    sha: str
    context: str
    state: str
    description: str | None
    creator: str
    at: str
    target_url: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What CI makes of the next head."""

    conclusion: str | None = "success"  # None: it does not end
    log: str | None = "ok\n"
    step: str = "Run tests"
    annotations: tuple[Annotation, ...] = ()


@dataclass
class Rules:
    """What protects the target."""

    pull_request: bool = True
    checks: tuple[str, ...] = ("build",)
    approvals: int = 1
    strict: bool = False
    queue: bool = False
    signatures: bool = False
    last_push: bool = False
    threads: bool = False
    classic: bool = False  # branch protection instead of a ruleset
    methods: tuple[str, ...] = ("merge", "squash", "rebase")


@dataclass(frozen=True)
class Token:
    login: str
    kind: str = "app"  # app, fine-grained, classic
    lacks: frozenset[str] = frozenset()  # permissions: checks, contents, actions …


class Github:
    """One repository and its people. Times are the server's own; `clock` may be moved."""

    def __init__(self, bare: Bare, owner: str, name: str) -> None:
        self.bare, self.owner, self.name = bare, owner, name
        self.rules = Rules()
        self.people: dict[str, str] = {"maria": "admin", "ben": "write", BOT: "write"}
        self.tokens: dict[str, Token] = {}
        self.issues: dict[int, Issue] = {}
        self.pulls: dict[int, Pull] = {}
        self.checks: list[Check] = []
        self.statuses: list[Status] = []
        self.ci: dict[str, deque[Outcome]] = {}
        self.ci_of_main: dict[str, Outcome] = {}  # what is not planned passes there
        self.queue: list[int] = []
        self.mergeable_unknown = False
        self.clock = timedelta()
        self.hint: Callable[[str, str, int], None] = lambda _event, _action, _number: None
        self._ids = count(1001)
        self._numbers = count(1)
        self._last = datetime(2020, 1, 1, tzinfo=UTC)

    # --- time and names ---

    def now(self) -> str:
        """The server's clock; no two writes have the same second, as if people were slow."""
        moment = datetime.now(UTC).replace(microsecond=0) + self.clock
        self._last = max(moment, self._last + timedelta(seconds=1))
        return self._last.strftime("%Y-%m-%dT%H:%M:%SZ")

    def date(self) -> datetime:
        """What the head of every answer says; never before what its body says."""
        return max(datetime.now(UTC) + self.clock, self._last)

    def new_id(self) -> int:
        return next(self._ids)

    def new_issue(self, title: str, body: str, author: str) -> Issue:
        at = self.now()
        issue = Issue(next(self._numbers), title, body, author, at, at)
        self.issues[issue.number] = issue
        return issue

    def touch(self, number: int) -> None:
        self.issues[number].updated_at = self.now()

    def access(self, login: str) -> str:
        return self.people.get(login, "read")

    # --- what follows from what happened ---

    def settle(self) -> None:
        """What GitHub does by itself: heads follow branches, CI starts, auto-merge merges."""
        heads = self.bare.heads()
        for pull in self.pulls.values():
            if pull.issue.state == "open":
                self._follow(pull, heads.get(pull.head))
        self._check_main(heads.get("main"))
        for pull in list(self.pulls.values()):
            if pull.issue.state == "open" and pull.auto_merge and self.state_of(pull) == "clean":
                self.merge(pull, pull.auto_merge, pull.issue.author)

    def _follow(self, pull: Pull, sha: str | None) -> None:
        if sha is None:
            self.close(pull.issue, "someone")
        elif sha != pull.sha:
            pull.sha = sha
            self.touch(pull.number)
            self.start_ci(sha)
            self.hint("pull_request", "synchronize", pull.number)

    def _check_main(self, tip: str | None) -> None:
        for name in self.ci if tip else ():
            if not any(it.sha == tip and it.name == name for it in self.checks):
                self.set_check(str(tip), name, self.ci_of_main.get(name, Outcome()))

    def start_ci(self, sha: str) -> None:
        """A new head takes the next planned outcome of each check; the last one repeats."""
        for name, outcomes in self.ci.items():
            if any(it.sha == sha and it.name == name for it in self.checks):
                continue
            outcome = outcomes.popleft() if len(outcomes) > 1 else outcomes[0]
            self.set_check(sha, name, outcome)

    def set_check(self, sha: str, name: str, outcome: Outcome) -> Check:
        old = [it for it in self.checks if (it.sha, it.name) == (sha, name)]
        check = Check(
            id=self.new_id(),
            sha=sha,
            name=name,
            status="completed" if outcome.conclusion else "in_progress",
            conclusion=outcome.conclusion,
            at=self.now(),
            log=outcome.log,
            step=outcome.step,
            annotations=outcome.annotations,
            attempt=len(old) + 1,
        )
        self.checks = [it for it in self.checks if it not in old] + [check]
        self.hint("check_run", "completed", 0)
        return check

    # --- what stands in the way of a merge ---

    def approved_by(self, pull: Pull) -> set[str]:
        """Whose last verdict is an approval; the author's own and readers' do not count."""
        last: dict[str, str] = {}
        for review in pull.reviews:
            if review.state != "COMMENTED":
                last[review.author] = review.state
        able = {
            who
            for who in last
            if self.access(who) in {"admin", "write"} and who != pull.issue.author
        }
        return {who for who in able if last[who] == "APPROVED"}

    def refused_by(self, pull: Pull) -> set[str]:
        last: dict[str, str] = {}
        for review in pull.reviews:
            if review.state != "COMMENTED":
                last[review.author] = review.state
        return {
            who
            for who, state in last.items()
            if state == "CHANGES_REQUESTED" and self.access(who) in {"admin", "write"}
        }

    def passed(self, sha: str) -> set[str]:
        green = {"success", "neutral", "skipped"}
        runs = {it.name for it in self.checks if it.sha == sha and it.conclusion in green}
        last = {it.context: it.state for it in self.statuses if it.sha == sha}
        return runs | {context for context, state in last.items() if state == "success"}

    def blocked(self, pull: Pull) -> str | None:
        """Why GitHub does not merge it."""
        missing = [name for name in self.rules.checks if name not in self.passed(pull.sha)]
        if missing:
            return f'Required status check "{missing[0]}" is expected.'
        if self.refused_by(pull):
            return "Changes must be made: a reviewer requested changes."
        if len(self.approved_by(pull)) < self.rules.approvals:
            return f"At least {self.rules.approvals} approving review is required."
        if self.rules.threads and any(
            it.answers is None and not it.resolved for it in pull.comments
        ):
            return "A conversation must be resolved before this pull request can be merged."
        if self.rules.signatures:
            return "Commits must have verified signatures."
        return None

    def state_of(self, pull: Pull) -> str:
        """GitHub's `mergeable_state`."""
        base = self.bare.tip(pull.base) or pull.sha
        if self.mergeable_unknown:
            return "unknown"
        if self.bare.merged_tree(base, pull.sha) is None:
            return "dirty"
        if pull.draft:
            return "draft"
        if self.blocked(pull):
            return "blocked"
        if self.rules.strict and self.bare.behind(base, pull.sha):
            return "behind"
        return "clean"

    # --- what happens ---

    def merge(self, pull: Pull, method: str, by: str, *, title: str | None = None) -> str:
        base = self.bare.tip(pull.base) or pull.sha
        message = title or f"{pull.issue.title} (#{pull.number})"
        landed = self.bare.land(base, pull.sha, method, message)
        self.bare.move(pull.base, landed)
        pull.merged, pull.merged_at, pull.merged_by = True, self.now(), by
        pull.merge_commit, pull.place, pull.auto_merge = landed, None, None
        pull.issue.state, pull.issue.closed_at = "closed", pull.merged_at
        self.touch(pull.number)
        self._close_what_it_names(pull)
        self.hint("pull_request", "closed", pull.number)
        return landed

    def _close_what_it_names(self, pull: Pull) -> None:
        for word in ("Closes", "Fixes", "Resolves"):
            for number, issue in self.issues.items():
                body = f"{pull.issue.body} "
                named = any(f"{word} #{number}{end}" in body for end in (" ", "\n", ".", "\r"))
                if named and number != pull.number and issue.state == "open":
                    self.close(issue, pull.merged_by or "")

    def close(self, issue: Issue, by: str) -> None:
        issue.state, issue.closed_at = "closed", self.now()
        issue.events.append(Event(self.new_id(), "closed", by, self.now()))
        self.touch(issue.number)
        self.hint(
            "pull_request" if issue.number in self.pulls else "issues", "closed", issue.number
        )

    def reopen(self, issue: Issue, by: str) -> None:
        issue.state, issue.closed_at = "open", None
        issue.events.append(Event(self.new_id(), "reopened", by, self.now()))
        self.touch(issue.number)

    def label(self, issue: Issue, label: str, by: str) -> None:
        if label not in issue.labels:
            issue.labels.append(label)
        issue.events.append(Event(self.new_id(), "labeled", by, self.now(), label=label))
        self.touch(issue.number)
        self.hint("issues", "labeled", issue.number)

    def unlabel(self, issue: Issue, label: str, by: str) -> None:
        issue.labels = [it for it in issue.labels if it != label]
        issue.events.append(Event(self.new_id(), "unlabeled", by, self.now(), label=label))
        self.touch(issue.number)
        self.hint("issues", "unlabeled", issue.number)

    def edit(self, issue: Issue, *, title: str | None, body: str | None, by: str) -> None:
        if title is not None and title != issue.title:
            row = Event(self.new_id(), "renamed", by, self.now(), before=issue.title, after=title)
            issue.events.append(row)
            issue.title = title
        if body is not None and body != issue.body:
            issue.body, issue.edited_at = body, self.now()
        self.touch(issue.number)
        self.hint("issues", "edited", issue.number)

    def say(self, issue: Issue, body: str, by: str) -> Comment:
        at = self.now()
        comment = Comment(self.new_id(), by, body, at, at)
        issue.comments.append(comment)
        self.touch(issue.number)
        self.hint("issue_comment", "created", issue.number)
        return comment

    def enqueue(self, pull: Pull) -> int:
        if pull.number not in self.queue:
            self.queue.append(pull.number)
        pull.place = self.queue.index(pull.number) + 1
        self.touch(pull.number)
        return pull.place
