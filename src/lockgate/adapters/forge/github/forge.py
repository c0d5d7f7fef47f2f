"""The port `Forge` at GitHub: some 25 calls, each as its API description has it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.adapters.forge.github import reading
from lockgate.adapters.forge.github.client import Answer, Client, Denied
from lockgate.core.forge.model import (
    HOLD_LABEL,
    Access,
    Annotation,
    Check,
    Failure,
    Identity,
    Issue,
    Rules,
    Seen,
    Unknown,
)
from lockgate.core.forge.pace import Budget
from lockgate.errors import Unavailable
from lockgate.ports.forge import Asked, How, Moved, NewPull, NotYet, PullRequest, Verdict

Json = Any

# GraphQL: only what REST lacks.

VIEWER = """
query { viewer { login } }
"""

# The place in the merge queue, and which threads are open.
PULL = """
query ($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      mergeQueueEntry { position headCommit { oid } }
      reviewThreads(first: 100) { nodes { isResolved } }
    }
  }
}
"""

# When the text of an issue was changed last.
ISSUE = """
query ($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    issue(number: $number) { lastEditedAt }
  }
}
"""

ENQUEUE = """
mutation ($id: ID!, $head: GitObjectID!) {
  enqueuePullRequest(input: {pullRequestId: $id, expectedHeadOid: $head}) {
    mergeQueueEntry { position }
  }
}
"""

READY = """
mutation ($id: ID!) {
  markPullRequestReadyForReview(input: {pullRequestId: $id}) { pullRequest { number } }
}
"""

AUTO_MERGE = """
mutation ($id: ID!, $head: GitObjectID!) {
  enablePullRequestAutoMerge(input: {pullRequestId: $id, expectedHeadOid: $head}) {
    pullRequest { number }
  }
}
"""

REMEMBERED = 600.0  # seconds for which a person's access is not asked for again
NOT_ALLOWED, CONFLICT, UNPROCESSABLE, FORBIDDEN, MISSING = 405, 409, 422, 403, 404
BLOCKED = frozenset({"blocked", "behind", "draft"})
KINDS = {"ghs_": "app", "github_pat_": "fine-grained"}
ACTED = frozenset({"closed", "labeled", "convert_to_draft", "base_ref_changed"})


class GithubForge(Struct, kw_only=True):
    """`repository` is owner/name."""

    client: Client
    repository: str
    host: str = "github.com"
    _access: dict[str, tuple[Access, float]] = field(
        default_factory=dict[str, tuple[Access, float]]
    )
    _me: list[Identity] = field(default_factory=list[Identity])
    _rules: dict[str, Rules] = field(default_factory=dict[str, Rules])

    def whoami(self) -> Identity:
        """Asked once for each token kind; what it may not do is tried, not guessed."""
        if not self._me:
            self._me.append(self._identified())
        return self._me[0]

    def budget(self) -> Budget:
        return self.client.budget()

    def rules(self, branch: str) -> Rules:
        rows = self.client.pages(f"{self._repo}/rules/branches/{branch}")
        protection: Json = {}
        with suppress(Denied):  # only admins may read it; rulesets say the rest
            protection = self.client.get(f"{self._repo}/branches/{branch}/protection")
        found = reading.rules_from(rows, protection)
        self._rules[branch] = found
        return found

    def find(self, branch: str) -> PullRequest | None:
        owner = self.repository.partition("/")[0]
        rows = self.client.pages(
            f"{self._repo}/pulls", head=f"{owner}:{branch}", state="all", sort="created"
        )
        mine = [_pull(it) for it in rows if it["head"]["ref"] == branch and not _of_a_fork(it)]
        return max(mine, key=lambda it: (it.open, it.number), default=None)

    def open(self, new: NewPull) -> PullRequest:
        body = {
            "title": new.title,
            "head": new.branch,
            "base": new.base,
            "body": new.body,
            "draft": new.draft,
        }
        try:
            return _pull(self.client.send("POST", f"{self._repo}/pulls", body))
        except Denied as error:
            found = self.find(new.branch) if error.status == UNPROCESSABLE else None
            if found is None or not found.open:
                raise
            return found

    def amend(self, number: int, *, body: str = "", reopen: bool = False) -> None:
        given = {**({"body": body} if body else {}), **({"state": "open"} if reopen else {})}
        self.client.send("PATCH", f"{self._repo}/pulls/{number}", given)

    def ready(self, number: int) -> None:
        row = self.client.get(f"{self._repo}/pulls/{number}")
        if row.get("draft"):
            self.client.graphql(READY, id=row["node_id"])

    def look(self, numbers: Iterable[int]) -> Mapping[int, Seen | Unknown]:
        found: dict[int, Seen | Unknown] = {}
        for number in numbers:
            if not self.client.spare():
                found[number] = Unknown("the rest of GitHub's limit is kept for landing")
                continue
            try:
                found[number] = self._seen(number)
            except Unavailable as error:
                found[number] = Unknown(str(error))
        return found

    def failures(self, seen: Seen, checks: Sequence[Check]) -> tuple[Failure, ...]:
        jobs = {it["name"]: it for it in self._jobs(seen.head)}
        return tuple(self._failure(it, jobs.get(it.name)) for it in checks)

    def rerun(self, seen: Seen, checks: Sequence[Check]) -> None:
        names = {it.name for it in checks}
        runs = {it["run_id"] for it in self._jobs(seen.head) if it["name"] in names}
        for run in sorted(runs):
            path = f"{self._repo}/actions/runs/{run}/rerun-failed-jobs"
            self.client.send("POST", path, {})

    def report(self, commit: str, verdict: Verdict) -> None:
        name = f"lockgate/{verdict.target}"
        if self.whoami().kind == "app":
            body: Json = {
                "name": name,
                "head_sha": commit,
                "status": "completed",
                "conclusion": "success" if verdict.passed else "failure",
                "output": {"title": name, "summary": verdict.summary},
            }
            self.client.send("POST", f"{self._repo}/check-runs", body)
            return
        state = "success" if verdict.passed else "failure"
        body = {"state": state, "context": name, "description": verdict.summary[:140]}
        self.client.send("POST", f"{self._repo}/statuses/{commit}", body)

    def land(self, number: int, head: str, how: How) -> Asked | NotYet | Moved:
        match how:
            case How.QUEUE:
                return self._mutated(ENQUEUE, number, head)
            case How.AUTO:
                asked = self._mutated(AUTO_MERGE, number, head)
                clean = isinstance(asked, NotYet) and "clean status" in asked.why
                return self._merged(number, head, How.MERGE) if clean else asked
            case How.MERGE | How.SQUASH | How.REBASE:
                return self._merged(number, head, how)

    def reply(self, number: int, thread: int, words: str) -> None:
        """Once: who was killed after it finds it there."""
        comments = f"{self._repo}/pulls/{number}/comments"
        for it in self.client.pages(comments):
            if it.get("in_reply_to_id") == thread and it["body"] == words:
                return
        self.client.send("POST", f"{comments}/{thread}/replies", {"body": words})

    def issues(self, label: str, since: str) -> tuple[Issue, ...]:
        rows = self.client.pages(f"{self._repo}/issues", labels=label, state="all", since=since)
        return tuple(self._issue(it, label) for it in rows if "pull_request" not in it)

    def comment(self, issue: int, key: str, words: str) -> None:
        mark = f"<!-- lockgate: {key} -->"
        body = {"body": f"{mark}\n{words}"}
        rows = self.client.pages(f"{self._repo}/issues/{issue}/comments")
        mine = [it for it in rows if (it.get("body") or "").startswith(mark)]
        own = [it for it in mine if reading.person(it["user"]).login == self.whoami().login]
        if own and own[0]["body"] == body["body"]:
            return
        if own:
            self.client.send("PATCH", f"{self._repo}/issues/comments/{own[0]['id']}", body)
        else:
            self.client.send("POST", f"{self._repo}/issues/{issue}/comments", body)

    def close_issue(self, number: int) -> None:
        self.client.send("PATCH", f"{self._repo}/issues/{number}", {"state": "closed"})

    def may(self, login: str) -> Access:
        known, until = self._access.get(login, (Access.NONE, -1.0))
        if self.client.wires.elapsed() < until:
            return known
        try:
            said = self.client.get(f"{self._repo}/collaborators/{login}/permission")["permission"]
        except Denied as error:
            if error.status != MISSING:
                raise
            said = "none"
        access = Access(said if said in set(Access) else "none")
        self._access[login] = (access, self.client.wires.elapsed() + REMEMBERED)
        return access

    @property
    def _repo(self) -> str:
        return f"repos/{self.repository}"

    def _identified(self) -> Identity:
        token = self.client.token()
        kind = next((it for start, it in KINDS.items() if token.startswith(start)), "classic")
        login = str(self.client.graphql(VIEWER)["viewer"]["login"])
        if kind == "app":  # GraphQL leaves out what REST says of a bot
            login = f"{login.removesuffix('[bot]')}[bot]"
        repo = self.client.get(self._repo)
        pushes = kind == "app" or bool(reading.table(repo.get("permissions")).get("push"))
        sees = self._may_read(f"{self._repo}/commits/{repo['default_branch']}/check-runs")
        missing = [] if pushes else ["contents: write"]
        missing += [] if sees else ["checks: read"]
        return Identity(
            login=login,
            kind=kind,
            host=self.host,
            repo=f"{self.host}/{self.repository}",
            sees_checks=sees,
            may_push=pushes,
            missing=tuple(missing),
        )

    def _may_read(self, path: str) -> bool:
        try:
            self.client.get(path)
        except Denied as error:
            return error.status != FORBIDDEN
        return True

    def _seen(self, number: int) -> Seen:
        answer = self.client.get_at(f"{self._repo}/pulls/{number}")
        row = answer.body
        base = self.client.get(f"{self._repo}/branches/{row['base']['ref']}")["commit"]["sha"]
        talk = f"{self._repo}/pulls/{number}"
        remarks = self.client.pages(f"{self._repo}/issues/{number}/comments")
        seen = Seen(
            **_facts(answer),
            checks=self._checks(row["head"]["sha"]),
            base_checks=self._checks(base),
            reviews=tuple(reading.review(it) for it in self.client.pages(f"{talk}/reviews")),
            comments=tuple(reading.comment(it) for it in self.client.pages(f"{talk}/comments")),
            remarks=tuple(reading.remark(it) for it in remarks),
        )
        return self._queued(self._acted(seen), row["base"]["ref"])

    def _acted(self, seen: Seen) -> Seen:
        """Who closed it, held it or made it a draft, where one of these is so."""
        if seen.open and not seen.draft and HOLD_LABEL not in seen.labels:
            return seen
        rows = self.client.pages(f"{self._repo}/issues/{seen.number}/events")
        who = [reading.person(it["actor"]).login for it in rows if it["event"] in ACTED]
        return replace(seen, acted_by=who[-1] if who else "")

    def _queued(self, seen: Seen, base: str) -> Seen:
        rules = self._rules.get(base, Rules())
        if not (rules.queue or rules.threads) or not seen.open:
            return seen
        owner, _, name = self.repository.partition("/")
        asked = {"owner": owner, "name": name, "number": seen.number}
        pull = self.client.graphql(PULL, **asked)["repository"]["pullRequest"]
        entry = reading.table(pull["mergeQueueEntry"])
        unresolved = [it for it in pull["reviewThreads"]["nodes"] if not it["isResolved"]]
        tested = str(reading.table(entry.get("headCommit")).get("oid", ""))
        place = entry.get("position", 0)
        return replace(seen, place=place, entry=tested, threads_open=len(unresolved))

    def _checks(self, commit: str) -> tuple[Check, ...]:
        """Check runs, or the jobs of Actions where the token may not read those; and statuses."""
        path = f"{self._repo}/commits/{commit}"
        if self.whoami().sees_checks:
            rows = self.client.pages(f"{path}/check-runs", key="check_runs")
        else:
            rows = list(self._jobs(commit))
        runs = [reading.check_run(it) for it in rows]
        return reading.newest((*runs, *reading.statuses(self.client.get(f"{path}/status"))))

    def _jobs(self, commit: str) -> Iterator[Json]:
        runs = self.client.pages(f"{self._repo}/actions/runs", key="workflow_runs", head_sha=commit)
        for run in runs:
            path = f"{self._repo}/actions/runs/{run['id']}/jobs"
            yield from self.client.pages(path, key="jobs")

    def _failure(self, check: Check, job: Json) -> Failure:
        places: list[Json] = []
        with suppress(Denied):
            if check.id:
                path = f"{self._repo}/check-runs/{check.id}/annotations"
                places = self.client.pages(path)
        if not job:
            return Failure(check=check.name, places=_places(places))
        steps = [it["name"] for it in job.get("steps") or () if it["conclusion"] == "failure"]
        return Failure(
            check=check.name,
            step=steps[0] if steps else "",
            log=self.client.log(f"{self._repo}/actions/jobs/{job['id']}/logs"),
            places=_places(places),
            url=job.get("html_url") or "",
        )

    def _merged(self, number: int, head: str, how: How) -> Asked | NotYet | Moved:
        body = {"sha": head, "merge_method": str(how)}
        try:
            self.client.send("PUT", f"{self._repo}/pulls/{number}/merge", body)
        except Denied as error:
            if error.status == CONFLICT:
                return Moved()
            if error.status in {NOT_ALLOWED, FORBIDDEN, UNPROCESSABLE}:
                return NotYet(error.words, final=error.status != NOT_ALLOWED)
            raise
        return Asked()

    def _mutated(self, mutation: str, number: int, head: str) -> Asked | NotYet | Moved:
        id = self.client.get(f"{self._repo}/pulls/{number}")["node_id"]
        try:
            self.client.graphql(mutation, id=id, head=head)
        except Denied as error:
            return Moved() if "was modified" in error.words else NotYet(error.words)
        return Asked()

    def _issue(self, row: Json, label: str) -> Issue:
        number, path = row["number"], f"{self._repo}/issues/{row['number']}"
        events = self.client.pages(f"{path}/events")
        given = [it for it in events if it["event"] == "labeled" and it["label"]["name"] == label]
        since = reading.seconds(given[-1]["created_at"]) if given else 0.0
        renamed = [reading.seconds(it["created_at"]) for it in events if it["event"] == "renamed"]
        remarks = self.client.pages(f"{path}/comments")
        return Issue(
            number=number,
            title=row["title"],
            body=row.get("body") or "",
            author=reading.person(row["user"]).login,
            url=row["html_url"],
            open=row["state"] == "open",
            labels=tuple(it if isinstance(it, str) else it["name"] for it in row["labels"]),
            labelled_by=reading.person(given[-1]["actor"]).login if given else "",
            edited_since=max((*renamed, self._edited(number)), default=0.0) > since,
            comments=tuple(reading.remark(it) for it in remarks),
            updated=reading.seconds(row["updated_at"]),
        )

    def _edited(self, number: int) -> float:
        owner, _, name = self.repository.partition("/")
        found = self.client.graphql(ISSUE, owner=owner, name=name, number=number)
        return reading.seconds(found["repository"]["issue"]["lastEditedAt"])


def _of_a_fork(row: Json) -> bool:
    """Anybody can open one, with a branch of any name; a fork that is gone has no repository."""
    there = row["head"]["repo"]
    return there is None or there["full_name"] != row["base"]["repo"]["full_name"]


def _pull(row: Json) -> PullRequest:
    return PullRequest(
        number=row["number"],
        head=row["head"]["sha"],
        url=row["html_url"],
        body=row.get("body") or "",
        open=row["state"] == "open",
        merged=bool(row.get("merged_at")),
    )


def _facts(answer: Answer) -> dict[str, Any]:
    """What the pull request's own row says."""
    row = answer.body
    return {
        "number": row["number"],
        "head": row["head"]["sha"],
        "base": row["base"]["ref"],
        "at": answer.at,
        "url": row["html_url"],
        "title": row["title"],
        "body": row.get("body") or "",
        "open": row["state"] == "open",
        "merged": bool(row["merged"]),
        "merge_commit": (row.get("merge_commit_sha") or "") if row["merged"] else "",
        "draft": bool(row.get("draft")),
        "mergeable": row["mergeable"],
        "blocked": row["mergeable_state"] in BLOCKED,
        "labels": tuple(it["name"] for it in row["labels"]),
    }


def _places(rows: Sequence[Json]) -> tuple[Annotation, ...]:
    return tuple(
        Annotation(it["path"], it["start_line"], it.get("message") or "")
        for it in rows
        if it.get("annotation_level") != "notice"
    )
