"""Pull requests and issues in words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lockgate.core.forge.summary import line_of

if TYPE_CHECKING:
    from lockgate.core.forge.model import Issue, Pull
    from lockgate.services.train.pull_control import Checked


def pull_lines(pull: "Pull") -> list[tuple[str, str]]:
    """What a task's page says of it."""
    return [("pull request", f"{line_of(pull)} {pull.url}".strip())]


def pull_text(pull: "Pull") -> str:
    lines = [f"pull request {line_of(pull)}", pull.url, f"branch {pull.branch}"]
    lines.append(f"head   {pull.pushed[:12]}")
    if pull.issue:
        lines.append(f"issue  {pull.issue}")
    return "\n".join(filter(None, lines))


def checked_text(it: "Checked") -> str:
    me, rules = it.me, it.rules
    rows = [
        ("login", f"@{me.login} ({me.kind})"),
        ("repository", me.repo),
        ("may push", _yes(me.may_push)),
        ("sees checks", _yes(me.sees_checks)),
        ("target", it.target),
        ("takes pull requests only", _yes(rules.pull_request)),
        ("required checks", ", ".join(rules.checks) or "none"),
        ("approvals", str(rules.approvals)),
        ("up to date first", _yes(rules.strict)),
        ("merge queue", _yes(rules.queue)),
    ]
    width = max(len(name) for name, _ in rows)
    table = [f"{name.ljust(width)}  {said}" for name, said in rows]
    return "\n".join([*table, *(f"warning: {one}" for one in it.warnings)])


def issues_text(found: "Sequence[tuple[Issue, str]]") -> str:
    lines = [f"#{one.number} {one.title}: {said}" for one, said in found]
    return "\n".join(lines) or "no issue has the label"


def _yes(it: object) -> str:
    return "yes" if it else "no"
