"""What follows from one whole look at a pull request: a pure function, row by row of the design.

Only a fact of the head that Lockgate pushed counts; what is not known is neither green nor red.
The first question that has an answer decides.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from lockgate.core.config.settings import AutoMerge, CommentMode, ForgeSettings, MergeMode
from lockgate.core.forge.model import (
    HOLD_LABEL,
    Check,
    CheckState,
    Comment,
    Identity,
    Person,
    Pull,
    Relation,
    Remark,
    Review,
    ReviewState,
    Rules,
    Seen,
    mark_of,
)

TAKEN_OUT = "the merge queue of the forge took it out"
COMMANDS = ("fix", "hold", "retry")


class Case(Struct, frozen=True, kw_only=True):
    """All that a decision looks at; `trusted` are the logins that may write, as the forge said."""

    pull: Pull
    seen: Seen
    rules: Rules
    me: Identity
    target: str
    settings: ForgeSettings
    mode: MergeMode = MergeMode.MANUAL
    approved: bool = False  # a human let it land, here
    relation: Relation = Relation.SAME
    trusted: frozenset[str] = frozenset()


# Acts: what is to be done about it.


class Wait(Struct, frozen=True):
    """For a machine; it blocks nobody and needs nobody."""

    why: str


class NeedPeople(Struct, frozen=True):
    """A human is told; it is lifted by what they do."""

    why: str


class Ready(Struct, frozen=True):
    """Nothing is left to wait for: the train lands it."""


class CheckMerged(Struct, frozen=True):
    """The forge says merged; the fetched target decides whether the change is in it."""

    commit: str


class FetchFailures(Struct, frozen=True):
    """These checks failed here and pass on the target: their logs decide what is sent back."""

    checks: tuple[Check, ...]


class Rerun(Struct, frozen=True):
    """Nothing was judged: have the jobs run once more."""

    checks: tuple[Check, ...]


class SendBack(Struct, frozen=True):
    """People ask for changes; nobody is charged."""

    reviews: tuple[Review, ...]
    comments: tuple[Comment, ...]
    remarks: tuple[Remark, ...]

    @property
    def marks(self) -> tuple[str, ...]:
        return (
            *(mark_of(it.id, it.at) for it in self.reviews),
            *(mark_of(it.id, it.updated) for it in self.comments),
            *(mark_of(it.id, it.updated) for it in self.remarks),
        )


class TryMerge(Struct, frozen=True):
    """The forge says that it conflicts: our own merge names the files."""


class TakeCommits(Struct, frozen=True):
    """Somebody pushed on top of ours: gates judge their commit."""

    head: str


class Reopen(Struct, frozen=True):
    """A human approved it again after it was closed."""


Act = (
    Wait
    | NeedPeople
    | Ready
    | CheckMerged
    | FetchFailures
    | Rerun
    | SendBack
    | TryMerge
    | TakeCommits
    | Reopen
)


def decide(it: Case) -> Act:
    for question in _QUESTIONS:
        answer = question(it)
        if answer is not None:
            return answer
    return Ready()


def is_trusted(by: Person, it: Case) -> bool:
    """A bot only by its exact login; a person by the forge's answer about them."""
    return by.login in it.settings.bots if by.bot else by.login in it.trusted


def speakers(seen: Seen) -> frozenset[str]:
    """The people whose access has to be asked for before a decision."""
    said: tuple[Review | Comment | Remark, ...] = (*seen.reviews, *seen.comments, *seen.remarks)
    return frozenset(it.by.login for it in said if not it.by.bot)


def _ended(it: Case) -> Act | None:
    seen = it.seen
    if seen.merged and seen.base == it.target:
        return CheckMerged(seen.merge_commit)
    if seen.merged:
        return NeedPeople(f"it was merged into {seen.base}, not into {it.target}")
    if seen.open:
        return None
    if it.approved:
        return Reopen()
    who = f" by @{seen.acted_by}" if seen.acted_by else ""
    return NeedPeople(
        f"it was closed{who}: reopen it there or by `lockgate approve`, send it back by "
        "`lockgate queue drop`, or cancel the task"
    )


