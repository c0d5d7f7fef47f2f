"""A pull request in a few words, for boards and pages."""

from collections.abc import Mapping

from lockgate.core.forge.decide import expected_checks
from lockgate.core.forge.model import (
    CheckState,
    Intent,
    Pull,
    ReviewState,
    Rules,
    Seen,
    waits_for,
)
from lockgate.core.model.landings import PullShown

PEOPLE, OF_CI, FORGE, OURS = "people", "CI", "the forge", "Lockgate"
_WORDS = {
    CheckState.FAILED: "failed",
    CheckState.UNJUDGED: "not judged",
    CheckState.PENDING: "running",
    CheckState.PASSED: "passed",
}


def ci_of(rules: Rules, seen: Seen) -> str:
    """The worst first: `failed: build`; empty where no check is expected."""
    names = expected_checks(rules, seen)
    states = {it.name: it.state for it in seen.checks}
    by_state: dict[CheckState, list[str]] = {}
    for name in names:
        by_state.setdefault(states.get(name, CheckState.PENDING), []).append(name)
    told = [f"{word}: {', '.join(by_state[it])}" for it, word in _WORDS.items() if it in by_state]
    return "; ".join(told)


def reviews_of(seen: Seen) -> str:
    """The last word of each reviewer."""
    last = {it.by.login: it.state for it in seen.reviews if it.state is not ReviewState.COMMENTED}
    words = {ReviewState.APPROVED: "approved", ReviewState.CHANGES_REQUESTED: "asks for changes"}
    return ", ".join(f"@{who} {words[it]}" for who, it in last.items() if it in words)


def news_of(before: Pull, now: Pull) -> str:
    """What CI and reviewers say now, where they said something else before."""
    if (before.ci, before.reviews) == (now.ci, now.reviews):
        return ""
    return "; ".join(filter(None, (f"CI {now.ci}" if now.ci else "", now.reviews)))


def shown_of(pull: Pull) -> PullShown:
    """As every list shows it."""
    waits, whom = pull.waits, pull.whom
    if not whom and (pull.ready or pull.intent is not Intent.NONE):
        waits, whom = waits_for(pull), OURS
    elif not whom and waits:
        whom = OF_CI if waits.startswith("CI") else FORGE
    return PullShown(
        number=pull.number, link=pull.link, ci=pull.ci, reviews=pull.reviews, waits=waits, whom=whom
    )


def facts_of(pull: Pull) -> Mapping[str, object]:
    """What a face shows of it."""
    return {
        "number": pull.number,
        "url": pull.url,
        "branch": pull.branch,
        "head": pull.pushed,
        "ci": pull.ci,
        "reviews": pull.reviews,
        "waits": pull.waits,
        "ready": pull.ready,
        "rounds": pull.rounds,
        "issue": pull.issue,
        "looked": pull.looked,
    }


def line_of(pull: Pull) -> str:
    """In one line: `#12 CI passed: build; @ann approved; waits for …`."""
    parts = [f"CI {pull.ci}" if pull.ci else "", pull.reviews]
    parts.append(f"waits: {pull.waits}" if pull.waits else "")
    told = "; ".join(filter(None, parts))
    return f"#{pull.number}{' ' + told if told else ''}"
