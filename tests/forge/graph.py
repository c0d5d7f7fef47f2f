"""The GraphQL operations of the test server, carried out over GitHub's own schema."""

from collections.abc import Callable
from typing import Any

from graphql import ExecutionResult, GraphQLError, graphql_sync

from tests.forge.contract import load_schema
from tests.forge.forms import SITE
from tests.forge.state import Comment, Event, Github, Issue, Pull

Json = dict[str, Any]
METHODS = {"MERGE": "merge", "SQUASH": "squash", "REBASE": "rebase"}
KINDS = {
    "labeled": "LabeledEvent",
    "unlabeled": "UnlabeledEvent",
    "renamed": "RenamedTitleEvent",
    "closed": "ClosedEvent",
    "reopened": "ReopenedEvent",
}


def execute(hub: Github, who: str, text: str, variables: Json) -> ExecutionResult:
    """One operation. What the server does not know is None, and an error where GitHub has one."""
    root = {
        "viewer": {**_actor(who), "login": who},  # here alone a bot has its ending
        "rateLimit": {"cost": 1, "remaining": 4999, "limit": 5000, "resetAt": hub.now},
        "repository": lambda _info, owner, name, **_more: _repository(hub, owner, name),
        "node": lambda _info, id: _node(hub, id),
        "nodes": lambda _info, ids: [_node(hub, id) for id in ids],
        "markPullRequestReadyForReview": _on_pull(hub, lambda pull, _given: _ready(hub, pull)),
        "convertPullRequestToDraft": _on_pull(hub, lambda pull, _given: _as_draft(hub, pull)),
        "enablePullRequestAutoMerge": _on_pull(hub, lambda pull, given: _auto(hub, pull, given)),
        "disablePullRequestAutoMerge": _on_pull(hub, lambda pull, _given: _no_auto(hub, pull)),
        "enqueuePullRequest": _on_pull(hub, lambda pull, given: _enqueue(hub, pull, given)),
        "dequeuePullRequest": lambda _info, input: _dequeue(hub, input),
    }
    return graphql_sync(load_schema(), text, root_value=root, variable_values=variables)


# --- what is changed -----------------------------------------------------------------------------


def _on_pull(hub: Github, act: Callable[[Pull, Json], Json]) -> Callable[..., Json]:
    def resolve(_info: object, input: Json) -> Json:
        pull = _found(hub, input["pullRequestId"])
        wanted = input.get("expectedHeadOid")
        if wanted not in {None, pull.sha}:
            raise GraphQLError("Head branch was modified. Review and try the merge again.")
        return act(pull, input) | {"clientMutationId": input.get("clientMutationId")}

    return resolve


def _found(hub: Github, id: str) -> Pull:
    number = id.removeprefix("PR_")
    if not id.startswith("PR_") or int(number) not in hub.pulls:
        raise GraphQLError(f"Could not resolve to a node with the global id of '{id}'.")
    return hub.pulls[int(number)]


def _ready(hub: Github, pull: Pull) -> Json:
    pull.draft = False
    hub.touch(pull.number)
    return {"pullRequest": _pull(hub, pull)}


def _as_draft(hub: Github, pull: Pull) -> Json:
    pull.draft = True
    hub.touch(pull.number)
    return {"pullRequest": _pull(hub, pull)}


def _auto(hub: Github, pull: Pull, given: Json) -> Json:
    if hub.state_of(pull) == "clean":
        raise GraphQLError("Pull request Pull request is in clean status")
    pull.auto_merge = METHODS[given.get("mergeMethod") or "MERGE"]
    hub.touch(pull.number)
    return {"pullRequest": _pull(hub, pull), "actor": _actor(pull.issue.author)}


def _no_auto(hub: Github, pull: Pull) -> Json:
    pull.auto_merge = None
    return {"pullRequest": _pull(hub, pull), "actor": _actor(pull.issue.author)}


def _enqueue(hub: Github, pull: Pull, _given: Json) -> Json:
    if not hub.rules.queue:
        raise GraphQLError("The merge queue is not enabled for this branch.")
    if why := hub.blocked(pull):
        raise GraphQLError(why)
    hub.enqueue(pull)
    return {"mergeQueueEntry": _entry(hub, pull)}


def _dequeue(hub: Github, input: Json) -> Json:
    pull = _found(hub, input["id"])
    entry = _entry(hub, pull)
    hub.queue = [it for it in hub.queue if it != pull.number]
    pull.place = None
    return {"mergeQueueEntry": entry, "clientMutationId": input.get("clientMutationId")}


# --- what is read --------------------------------------------------------------------------------


def _repository(hub: Github, owner: str, name: str) -> Json:
    if (owner, name) != (hub.owner, hub.name):
        raise GraphQLError(f"Could not resolve to a Repository with the name '{owner}/{name}'.")
    return {
        "id": "R_1",
        "name": hub.name,
        "nameWithOwner": f"{owner}/{name}",
        "pullRequest": lambda _info, number: _pull(hub, hub.pulls[number]),
        "issue": lambda _info, number: _issue(hub, hub.issues[number]),
        "pullRequests": lambda _info, **how: _page(
            [_pull(hub, it) for it in hub.pulls.values()], how
        ),
        "issues": lambda _info, **how: _page([_issue(hub, it) for it in hub.issues.values()], how),
        "mergeQueue": lambda _info, **_how: _queue(hub),
    }


def _node(hub: Github, id: str) -> Json | None:
    kind, _, number = id.partition("_")
    if kind == "PR" and int(number) in hub.pulls:
        return _pull(hub, hub.pulls[int(number)])
    if kind == "I" and int(number) in hub.issues:
        return _issue(hub, hub.issues[int(number)])
    return None