def _head(it: Case) -> Act | None:
    if it.relation is Relation.SAME and it.seen.head == it.pull.pushed:
        return None
    return of_other_head(it.relation, it.seen.head)


def of_other_head(relation: Relation, head: str) -> Wait | TakeCommits | NeedPeople:
    """The branch does not have what Lockgate pushed last: their commits stay, whatever they are."""
    match relation:
        case Relation.SAME | Relation.BEHIND | Relation.UNKNOWN:
            return Wait("the forge does not show the pushed commit yet")
        case Relation.AHEAD:
            return TakeCommits(head)
        case Relation.GONE:
            return NeedPeople("its branch was deleted: `lockgate pr restore` pushes it again")
        case Relation.REWRITTEN:
            return NeedPeople(
                "somebody rewrote its branch: `lockgate pr adopt` takes their commits, "
                "`lockgate pr restore` puts ours back"
            )


def as_the_remote_has_it(found: Relation, shown: str, there: str) -> Relation:
    """A head that the remote itself has is no old answer: what was on top of it was taken away."""
    return Relation.REWRITTEN if found is Relation.BEHIND and shown == there else found


def _kept(it: Case) -> Act | None:
    seen, who = it.seen, f" by @{it.seen.acted_by}" if it.seen.acted_by else ""
    if seen.base != it.target:
        return NeedPeople(f"it was given the base {seen.base}{who}; it is for {it.target}")
    if HOLD_LABEL in seen.labels:
        return NeedPeople(f"it has the label {HOLD_LABEL}{who}")
    if seen.draft:
        return NeedPeople(f"it was made a draft{who}")
    said = commands(it)
    if said and said[-1][0] == "hold":
        return NeedPeople(f"@{said[-1][1].by.login} said /lockgate hold; /lockgate retry lifts it")
    return None


def commands(it: Case) -> tuple[tuple[str, Remark], ...]:
    """The words for Lockgate of people who may write, in their order."""
    found: list[tuple[str, Remark]] = []
    for remark in it.seen.remarks:
        first = remark.body.strip().partition("\n")[0].split()
        named = len(first) >= 2 and first[0] == "/lockgate" and first[1] in COMMANDS  # noqa: PLR2004
        if named and is_trusted(remark.by, it):
            found.append((first[1], remark))
    return tuple(found)


def _asked(it: Case) -> Act | None:
    """Each word of a trusted person once, when nobody has said more for a while."""
    new = _undelivered(it)
    asks = [one for one in new.reviews if one.state is ReviewState.CHANGES_REQUESTED]
    acts = asks or new.remarks or (new.comments and it.settings.comments is CommentMode.ACT)
    if not acts:
        return None
    if it.pull.rounds >= it.settings.rounds:
        return NeedPeople(f"its reviews sent it back {it.pull.rounds} times: a human decides")
    last = max(
        (
            *(one.at for one in new.reviews),
            *(one.updated for one in new.comments),
            *(one.updated for one in new.remarks),
        )
    )
    if it.seen.at - last < it.settings.settle:
        return Wait("people are reviewing it")
    return new


def _undelivered(it: Case) -> SendBack:
    known = frozenset(it.pull.delivered)
    fixes = [remark for word, remark in commands(it) if word == "fix"]
    return SendBack(
        tuple(
            one
            for one in it.seen.reviews
            if one.state in {ReviewState.CHANGES_REQUESTED, ReviewState.COMMENTED}
            and (one.body.strip() or one.state is ReviewState.CHANGES_REQUESTED)
            and mark_of(one.id, one.at) not in known
            and is_trusted(one.by, it)
        ),
        tuple(
            one
            for one in it.seen.comments
            if mark_of(one.id, one.updated) not in known and is_trusted(one.by, it)
        ),
        tuple(one for one in fixes if mark_of(one.id, one.updated) not in known),
    )


def expected_checks(rules: Rules, seen: Seen) -> tuple[str, ...]:
    """The required ones; where none are required, those that the tip of the target has."""
    return rules.checks or tuple(dict.fromkeys(it.name for it in seen.base_checks))


