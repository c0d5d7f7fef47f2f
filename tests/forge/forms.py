"""What the test server remembers, in the forms of GitHub's answers.

What says nothing about a change (addresses, counts of stars) is left out here and filled in by
`Contract.filled`; every fact about a change is said.
"""

from typing import Any

from tests.forge.state import Annotation, Check, Comment, Event, Github, Issue, Pull, Review, Status

Json = dict[str, Any]
SITE = "https://github.example"
LETTERS = {"A": "added", "D": "removed", "M": "modified", "R": "renamed", "T": "changed"}
ASSOCIATION = {"admin": "OWNER", "write": "CONTRIBUTOR", "read": "NONE", "none": "NONE"}


def user(login: str) -> Json:
    return {
        "id": 1 + sum(map(ord, login)),
        "login": login,
        "type": "Bot" if login.endswith("[bot]") else "User",
        "html_url": f"{SITE}/{login}",
    }


def me(login: str, at: str) -> Json:
    return {
        **user(login),
        "name": login,
        "user_view_type": "private",
        "created_at": at,
        "updated_at": at,
    }


def repository(hub: Github) -> Json:
    return {
        "id": 1,
        "name": hub.name,
        "full_name": f"{hub.owner}/{hub.name}",
        "owner": user(hub.owner),
        "private": True,
        "fork": False,
        "description": None,
        "default_branch": "main",
        "html_url": f"{SITE}/{hub.owner}/{hub.name}",
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "pushed_at": "2026-01-01T00:00:00Z",
        "allow_auto_merge": True,
        "allow_merge_commit": "merge" in hub.rules.methods,
        "allow_squash_merge": "squash" in hub.rules.methods,
        "allow_rebase_merge": "rebase" in hub.rules.methods,
    }


def label(name: str) -> Json:
    return {
        "id": 1 + sum(map(ord, name)),
        "node_id": f"LA_{name}",
        "url": f"{SITE}/labels/{name}",
        "name": name,
        "description": None,
        "color": "ededed",
        "default": False,
    }


def issue(hub: Github, it: Issue) -> Json:
    form: Json = {
        "id": 100000 + it.number,
        "node_id": f"I_{it.number}",
        "number": it.number,
        "html_url": f"{SITE}/{hub.owner}/{hub.name}/issues/{it.number}",
        "title": it.title,
        "body": it.body,
        "state": it.state,
        "user": user(it.author),
        "labels": [label(name) for name in it.labels],
        "assignees": [user(name) for name in it.assignees],
        "comments": len(it.comments),
        "created_at": it.created_at,
        "updated_at": it.updated_at,
        "closed_at": it.closed_at,
        "author_association": ASSOCIATION[hub.access(it.author)],
    }
    if it.number in hub.pulls:
        where = f"{SITE}/{hub.owner}/{hub.name}/pull/{it.number}"
        form["pull_request"] = dict.fromkeys(("url", "html_url", "diff_url", "patch_url"), where)
    return form


def pull(hub: Github, it: Pull) -> Json:
    """The whole form, which one pull request has; a list has `simple_pull`."""
    base = hub.bare.tip(it.base) or it.sha
    state = hub.state_of(it) if it.issue.state == "open" else "unknown"
    changed = hub.bare.changed(base, it.sha) if not it.merged else ()
    mergeable = {"unknown": None, "dirty": False}.get(state, True)
    return {
        **simple_pull(hub, it),
        "merged": it.merged,
        "merged_by": None if it.merged_by is None else user(it.merged_by),
        "mergeable": mergeable,
        "mergeable_state": state,
        "comments": len(it.issue.comments),
        "review_comments": len(it.comments),
        "commits": len(hub.bare.between(base, it.sha)),
        "additions": sum(row[2] for row in changed),
        "deletions": sum(row[3] for row in changed),
        "changed_files": len(changed),
    }


