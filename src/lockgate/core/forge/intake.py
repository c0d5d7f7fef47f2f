"""Which issues become tasks, and what the task says: the text is data, the labeller the trigger."""

from collections.abc import Mapping

from msgspec import Struct

from lockgate.core.forge.model import Access, Issue
from lockgate.core.forge.text import issue_text, quoted_from

LONGEST = 100  # characters of a summary


class Take(Struct, frozen=True):
    """Make a task of it; the branch and the id come from the number alone."""

    key: str
    branch: str
    summary: str
    context: str


class Skip(Struct, frozen=True):
    """It makes no task; `told` says why where people should read it in the issue."""

    why: str
    told: bool = False


class Live(Struct, frozen=True):
    """A task of an issue: whether it has begun."""

    task: str
    begun: bool


class Stop(Struct, frozen=True):
    """The issue was closed or lost its label: the task is not started, or held."""

    task: str
    why: str
    hold: bool


class Intake(Struct, frozen=True, kw_only=True):
    """What decides besides the issue: who may, what is under way, how many may be."""

    repository: str  # host/owner/name
    label: str
    access: Mapping[str, Access]
    live: Mapping[str, Live]  # by key
    most: int


def key_of(repository: str, number: int) -> str:
    return f"{repository}#{number}"


def take(issue: Issue, it: Intake) -> Take | Skip | Stop | None:
    """None where all is as it should be."""
    key = key_of(it.repository, issue.number)
    wanted = issue.open and it.label in issue.labels
    live = it.live.get(key)
    if live:
        why = "its issue was closed" if not issue.open else f"its issue lost the label {it.label}"
        return None if wanted else Stop(live.task, why, hold=live.begun)
    if not wanted:
        return None
    return _refused(issue, it) or Take(
        key, f"issue-{issue.number}", _summary(issue), _context(issue, it)
    )


def _refused(issue: Issue, it: Intake) -> Skip | None:
    who = issue.labelled_by
    if not who or not it.access.get(who, Access.NONE).trusted:
        return Skip(f"@{who or 'nobody known'} gave the label and may not write here")
    if issue.edited_since:
        return Skip("its text was changed after it was labelled: label it again", told=True)
    if len(it.live) >= it.most:
        return Skip(f"{it.most} tasks of issues are open, which is the limit")
    return None


def _summary(issue: Issue) -> str:
    line = " ".join(issue_text(issue.title).split())[:LONGEST]
    return line or f"issue {issue.number}"


def _context(issue: Issue, it: Intake) -> str:
    trusted = [
        one
        for one in issue.comments
        if it.access.get(one.by.login, Access.NONE).trusted and not one.by.bot
    ]
    parts = [f"Issue #{issue.number}, labelled by @{issue.labelled_by}. {issue.url}".rstrip()]
    parts.append(quoted_from(f"{issue.title}\n\n{issue.body}", issue.author))
    parts += [quoted_from(one.body, one.by.login) for one in trusted]
    return "\n\n".join(parts)