def _ci(it: Case) -> Act | None:
    names = expected_checks(it.rules, it.seen)
    found = {check.name: check for check in it.seen.checks if check.name in names}
    red = {one.name for one in it.seen.base_checks if one.state is CheckState.FAILED}
    failed = [one for one in found.values() if one.state is CheckState.FAILED]
    own = tuple(one for one in failed if one.name not in red)
    if own:
        return FetchFailures(own)
    if failed:
        return Wait(f"CI of {it.target} is red: {', '.join(one.name for one in failed)}")
    unjudged = tuple(one for one in found.values() if one.state is CheckState.UNJUDGED)
    if unjudged:
        return _again(it, unjudged)
    late = [name for name in names if name not in found or found[name].state is CheckState.PENDING]
    return _late(it, late) if late else None


def _again(it: Case, unjudged: tuple[Check, ...]) -> Act:
    names = ", ".join(one.name for one in unjudged)
    if it.pull.reran != it.pull.pushed:
        return Rerun(unjudged)
    return NeedPeople(f"CI did not judge it, also when it ran again: {names}")


def _late(it: Case, late: Sequence[str]) -> Act:
    waited = it.seen.at - it.pull.since if it.pull.since else 0.0
    if waited >= it.settings.ci_wait:
        return NeedPeople(f"CI has given no result for {waited / 60:.0f} minutes: {late[0]}")
    return Wait(f"CI: {', '.join(late)}")


def _merges(it: Case) -> Act | None:
    if it.seen.mergeable is False:
        return TryMerge()
    if it.seen.place:
        return Wait(f"place {it.seen.place} in the merge queue of the forge")
    if it.seen.dequeued and not it.approved:
        return NeedPeople(f"{TAKEN_OUT}; `lockgate approve` puts it in again")
    return None


def _approvals(it: Case) -> Act | None:
    """The last word of each trusted reviewer counts, a yes only a person's.

    Stale ones are dismissed by the forge itself.
    """
    last: dict[Person, ReviewState] = {}
    for one in it.seen.reviews:
        if one.state is not ReviewState.COMMENTED and is_trusted(one.by, it):
            last[one.by] = one.state
    against = [who for who, state in last.items() if state is ReviewState.CHANGES_REQUESTED]
    if against:
        return NeedPeople(f"@{against[0].login} asked for changes and has not approved since")
    approved = sum(state is ReviewState.APPROVED and not who.bot for who, state in last.items())
    if approved < it.rules.approvals:
        return NeedPeople(f"it waits for {_counted(it.rules.approvals - approved)}")
    return None


def _counted(approvals: int) -> str:
    return "an approval" if approvals == 1 else f"{approvals} approvals"


def _blocked(it: Case) -> Act | None:
    """All is green, and the forge keeps it: the cause is named as far as it is known."""
    if it.seen.mergeable is None:
        return Wait("the forge has not said yet whether it merges")
    if not it.seen.blocked:
        return None
    causes = (
        (it.rules.threads and it.seen.threads_open, "threads are not resolved"),
        (it.rules.signed, "the target takes signed commits only: set [forge] sign = true"),
        (it.rules.last_push, "somebody other than the last pusher must approve it"),
    )
    named = [words for holds, words in causes if holds]
    return NeedPeople(f"the forge blocks it: {', '.join(named) or 'it does not say why'}")


def _yours(it: Case) -> Act | None:
    if it.pull.refused == it.pull.pushed and not it.approved:
        return NeedPeople(f"the forge did not merge it: {it.pull.refusal}")
    if it.mode is MergeMode.MANUAL and not it.approved:
        return NeedPeople("it is yours to merge: there, or by `lockgate approve`")
    if not it.me.sees_checks:
        return NeedPeople("it is yours to merge: this token cannot see the checks of other apps")
    return None


def merges_itself(settings: ForgeSettings) -> bool:
    """The forge merges by itself once it may; else Lockgate asks for the merge of one head."""
    return settings.auto_merge is AutoMerge.FORGE


_QUESTIONS: tuple[Callable[[Case], Act | None], ...] = (
    _ended,
    _head,
    _kept,
    _asked,
    _ci,
    _merges,
    _approvals,
    _blocked,
    _yours,
)