def simple_pull(hub: Github, it: Pull) -> Json:
    where = f"{SITE}/{hub.owner}/{hub.name}/pull/{it.number}"
    # Before a merge this field is GitHub's own test merge, which no branch has.
    trial = None if it.issue.state != "open" else "0" * 39 + "1"
    return {
        "id": 200000 + it.number,
        "node_id": f"PR_{it.number}",
        "number": it.number,
        "html_url": where,
        "title": it.issue.title,
        "body": it.issue.body,
        "state": it.issue.state,
        "draft": it.draft,
        "user": user(it.issue.author),
        "labels": [label(name) for name in it.issue.labels],
        "created_at": it.issue.created_at,
        "updated_at": it.issue.updated_at,
        "closed_at": it.issue.closed_at,
        "merged_at": it.merged_at,
        "merge_commit_sha": it.merge_commit if it.merged else trial,
        "author_association": ASSOCIATION[hub.access(it.issue.author)],
        "auto_merge": None if it.auto_merge is None else _auto_merge(it),
        "head": _end(hub, it.head, it.sha),
        "base": _end(hub, it.base, hub.bare.tip(it.base) or it.sha),
    }


def _auto_merge(it: Pull) -> Json:
    return {
        "enabled_by": user(it.issue.author),
        "merge_method": it.auto_merge,
        "commit_title": it.issue.title,
        "commit_message": "",
    }


def _end(hub: Github, branch: str, sha: str) -> Json:
    return {
        "label": f"{hub.owner}:{branch}",
        "ref": branch,
        "sha": sha,
        "user": user(hub.owner),
        "repo": repository(hub),
    }


def review(hub: Github, it: Review) -> Json:
    return {
        "id": it.id,
        "node_id": f"PRR_{it.id}",
        "user": user(it.author),
        "body": it.body,
        "state": it.state,
        "commit_id": it.commit,
        "submitted_at": it.submitted_at,
        "author_association": ASSOCIATION[hub.access(it.author)],
    }


def review_comment(hub: Github, it: Comment) -> Json:
    form: Json = {
        "id": it.id,
        "node_id": f"PRRC_{it.id}",
        "pull_request_review_id": it.review,
        "diff_hunk": it.hunk,
        "path": it.path,
        "line": it.line,
        "original_line": it.original_line,
        "side": it.side,
        "subject_type": "line",
        "commit_id": it.commit,
        "original_commit_id": it.commit,
        "user": user(it.author),
        "body": it.body,
        "created_at": it.created_at,
        "updated_at": it.updated_at,
        "author_association": ASSOCIATION[hub.access(it.author)],
    }
    return form if it.answers is None else {**form, "in_reply_to_id": it.answers}


def comment(hub: Github, it: Comment, number: int) -> Json:
    return {
        "id": it.id,
        "node_id": f"IC_{it.id}",
        "user": user(it.author),
        "body": it.body,
        "issue_url": f"{SITE}/{hub.owner}/{hub.name}/issues/{number}",
        "created_at": it.created_at,
        "updated_at": it.updated_at,
        "author_association": ASSOCIATION[hub.access(it.author)],
    }


def event(it: Event) -> Json:
    form: Json = {
        "id": it.id,
        "node_id": f"E_{it.id}",
        "url": f"{SITE}/events/{it.id}",
        "actor": whole_user(it.actor),
        "event": it.kind,
        "commit_id": None,
        "commit_url": None,
        "created_at": it.at,
        "performed_via_github_app": None,
    }
    if it.label:
        form["label"] = {"name": it.label, "color": "ededed"}
    if it.kind == "renamed":
        form["rename"] = {"from": it.before, "to": it.after}
    return form


def whole_user(login: str) -> Json:
    """A person in a place where nothing is filled in."""
    kinds = (
        "followers following gists starred subscriptions organizations repos events received_events"
    )
    return {
        **user(login),
        "node_id": f"U_{login}",
        "avatar_url": f"{SITE}/{login}.png",
        "gravatar_id": "",
        "url": f"{SITE}/{login}",
        "site_admin": False,
        **{f"{kind}_url": f"{SITE}/{login}/{kind}" for kind in kinds.split()},
    }


