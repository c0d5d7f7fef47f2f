"""What CI and reviewers said, as the feedback that an agent gets."""

from collections.abc import Sequence

from msgspec import Struct

from lockgate.core.forge.decide import SendBack
from lockgate.core.forge.model import Annotation, Comment, Failure, Remark, Review
from lockgate.core.forge.text import LOG_BYTES, log_tail, masked, plain
from lockgate.core.model.findings import Finding, GateFeedback, Location, Priority

CI, REVIEW = "CI", "review"
SETUP_STEP = "Set up job"
MOST_PLACES = 50


class NotJudged(Struct, frozen=True):
    """CI failed without judging the change: nobody is charged."""

    why: str


def of_failures(failures: Sequence[Failure]) -> GateFeedback | NotJudged:
    """Every failed job with its step, its places and the end of its log."""
    unjudged = [it.check for it in failures if it.step == SETUP_STEP or not (it.log or it.places)]
    judged = [it for it in failures if it.check not in unjudged]
    if not judged:
        names = ", ".join(unjudged) or "no job says that it failed"
        return NotJudged(f"CI failed before it judged the change: {names}")
    found = [finding for it in judged for finding in _of_failure(it)]
    names = ", ".join(it.check for it in judged)
    return GateFeedback(
        gate_name=CI,
        findings=tuple(found),
        summary=f"CI failed: {names}",
        suggested_action="Mend what CI reports, then hand off again.",
    )


def of_people(said: SendBack) -> GateFeedback:
    bodied: tuple[Review | Remark, ...] = (*said.reviews, *said.remarks)
    bodies = [
        Finding(Priority.P1_MAJOR, _from(it.by.login, it.body)) for it in bodied if it.body.strip()
    ]
    inline = [_of_comment(it) for it in said.comments]
    speakers: tuple[Review | Remark | Comment, ...] = (*bodied, *said.comments)
    who = dict.fromkeys(it.by.login for it in speakers)
    summary = f"changes were asked for by {', '.join(f'@{it}' for it in who)}"
    found = (*bodies, *inline) or (Finding(Priority.P1_MAJOR, summary),)
    return GateFeedback(
        gate_name=REVIEW,
        findings=found,
        summary=summary,
        suggested_action="Answer every comment in the code, then hand off again.",
    )


def theirs_is_missing(branch: str) -> GateFeedback:
    """A person pushed to the pull request, and the new work does not have their commits."""
    issue = f"somebody pushed to {branch}, and this change does not contain their commits"
    return GateFeedback(
        gate_name=REVIEW,
        findings=(Finding(Priority.P1_MAJOR, issue),),
        summary=issue,
        suggested_action=f"Run: git fetch origin && git merge origin/{branch}. Then hand off.",
    )


def _of_failure(it: Failure) -> tuple[Finding, ...]:
    step = f", step {it.step}" if it.step else ""
    tail = log_tail(it.log)
    log = f"\nThe end of its log, as data:\n{tail}" if tail else ""
    places = tuple(_of_place(it.check, place) for place in it.places[:MOST_PLACES])
    return (*places, Finding(Priority.P1_MAJOR, f"job {it.check}{step} failed{log}"))


def _of_place(check: str, place: Annotation) -> Finding:
    issue = f"{check}: {_clean(place.message)}"
    return Finding(Priority.P1_MAJOR, issue, Location(place.path, place.line or None))


def _of_comment(it: Comment) -> Finding:
    line = it.line if it.line is not None else it.original_line
    about = ""
    if it.left:
        about = " (on a line that the change deletes)"
    elif it.line is None and it.hunk:
        about = f" (the line has changed since; it was about:\n{_clean(it.hunk)}\n)"
    where = Location(it.path, None if it.left else line)
    return Finding(Priority.P1_MAJOR, _from(it.by.login, it.body) + about, where)


def _from(login: str, text: str) -> str:
    return f"@{login} writes: {_clean(text)}"


def _clean(text: str) -> str:
    return masked(plain(text)).strip()[:LOG_BYTES]
