"""What is observed of a pull request and an issue, and what Lockgate keeps of its own part."""

from enum import StrEnum

from msgspec import Struct

from lockgate.core.model.task import ProjectId, TaskId

HOLD_LABEL = "lockgate:hold"
PREFIX = "pull request "  # how a hold of ours begins: a person's own hold is left alone


class Access(StrEnum):
    """What a person may do in the repository, as the forge's own answer says."""

    ADMIN = "admin"
    WRITE = "write"
    READ = "read"
    NONE = "none"

    @property
    def trusted(self) -> bool:
        return self in {Access.ADMIN, Access.WRITE}


class CheckState(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    UNJUDGED = "unjudged"  # cancelled, stale, startup failure, action required
    PENDING = "pending"


class Check(Struct, frozen=True):
    """One check or status of a commit; `id` is 0 for a status, which has no log."""

    name: str
    state: CheckState
    id: int = 0


class ReviewState(StrEnum):
    APPROVED = "APPROVED"
    CHANGES_REQUESTED = "CHANGES_REQUESTED"
    COMMENTED = "COMMENTED"
    DISMISSED = "DISMISSED"
    PENDING = "PENDING"


class Person(Struct, frozen=True):
    login: str
    bot: bool = False


class Review(Struct, frozen=True, kw_only=True):
    id: int
    by: Person
    state: ReviewState
    body: str = ""
    at: float = 0.0  # server time


class Comment(Struct, frozen=True, kw_only=True):
    """A comment on a line; `line` is None where the line is gone, `left` where it was deleted."""

    id: int
    by: Person
    body: str
    updated: float
    path: str
    line: int | None = None
    original_line: int | None = None
    left: bool = False
    hunk: str = ""
    review: int = 0
    thread: int = 0  # the first comment of its thread, to which a reply goes


class Remark(Struct, frozen=True, kw_only=True):
    """A comment of the conversation."""

    id: int
    by: Person
    body: str
    updated: float


class Seen(Struct, frozen=True, kw_only=True):
    """A pull request as one whole look found it. `at` is the server's time."""

    number: int
    head: str
    base: str
    at: float
    url: str = ""
    title: str = ""
    body: str = ""
    open: bool = True
    merged: bool = False
    merge_commit: str = ""
    draft: bool = False
    mergeable: bool | None = None
    blocked: bool = False  # the forge says that something keeps it, whatever that is
    labels: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    base_checks: tuple[Check, ...] = ()
    reviews: tuple[Review, ...] = ()
    comments: tuple[Comment, ...] = ()
    remarks: tuple[Remark, ...] = ()
    threads_open: int = 0
    place: int = 0  # in the forge's own merge queue; 0 where it is not in it
    dequeued: bool = False
    acted_by: str = ""  # who closed it, made it a draft or gave it another base, where known


class Unknown(Struct, frozen=True):
    """The look did not come to its end: nothing follows from it."""

    why: str


class Rules(Struct, frozen=True, kw_only=True):
    """What the target branch asks for."""

    checks: tuple[str, ...] = ()
    approvals: int = 0
    pull_request: bool = False  # a push to it is refused
    strict: bool = False
    queue: bool = False
    methods: tuple[str, ...] = ("merge", "squash", "rebase")
    signed: bool = False
    last_push: bool = False  # the approval of another than the last pusher
    threads: bool = False  # every thread must be resolved
    dismiss_stale: bool = False


class Identity(Struct, frozen=True, kw_only=True):
    """Who Lockgate is at the forge; `missing` names what the token may not do."""

    login: str
    kind: str  # app, fine-grained, classic
    host: str = "github.com"
    repo: str = ""
    sees_checks: bool = True
    may_push: bool = True
    missing: tuple[str, ...] = ()


class Failure(Struct, frozen=True, kw_only=True):
    """A failed job: the step that failed, the end of its log, its annotations as file:line."""

    check: str
    step: str = ""
    log: str = ""
    places: tuple["Annotation", ...] = ()
    url: str = ""


class Annotation(Struct, frozen=True):
    path: str
    line: int
    message: str


class Relation(StrEnum):
    """How the branch's head stands to the commit that Lockgate pushed last."""

    SAME = "same"
    AHEAD = "ahead"  # somebody pushed on top of it
    BEHIND = "behind"  # an old answer
    REWRITTEN = "rewritten"
    GONE = "gone"
    UNKNOWN = "unknown"


class Intent(StrEnum):
    """What Lockgate was about to do, written down before it began."""

    NONE = ""
    OFFER = "offer"  # push, and open the pull request where there is none
    MERGE = "merge"
    REOPEN = "reopen"
    CLOSE = "close"


class Pull(Struct, frozen=True, kw_only=True):
    """What is kept of a task's pull request; number 0 is one that is not open yet."""

    task: TaskId
    project: ProjectId
    branch: str = ""
    number: int = 0
    url: str = ""
    change: str = ""  # the candidate that `pushed` stands for
    pushed: str = ""
    tree: str = ""
    base: str = ""  # the newest target commit in `pushed`
    intent: Intent = Intent.NONE
    meant: str = ""  # the candidate of the train that is to be pushed, or the head to merge
    meant_tree: str = ""
    meant_base: str = ""
    delivered: tuple[str, ...] = ()  # `id@updated` of each comment that an agent got
    answered: tuple[int, ...] = ()  # threads to answer with the next push
    rounds: int = 0  # of reviews that sent it back
    reran: str = ""  # the head whose checks were run again once
    since: float = 0.0  # server time of the first look that saw `pushed`
    looked: float = 0.0  # our time of the last whole look
    waits: str = ""  # what it waits for
    whom: str = ""  # for whom, where people have to act
    ready: bool = False  # nothing is left to wait for: the train may land it
    strict: bool = False  # the target takes only what contains its tip
    queue: bool = False  # the forge's merge queue tests what it merges
    ci: str = ""  # for people
    reviews: str = ""
    silent_since: float = 0.0  # since when the forge does not answer; 0 where it does
    delivering: tuple[str, ...] = ()  # marks that a turn is about to hand on
    delivering_rev: int = 0  # the task's, before that turn
    asked: float = 0.0  # our time at which the forge was asked to merge
    refused: str = ""  # the head that the forge refused to merge, whatever is asked again
    refusal: str = ""  # in its words
    exact: bool = True  # what landed is the very tree that was tested
    unjudged: str = ""  # what was merged besides what gates judged
    theirs: str = ""  # a person's commit that was taken over; later work must contain it
    issue: str = ""
    etags: str = ""

    @property
    def link(self) -> str:
        """Its address; empty where that is none of the web."""
        return self.url if self.url.startswith(("https://", "http://")) else ""


class Issue(Struct, frozen=True, kw_only=True):
    """`labelled_by` gave it the label; `edited_since` says that its text changed after that."""

    number: int
    title: str
    body: str
    author: str
    url: str = ""
    open: bool = True
    labels: tuple[str, ...] = ()
    labelled_by: str = ""
    edited_since: bool = False
    comments: tuple[Remark, ...] = ()
    updated: float = 0.0


def is_offered(pull: Pull | None, change: str) -> bool:
    """Whether this very change is what the pull request shows."""
    return pull is not None and bool(pull.pushed) and pull.change == change


def waits_for(pull: Pull) -> str:
    """Why the train leaves an offered change alone; empty where it may land it."""
    match pull.intent:
        case Intent.OFFER:
            return "it is being offered as a pull request"
        case Intent.MERGE:
            return "the forge was asked to merge it"
        case Intent.REOPEN:
            return "its pull request is being reopened"
        case Intent.CLOSE | Intent.NONE:
            return "" if pull.ready else pull.waits or "its pull request was not looked at yet"


def mark_of(id: int, updated: float) -> str:
    """A comment as it was handed on: an edited one is another."""
    return f"{id}@{updated:.0f}"