def app(slug: str) -> Json:
    return {
        "id": 1 + sum(map(ord, slug)),
        "slug": slug,
        "name": slug,
        "description": None,
        "owner": user("github"),
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "permissions": {"checks": "write", "contents": "write", "pull_requests": "write"},
        "events": [],
    }


def check_run(hub: Github, it: Check) -> Json:
    job = f"{SITE}/{hub.owner}/{hub.name}/actions/runs/{run_id(it.sha)}/job/{it.id}"
    return {
        "id": it.id,
        "node_id": f"CR_{it.id}",
        "head_sha": it.sha,
        "name": it.name,
        "status": it.status,
        "conclusion": it.conclusion,
        "started_at": it.at,
        "completed_at": it.at if it.conclusion else None,
        "details_url": job,
        "html_url": job,
        "check_suite": {"id": run_id(it.sha)},
        "output": {
            "title": it.title,
            "summary": it.summary,
            "text": None,
            "annotations_count": len(it.annotations),
        },
        "app": app(it.app),
        "pull_requests": [],
    }


def annotation(it: Annotation) -> Json:
    return {
        "path": it.path,
        "start_line": it.line,
        "end_line": it.line,
        "start_column": None,
        "end_column": None,
        "annotation_level": "failure",
        "title": None,
        "message": it.message,
        "raw_details": None,
    }


def status(it: Status) -> Json:
    return {
        "id": it.id,
        "context": it.context,
        "state": it.state,
        "description": it.description,
        "target_url": it.target_url,
        "creator": user(it.creator),
        "created_at": it.at,
        "updated_at": it.at,
    }


def combined(hub: Github, sha: str) -> Json:
    last = {it.context: it for it in hub.statuses if it.sha == sha}
    states = {it.state for it in last.values()}
    bad = bool(states & {"failure", "error"})
    return {
        "sha": sha,
        "state": "failure" if bad else "success" if states == {"success"} else "pending",
        "total_count": len(last),
        "statuses": [status(it) for it in last.values()],
        "repository": repository(hub),
    }


def run_id(sha: str) -> int:
    """One run of Actions for each commit."""
    return 700_000 + int(sha[:6], 16)


def workflow_run(hub: Github, sha: str) -> Json:
    jobs = [it for it in hub.checks if it.sha == sha and it.app == "github-actions"]
    done = all(it.conclusion for it in jobs)
    verdicts = {it.conclusion for it in jobs}
    conclusion = next(
        (it for it in ("failure", "cancelled", "timed_out") if it in verdicts), "success"
    )
    at = max((it.at for it in jobs), default="2026-01-01T00:00:00Z")
    return {
        "id": run_id(sha),
        "name": "CI",
        "head_branch": None,
        "head_sha": sha,
        "path": ".github/workflows/ci.yml",
        "run_number": 1,
        "run_attempt": max((it.attempt for it in jobs), default=1),
        "display_title": "CI",
        "event": "pull_request",
        "status": "completed" if done else "in_progress",
        "conclusion": conclusion if done else None,
        "workflow_id": 1,
        "check_suite_id": run_id(sha),
        "created_at": at,
        "updated_at": at,
        "head_commit": None,
        "head_repository": repository(hub),
        "repository": repository(hub),
        "pull_requests": [],
    }


def job(it: Check) -> Json:
    steps = [("Set up job", "success"), (it.step, it.conclusion)]
    if it.step == "Set up job":
        steps = steps[1:]
    return {
        "id": it.id,
        "run_id": run_id(it.sha),
        "head_sha": it.sha,
        "head_branch": None,
        "workflow_name": "CI",
        "name": it.name,
        "status": it.status,
        "conclusion": it.conclusion,
        "created_at": it.at,
        "started_at": it.at,
        "completed_at": it.at if it.conclusion else None,
        "run_attempt": it.attempt,
        "labels": ["ubuntu-latest"],
        "steps": [
            {
                "name": name,
                "status": "completed" if conclusion else "in_progress",
                "conclusion": conclusion,
                "number": number,
                "started_at": it.at,
                "completed_at": it.at,
            }
            for number, (name, conclusion) in enumerate(steps, 1)
        ],
    }