def _issue(hub: Github, it: Issue) -> Json:
    return {
        "__typename": "Issue",
        "id": f"I_{it.number}",
        "number": it.number,
        "title": it.title,
        "body": it.body,
        "state": it.state.upper(),
        "url": f"{SITE}/{hub.owner}/{hub.name}/issues/{it.number}",
        "author": _actor(it.author),
        "createdAt": it.created_at,
        "updatedAt": it.updated_at,
        "lastEditedAt": it.edited_at,
        "labels": lambda _info, **how: _page([{"name": name} for name in it.labels], how),
        "comments": lambda _info, **how: _page([_comment(row) for row in it.comments], how),
        "timelineItems": lambda _info, **how: _timeline(it, how),
    }


def _pull(hub: Github, it: Pull) -> Json:
    mergeable = {"unknown": "UNKNOWN", "dirty": "CONFLICTING"}.get(hub.state_of(it), "MERGEABLE")
    return {
        **_issue(hub, it.issue),
        "__typename": "PullRequest",
        "id": f"PR_{it.number}",
        "url": f"{SITE}/{hub.owner}/{hub.name}/pull/{it.number}",
        "state": "MERGED" if it.merged else it.issue.state.upper(),
        "merged": it.merged,
        "isDraft": it.draft,
        "headRefName": it.head,
        "headRefOid": it.sha,
        "baseRefName": it.base,
        "mergeable": mergeable,
        "mergeStateStatus": hub.state_of(it).upper(),
        "reviewDecision": _decision(hub, it),
        "isInMergeQueue": it.number in hub.queue,
        "isMergeQueueEnabled": hub.rules.queue,
        "mergeQueueEntry": _entry(hub, it) if it.number in hub.queue else None,
        "autoMergeRequest": None if it.auto_merge is None else _request(it),
        "reviewThreads": lambda _info, **how: _page(
            [_thread(row, it) for row in it.comments if row.answers is None], how
        ),
    }


def _decision(hub: Github, it: Pull) -> str:
    if hub.refused_by(it):
        return "CHANGES_REQUESTED"
    enough = len(hub.approved_by(it)) >= hub.rules.approvals
    return "APPROVED" if enough else "REVIEW_REQUIRED"


def _request(it: Pull) -> Json:
    return {
        "enabledAt": it.issue.updated_at,
        "enabledBy": _actor(it.issue.author),
        "mergeMethod": str(it.auto_merge).upper(),
    }


def _entry(hub: Github, it: Pull) -> Json:
    return {
        "id": f"MQE_{it.number}",
        "position": hub.queue.index(it.number) + 1 if it.number in hub.queue else 1,
        "state": "QUEUED",
        "headCommit": {"oid": it.sha},
        "baseCommit": {"oid": hub.bare.tip(it.base)},
        "enqueuedAt": it.issue.updated_at,
        "enqueuer": _actor(it.issue.author),
        "pullRequest": lambda _info: _pull(hub, it),
    }


def _queue(hub: Github) -> Json | None:
    if not hub.rules.queue:
        return None
    entries = [_entry(hub, hub.pulls[number]) for number in hub.queue]
    return {"id": "MQ_1", "entries": lambda _info, **how: _page(entries, how)}


def _thread(row: Comment, it: Pull) -> Json:
    rows = [row, *(answer for answer in it.comments if answer.answers == row.id)]
    return {
        "id": f"PRRT_{row.id}",
        "isResolved": row.resolved,
        "isOutdated": row.line is None,
        "path": row.path,
        "line": row.line,
        "originalLine": row.original_line,
        "comments": lambda _info, **how: _page([_comment(each) for each in rows], how),
    }


def _comment(it: Comment) -> Json:
    return {
        "id": f"IC_{it.id}",
        "databaseId": it.id,
        "body": it.body,
        "author": _actor(it.author),
        "createdAt": it.created_at,
        "updatedAt": it.updated_at,
        "lastEditedAt": None if it.created_at == it.updated_at else it.updated_at,
    }


def _timeline(it: Issue, how: Json) -> Json:
    wanted = {name.title().replace("_", "") for name in how.get("itemTypes") or ()}
    rows = [_event(row) for row in it.events]
    return _page([row for row in rows if not wanted or row["__typename"] in wanted], how)


def _event(it: Event) -> Json:
    return {
        "__typename": KINDS[it.kind],
        "id": f"E_{it.id}",
        "createdAt": it.at,
        "actor": _actor(it.actor),
        "label": {"name": it.label},
        "previousTitle": it.before,
        "currentTitle": it.after,
    }


def _actor(login: str) -> Json:
    kind = "Bot" if login.endswith("[bot]") else "User"
    # GraphQL names a bot without the ending that REST gives it.
    return {"__typename": kind, "login": login.removesuffix("[bot]"), "id": f"U_{login}"}


def _page(rows: list[Json], how: Json) -> Json:
    start = int(how.get("after") or 0)
    first, last = how.get("first"), how.get("last")
    end = len(rows) if first is None else start + int(first)
    shown = rows[start:end] if last is None else rows[-int(last) :]
    more = last is None and end < len(rows)
    return {
        "totalCount": len(rows),
        "nodes": shown,
        "edges": [
            {"cursor": str(number), "node": row} for number, row in enumerate(shown, start + 1)
        ],
        "pageInfo": {
            "hasNextPage": more,
            "hasPreviousPage": last is not None and len(rows) > int(last),
            "startCursor": str(start),
            "endCursor": str(end) if more else None,
        },
    }
