"""The REST calls of the test server: one function a call, picked by its row in `CALLS`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.forge import forms
from tests.forge.bare import Conflict
from tests.forge.contract import CALLS, ISSUE, PULL, REPO, Exchange
from tests.forge.state import (
    NOT_MERGEABLE,
    Check,
    Comment,
    Github,
    Issue,
    Outcome,
    Pull,
    Status,
    Token,
)

Json = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    pages: bool = False  # a list, which is cut into pages
    under: str = ""  # the member that is the list


@dataclass(frozen=True)
class Ask:
    """A request of a person or of Lockgate, already matched to its call."""

    hub: Github
    exchange: Exchange
    token: Token
    log_url: Callable[[int], str]

    @property
    def who(self) -> str:
        return self.token.login

    def named(self, name: str) -> str:
        return self.exchange.path[name]

    def asked(self, name: str, default: str = "") -> str:
        return self.exchange.query.get(name, default)

    @property
    def body(self) -> Json:
        return self.exchange.body or {}


class NotFound(Exception):
    """GitHub says 404."""


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def perform(ask: Ask) -> Answer:
    """The answer to a request; refusals become answers here."""
    try:
        _may(ask)
        return HANDLERS[ask.exchange.method, ask.exchange.template](ask)
    except NotFound:
        return Answer(404, {"message": "Not Found", "documentation_url": forms.SITE})
    except Refused as refusal:
        body = {"message": str(refusal), "documentation_url": forms.SITE}
        return Answer(refusal.status, body)


# --- who may -------------------------------------------------------------------------------------


def _may(ask: Ask) -> None:
    """What the kind of token forbids. No fine-grained token can be given access to check runs."""
    template, token = ask.exchange.template, ask.token
    lacks = token.lacks | ({"checks"} if token.kind == "fine-grained" else frozenset())
    needed = {
        "checks": "check-runs" in template,
        "actions": "/actions/" in template,
        "issues": "/issues" in template and ask.exchange.method == "GET",
        "administration": template.endswith("/protection"),
    }
    if any(needed.get(permission, False) for permission in lacks):
        kind = "integration" if token.kind == "app" else "personal access token"
        raise Refused(403, f"Resource not accessible by {kind}")
    writes_checks = ask.exchange.method != "GET" and "check-runs" in template
    if writes_checks and token.kind != "app":
        raise Refused(403, "You must authenticate via a GitHub App.")


# --- the account ---------------------------------------------------------------------------------


def _user(ask: Ask) -> Answer:
    if ask.token.kind == "app":
        raise Refused(403, "Resource not accessible by integration")
    return Answer(200, forms.me(ask.who, "2026-01-01T00:00:00Z"))


def _app(ask: Ask) -> Answer:
    return Answer(200, forms.app("lockgate"))


def _installation(ask: Ask) -> Answer:
    return Answer(
        200,
        {
            "id": 9,
            "app_id": 7,
            "app_slug": "lockgate",
            "target_id": 1,
            "target_type": "Organization",
            "single_file_name": None,
            "repository_selection": "selected",
            "events": [],
            "account": forms.user(ask.hub.owner),
            "permissions": {"contents": "write", "pull_requests": "write", "checks": "write"},
            "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z",
            "suspended_by": None,
            "suspended_at": None,
        },
    )


def _access_token(ask: Ask) -> Answer:
    name = f"ghs_installation{ask.hub.new_id()}"
    ask.hub.tokens[name] = Token(ask.who, "app")
    at = (ask.hub.date()).replace(year=ask.hub.date().year + 1).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Answer(201, {"token": name, "expires_at": at})


def _repository(ask: Ask) -> Answer:
    return Answer(200, forms.repository(ask.hub))


def _permission(ask: Ask) -> Answer:
    login = ask.named("username")
    level = ask.hub.people.get(login)
    if level is None:
        raise NotFound
    person = {**forms.user(login), "role_name": level}
    return Answer(200, {"permission": level, "role_name": level, "user": person})


# --- pull requests -------------------------------------------------------------------------------


def _pulls(ask: Ask) -> Answer:
    state, head, base = ask.asked("state", "open"), ask.asked("head"), ask.asked("base")
    found = [
        it
        for it in ask.hub.pulls.values()
        if state in {"all", it.issue.state}
        and (not head or head == f"{ask.hub.owner}:{it.head}")
        and (not base or base == it.base)
    ]
    by = "updated_at" if ask.asked("sort") == "updated" else "created_at"
    found.sort(
        key=lambda it: getattr(it.issue, by), reverse=ask.asked("direction", "desc") == "desc"
    )
    return Answer(200, [forms.simple_pull(ask.hub, it) for it in found], pages=True)


def _open_pull(ask: Ask) -> Answer:
    hub, body = ask.hub, ask.body
    head = str(body["head"]).removeprefix(f"{hub.owner}:")
    sha = hub.bare.tip(head)
    if sha is None or hub.bare.tip(str(body["base"])) is None:
        raise Refused(422, "Validation Failed")
    if any(it.head == head and it.issue.state == "open" for it in hub.pulls.values()):
        return Answer(422, _invalid(f"A pull request already exists for {hub.owner}:{head}."))
    if not hub.bare.between(str(hub.bare.tip(str(body["base"]))), sha):
        return Answer(422, _invalid(f"No commits between {body['base']} and {head}"))
    issue = hub.new_issue(str(body.get("title", "")), str(body.get("body") or ""), ask.who)
    pull = Pull(issue, head, str(body["base"]), sha, draft=bool(body.get("draft")))
    hub.pulls[issue.number] = pull
    hub.hint("pull_request", "opened", issue.number)
    hub.settle()
    hub.start_ci(sha)
    return Answer(201, forms.pull(hub, pull))


def _invalid(message: str) -> Json:
    return {
        "message": "Validation Failed",
        "errors": [{"resource": "PullRequest", "code": "custom", "message": message}],
        "documentation_url": forms.SITE,
    }


def _pull(ask: Ask) -> Answer:
    return Answer(200, forms.pull(ask.hub, _the_pull(ask)))


def _change_pull(ask: Ask) -> Answer:
    hub, pull, body = ask.hub, _the_pull(ask), ask.body
    hub.edit(pull.issue, title=body.get("title"), body=body.get("body"), by=ask.who)
    if "base" in body:
        pull.base = str(body["base"])
    if body.get("state") == "closed" and pull.issue.state == "open":
        hub.close(pull.issue, ask.who)
    if body.get("state") == "open" and pull.issue.state == "closed":
        if pull.merged or hub.bare.tip(pull.head) is None:
            return Answer(
                422, _invalid("state cannot be changed. The branch was deleted or merged.")
            )
        hub.reopen(pull.issue, ask.who)
    return Answer(200, forms.pull(hub, pull))


def _merge(ask: Ask) -> Answer:
    hub, pull, body = ask.hub, _the_pull(ask), ask.body
    method = str(body.get("merge_method", "merge"))
    if body.get("sha", pull.sha) != pull.sha:
        raise Refused(409, "Head branch was modified. Review and try the merge again.")
    if pull.merged or pull.issue.state != "open" or pull.draft:
        raise Refused(405, NOT_MERGEABLE)
    if method not in hub.rules.methods:
        raise Refused(405, f"{method.capitalize()} merges are not allowed on this repository.")
    if hub.rules.queue:
        raise Refused(405, "Changes must be made through the merge queue")
    if why := hub.blocked(pull):
        raise Refused(405, why)
    if hub.state_of(pull) == "behind":
        raise Refused(405, "Head branch is out of date. Review and try the merge again.")
    try:
        landed = hub.merge(pull, method, ask.who, title=body.get("commit_title"))
    except Conflict as conflict:
        raise Refused(405, NOT_MERGEABLE) from conflict
    return Answer(
        200, {"sha": landed, "merged": True, "message": "Pull Request successfully merged"}
    )


def _reviews(ask: Ask) -> Answer:
    pull = _the_pull(ask)
    return Answer(200, [forms.review(ask.hub, it) for it in pull.reviews], pages=True)


def _review_comments(ask: Ask) -> Answer:
    since = ask.asked("since")
    found = [it for it in _the_pull(ask).comments if it.updated_at >= since]
    return Answer(200, [forms.review_comment(ask.hub, it) for it in found], pages=True)


def _reply(ask: Ask) -> Answer:
    pull, at = _the_pull(ask), ask.hub.now()
    first = next((it for it in pull.comments if it.id == int(ask.named("comment_id"))), None)
    if first is None:
        raise NotFound
    said = Comment(
        id=ask.hub.new_id(),
        author=ask.who,
        body=str(ask.body["body"]),
        created_at=at,
        updated_at=at,
        path=first.path,
        line=first.line,
        original_line=first.original_line,
        hunk=first.hunk,
        commit=pull.sha,
        review=first.review,
        answers=first.id,
    )
    pull.comments.append(said)
    ask.hub.touch(pull.number)
    return Answer(201, forms.review_comment(ask.hub, said))


def _commits(ask: Ask) -> Answer:
    pull, bare = _the_pull(ask), ask.hub.bare
    base = bare.tip(pull.base) or pull.sha
    return Answer(
        200, [forms.commit(ask.hub, it) for it in bare.between(base, pull.sha)], pages=True
    )


def _files(ask: Ask) -> Answer:
    pull, bare = _the_pull(ask), ask.hub.bare
    rows = bare.changed(bare.tip(pull.base) or pull.sha, pull.sha)
    return Answer(200, [forms.file(row) for row in rows], pages=True)


def _the_pull(ask: Ask) -> Pull:
    found = ask.hub.pulls.get(int(ask.named("pull_number")))
    if found is None:
        raise NotFound
    return found


# --- issues --------------------------------------------------------------------------------------


def _issues(ask: Ask) -> Answer:
    state, since = ask.asked("state", "open"), ask.asked("since")
    labels = {it for it in ask.asked("labels").split(",") if it}
    found = [
        it
        for it in ask.hub.issues.values()
        if state in {"all", it.state}
        and labels <= set(it.labels)
        and it.updated_at >= since
        and (not ask.asked("creator") or ask.asked("creator") == it.author)
        and (not ask.asked("assignee") or ask.asked("assignee") in it.assignees)
    ]
    by = "updated_at" if ask.asked("sort") == "updated" else "created_at"
    found.sort(key=lambda it: getattr(it, by), reverse=ask.asked("direction", "desc") == "desc")
    return Answer(200, [forms.issue(ask.hub, it) for it in found], pages=True)


def _issue(ask: Ask) -> Answer:
    return Answer(200, forms.issue(ask.hub, _the_issue(ask)))


def _change_issue(ask: Ask) -> Answer:
    hub, issue, body = ask.hub, _the_issue(ask), ask.body
    hub.edit(issue, title=body.get("title"), body=body.get("body"), by=ask.who)
    if body.get("state") == "closed" and issue.state == "open":
        hub.close(issue, ask.who)
    if body.get("state") == "open" and issue.state == "closed":
        hub.reopen(issue, ask.who)
    return Answer(200, forms.issue(hub, issue))


def _comments(ask: Ask) -> Answer:
    issue = _the_issue(ask)
    found = [it for it in issue.comments if it.updated_at >= ask.asked("since")]
    return Answer(200, [forms.comment(ask.hub, it, issue.number) for it in found], pages=True)


def _say(ask: Ask) -> Answer:
    issue = _the_issue(ask)
    said = ask.hub.say(issue, str(ask.body["body"]), ask.who)
    return Answer(201, forms.comment(ask.hub, said, issue.number))


def _change_comment(ask: Ask) -> Answer:
    for issue in ask.hub.issues.values():
        for it in issue.comments:
            if it.id == int(ask.named("comment_id")):
                it.body, it.updated_at = str(ask.body["body"]), ask.hub.now()
                return Answer(200, forms.comment(ask.hub, it, issue.number))
    raise NotFound


def _events(ask: Ask) -> Answer:
    return Answer(200, [forms.event(it) for it in _the_issue(ask).events], pages=True)


def _add_labels(ask: Ask) -> Answer:
    issue = _the_issue(ask)
    for name in ask.body.get("labels", ()):
        ask.hub.label(issue, name, ask.who)
    return Answer(200, [forms.label(name) for name in issue.labels])


def _drop_label(ask: Ask) -> Answer:
    issue = _the_issue(ask)
    if ask.named("name") not in issue.labels:
        raise NotFound
    ask.hub.unlabel(issue, ask.named("name"), ask.who)
    return Answer(200, [forms.label(name) for name in issue.labels])


def _the_issue(ask: Ask) -> Issue:
    found = ask.hub.issues.get(int(ask.named("issue_number")))
    if found is None:
        raise NotFound
    return found


# --- checks --------------------------------------------------------------------------------------


def _check_runs(ask: Ask) -> Answer:
    sha = _commit_of(ask, ask.named("ref"))
    runs = [forms.check_run(ask.hub, it) for it in ask.hub.checks if it.sha == sha]
    wanted = [it for it in runs if ask.asked("check_name", it["name"]) == it["name"]]
    return Answer(
        200, {"total_count": len(wanted), "check_runs": wanted}, pages=True, under="check_runs"
    )


def _combined(ask: Ask) -> Answer:
    body = forms.combined(ask.hub, _commit_of(ask, ask.named("ref")))
    return Answer(200, body, pages=True, under="statuses")


def _set_status(ask: Ask) -> Answer:
    body = ask.body
    it = Status(
        id=ask.hub.new_id(),
        sha=ask.named("sha"),
        context=str(body.get("context", "default")),
        state=str(body["state"]),
        description=body.get("description"),
        creator=ask.who,
        at=ask.hub.now(),
        target_url=body.get("target_url"),
    )
    ask.hub.statuses.append(it)
    return Answer(201, forms.status(it))


def _new_check(ask: Ask) -> Answer:
    body = ask.body
    it = Check(
        ask.hub.new_id(), str(body["head_sha"]), str(body["name"]), app="lockgate", at=ask.hub.now()
    )
    ask.hub.checks.append(it)
    return Answer(201, forms.check_run(ask.hub, _written(it, body)))


def _change_check(ask: Ask) -> Answer:
    it = _the_check(ask, int(ask.named("check_run_id")))
    return Answer(200, forms.check_run(ask.hub, _written(it, ask.body)))


def _written(it: Check, body: Json) -> Check:
    output = body.get("output", {})
    it.conclusion = body.get("conclusion")
    it.status = str(body.get("status", "completed" if it.conclusion else "queued"))
    it.title, it.summary = output.get("title"), output.get("summary")
    return it


def _annotations(ask: Ask) -> Answer:
    it = _the_check(ask, int(ask.named("check_run_id")))
    return Answer(200, [forms.annotation(row) for row in it.annotations], pages=True)


def _runs(ask: Ask) -> Answer:
    wanted = ask.asked("head_sha")
    shas = dict.fromkeys(it.sha for it in ask.hub.checks if it.app == "github-actions")
    runs = [forms.workflow_run(ask.hub, sha) for sha in shas if wanted in {"", sha}]
    body = {"total_count": len(runs), "workflow_runs": runs}
    return Answer(200, body, pages=True, under="workflow_runs")


def _jobs(ask: Ask) -> Answer:
    jobs = [forms.job(it) for it in _jobs_of(ask)]
    return Answer(200, {"total_count": len(jobs), "jobs": jobs}, pages=True, under="jobs")


def _log(ask: Ask) -> Answer:
    it = _the_check(ask, int(ask.named("job_id")))
    if it.log is None:
        raise NotFound
    return Answer(302, None, {"Location": ask.log_url(it.id)})


def _rerun(ask: Ask) -> Answer:
    for it in list(_jobs_of(ask)):
        if it.conclusion not in {"success", "neutral", "skipped", None}:
            plan = ask.hub.ci.get(it.name)
            outcome = Outcome(it.conclusion, it.log, it.step, it.annotations)
            if plan is not None:
                outcome = plan.popleft() if len(plan) > 1 else plan[0]
            ask.hub.set_check(it.sha, it.name, outcome)
    return Answer(201, {})


def _jobs_of(ask: Ask) -> Iterable[Check]:
    run = int(ask.named("run_id"))
    found = [
        it for it in ask.hub.checks if forms.run_id(it.sha) == run and it.app == "github-actions"
    ]
    if not found:
        raise NotFound
    return found


def _the_check(ask: Ask, id: int) -> Check:
    found = next((it for it in ask.hub.checks if it.id == id), None)
    if found is None:
        raise NotFound
    return found


def _commit_of(ask: Ask, ref: str) -> str:
    return ask.hub.bare.tip(ref.removeprefix("heads/")) or ref


# --- branches ------------------------------------------------------------------------------------


def _rules(ask: Ask) -> Answer:
    on_target = ask.named("branch") == "main"
    return Answer(200, forms.rules(ask.hub) if on_target else [], pages=True)


def _branch(ask: Ask) -> Answer:
    sha = ask.hub.bare.tip(ask.named("branch"))
    if sha is None:
        raise NotFound
    protected = ask.named("branch") == "main"
    checks = {
        "enforcement_level": "everyone" if protected else "off",
        "contexts": list(ask.hub.rules.checks) if protected and ask.hub.rules.classic else [],
        "checks": [],
    }
    body = {
        "name": ask.named("branch"),
        "commit": forms.commit(ask.hub, sha),
        "protected": protected,
        "protection": {"enabled": protected, "required_status_checks": checks},
    }
    return Answer(200, body)


def _protection(ask: Ask) -> Answer:
    if ask.named("branch") != "main" or not ask.hub.rules.classic:
        raise NotFound
    return Answer(200, forms.protection(ask.hub))


def _ref(ask: Ask) -> Answer:
    sha = ask.hub.bare.tip(ask.named("ref").removeprefix("heads/"))
    if sha is None:
        raise NotFound
    inner = {"type": "commit", "sha": sha}
    return Answer(200, {"ref": f"refs/{ask.named('ref')}", "object": inner})


def _delete_ref(ask: Ask) -> Answer:
    branch = ask.named("ref").removeprefix("heads/")
    if ask.hub.bare.tip(branch) is None or branch == "main":
        raise Refused(422, "Reference does not exist")
    ask.hub.bare.delete(branch)
    return Answer(204)


HANDLERS: dict[tuple[str, str], Callable[[Ask], Answer]] = {
    ("GET", "/user"): _user,
    ("GET", "/app"): _app,
    ("POST", "/app/installations/{installation_id}/access_tokens"): _access_token,
    ("GET", f"{REPO}/installation"): _installation,
    ("GET", REPO): _repository,
    ("GET", f"{REPO}/pulls"): _pulls,
    ("POST", f"{REPO}/pulls"): _open_pull,
    ("GET", PULL): _pull,
    ("PATCH", PULL): _change_pull,
    ("PUT", f"{PULL}/merge"): _merge,
    ("GET", f"{PULL}/reviews"): _reviews,
    ("GET", f"{PULL}/comments"): _review_comments,
    ("POST", f"{PULL}/comments/{{comment_id}}/replies"): _reply,
    ("GET", f"{PULL}/commits"): _commits,
    ("GET", f"{PULL}/files"): _files,
    ("GET", f"{REPO}/issues"): _issues,
    ("GET", ISSUE): _issue,
    ("PATCH", ISSUE): _change_issue,
    ("GET", f"{ISSUE}/comments"): _comments,
    ("POST", f"{ISSUE}/comments"): _say,
    ("PATCH", f"{REPO}/issues/comments/{{comment_id}}"): _change_comment,
    ("GET", f"{ISSUE}/events"): _events,
    ("GET", f"{ISSUE}/timeline"): _events,
    ("POST", f"{ISSUE}/labels"): _add_labels,
    ("DELETE", f"{ISSUE}/labels/{{name}}"): _drop_label,
    ("GET", f"{REPO}/commits/{{ref}}/check-runs"): _check_runs,
    ("GET", f"{REPO}/commits/{{ref}}/status"): _combined,
    ("POST", f"{REPO}/statuses/{{sha}}"): _set_status,
    ("POST", f"{REPO}/check-runs"): _new_check,
    ("PATCH", f"{REPO}/check-runs/{{check_run_id}}"): _change_check,
    ("GET", f"{REPO}/check-runs/{{check_run_id}}/annotations"): _annotations,
    ("GET", f"{REPO}/actions/runs"): _runs,
    ("GET", f"{REPO}/actions/runs/{{run_id}}/jobs"): _jobs,
    ("GET", f"{REPO}/actions/jobs/{{job_id}}/logs"): _log,
    ("POST", f"{REPO}/actions/runs/{{run_id}}/rerun-failed-jobs"): _rerun,
    ("GET", f"{REPO}/rules/branches/{{branch}}"): _rules,
    ("GET", f"{REPO}/branches/{{branch}}"): _branch,
    ("GET", f"{REPO}/branches/{{branch}}/protection"): _protection,
    ("GET", f"{REPO}/collaborators/{{username}}/permission"): _permission,
    ("GET", f"{REPO}/git/ref/{{ref}}"): _ref,
    ("DELETE", f"{REPO}/git/refs/{{ref}}"): _delete_ref,
}
assert set(HANDLERS) | {("GET", "/rate_limit")} == set(CALLS)
