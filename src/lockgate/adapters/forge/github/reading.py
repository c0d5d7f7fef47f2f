"""GitHub's answers as the facts that decisions look at; fields that we do not know are ignored."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, cast

from lockgate.core.forge.model import (
    Check,
    CheckState,
    Comment,
    Person,
    Remark,
    Review,
    ReviewState,
    Rules,
)

Json = Any
PASSING = frozenset({"success", "neutral", "skipped"})
FAILING = frozenset({"failure", "timed_out"})
STATUS = {
    "success": CheckState.PASSED,
    "failure": CheckState.FAILED,
    "error": CheckState.FAILED,
    "pending": CheckState.PENDING,
}


def table(found: Json) -> dict[str, Any]:
    """An object of an answer; empty where there is none."""
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def seconds(time: str | None) -> float:
    return datetime.fromisoformat(time).timestamp() if time else 0.0


def person(user: Json) -> Person:
    """A deleted user is nobody; a bot is known by its type, never by its name."""
    if not user:
        return Person("")
    return Person(str(user["login"]), bot=user.get("type") == "Bot")


def check_run(row: Json) -> Check:
    if row["status"] != "completed":
        return Check(row["name"], CheckState.PENDING, row["id"])
    conclusion = row["conclusion"]
    state = (
        CheckState.PASSED
        if conclusion in PASSING
        else CheckState.FAILED
        if conclusion in FAILING
        else CheckState.UNJUDGED
    )
    return Check(row["name"], state, row["id"])


def statuses(combined: Json) -> tuple[Check, ...]:
    rows = combined.get("statuses", ())
    return tuple(Check(it["context"], STATUS[it["state"]]) for it in rows)


def newest(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Of several runs of one name the last one counts."""
    found: dict[str, Check] = {}
    for it in checks:
        known = found.get(it.name)
        if known is None or it.id >= known.id:
            found[it.name] = it
    return tuple(found.values())


def review(row: Json) -> Review:
    return Review(
        id=row["id"],
        by=person(row["user"]),
        state=ReviewState(row["state"]),
        body=row.get("body") or "",
        at=seconds(row.get("submitted_at")),
    )


def comment(row: Json) -> Comment:
    return Comment(
        id=row["id"],
        by=person(row["user"]),
        body=row.get("body") or "",
        updated=seconds(row["updated_at"]),
        path=row["path"],
        line=row.get("line"),
        original_line=row.get("original_line"),
        left=row.get("side") == "LEFT",
        hunk=row.get("diff_hunk") or "",
        review=row.get("pull_request_review_id") or 0,
        thread=row.get("in_reply_to_id") or row["id"],
    )


def remark(row: Json) -> Remark:
    return Remark(
        id=row["id"],
        by=person(row["user"]),
        body=row.get("body") or "",
        updated=seconds(row["updated_at"]),
    )


def rules_from(rows: Sequence[Json], protection: Json) -> Rules:
    """Rulesets and classic protection together: the stricter of both."""
    kinds = {str(it["type"]): table(it.get("parameters")) for it in rows}
    pulls = table(kinds.get("pull_request"))
    checks = table(kinds.get("required_status_checks"))
    old_pulls = table(protection.get("required_pull_request_reviews"))
    old_checks = table(protection.get("required_status_checks"))
    named = [it["context"] for it in checks.get("required_status_checks", ())]
    methods = tuple(pulls.get("allowed_merge_methods") or ("merge", "squash", "rebase"))
    return Rules(
        checks=tuple(dict.fromkeys((*named, *old_checks.get("contexts", ())))),
        approvals=max(
            int(pulls.get("required_approving_review_count", 0)),
            int(old_pulls.get("required_approving_review_count", 0)),
        ),
        pull_request="pull_request" in kinds or bool(old_pulls),
        strict=bool(checks.get("strict_required_status_checks_policy") or old_checks.get("strict")),
        queue="merge_queue" in kinds,
        methods=methods,
        signed="required_signatures" in kinds or _enabled(protection, "required_signatures"),
        last_push=bool(
            pulls.get("require_last_push_approval") or old_pulls.get("require_last_push_approval")
        ),
        threads=bool(pulls.get("required_review_thread_resolution"))
        or _enabled(protection, "required_conversation_resolution"),
        dismiss_stale=bool(
            pulls.get("dismiss_stale_reviews_on_push") or old_pulls.get("dismiss_stale_reviews")
        ),
    )


def _enabled(protection: Json, name: str) -> bool:
    return bool(table(protection.get(name)).get("enabled"))