def rules(hub: Github) -> list[Json]:
    """The rules of the target, as rulesets say them; none where it has classic protection."""
    it = hub.rules
    if it.classic:
        return []
    source = {"ruleset_source_type": "Repository", "ruleset_source": hub.name, "ruleset_id": 1}
    found: list[Json] = []
    if it.pull_request:
        found.append({"type": "pull_request", "parameters": _pull_rule(hub)})
    if it.checks:
        checks = [{"context": name} for name in it.checks]
        parameters = {
            "required_status_checks": checks,
            "strict_required_status_checks_policy": it.strict,
        }
        found.append({"type": "required_status_checks", "parameters": parameters})
    if it.signatures:
        found.append({"type": "required_signatures"})
    if it.queue:
        found.append({"type": "merge_queue", "parameters": _queue_rule()})
    return [{**rule, **source} for rule in found]


def _pull_rule(hub: Github) -> Json:
    return {
        "required_approving_review_count": hub.rules.approvals,
        "dismiss_stale_reviews_on_push": False,
        "require_code_owner_review": False,
        "require_last_push_approval": hub.rules.last_push,
        "required_review_thread_resolution": hub.rules.threads,
        "allowed_merge_methods": list(hub.rules.methods),
    }


def _queue_rule() -> Json:
    return {
        "check_response_timeout_minutes": 60,
        "grouping_strategy": "ALLGREEN",
        "max_entries_to_build": 5,
        "max_entries_to_merge": 5,
        "merge_method": "SQUASH",
        "min_entries_to_merge": 1,
        "min_entries_to_merge_wait_minutes": 5,
    }


def protection(hub: Github) -> Json:
    """Classic branch protection."""
    it = hub.rules
    return {
        "url": f"{SITE}/protection",
        "required_status_checks": {
            "url": f"{SITE}/protection/checks",
            "strict": it.strict,
            "contexts": list(it.checks),
            "checks": [{"context": name, "app_id": None} for name in it.checks],
            "contexts_url": f"{SITE}/protection/contexts",
        },
        "required_pull_request_reviews": {
            "url": f"{SITE}/protection/reviews",
            "dismiss_stale_reviews": False,
            "require_code_owner_reviews": False,
            "required_approving_review_count": it.approvals,
            "require_last_push_approval": it.last_push,
        },
        "required_signatures": {"url": f"{SITE}/protection/signatures", "enabled": it.signatures},
        "enforce_admins": {"url": f"{SITE}/protection/admins", "enabled": True},
    }


def commit(hub: Github, sha: str) -> Json:
    bare = hub.bare
    name, mail, at, parents, message = bare.git(
        "log", "-1", "--format=%an%x00%ae%x00%aI%x00%P%x00%B", sha
    ).split("\0")
    person = {"name": name, "email": mail, "date": at}
    return {
        "sha": sha,
        "commit": {
            "author": person,
            "committer": person,
            "message": message,
            "tree": {"sha": bare.tree(sha), "url": f"{SITE}/tree"},
            "comment_count": 0,
        },
        "author": None,  # no account of GitHub's has the address
        "committer": None,
        "parents": [{"sha": it, "url": f"{SITE}/{it}"} for it in parents.split()],
    }


def file(row: tuple[str, str, int, int]) -> Json:
    letter, path, added, gone = row
    return {
        "sha": "0" * 40,
        "filename": path,
        "status": LETTERS.get(letter, "modified"),
        "additions": added,
        "deletions": gone,
        "changes": added + gone,
    }
