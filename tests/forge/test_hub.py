"""The test server itself: it refuses what GitHub does not describe, and remembers what was done."""

import json
import subprocess
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import httpx
import pytest

from tests.forge.contract import (
    CALLS,
    PULL,
    REPO,
    BrokenContract,
    Exchange,
    check_graphql,
    load_contract,
    need,
)
from tests.forge.faults import Kind, on
from tests.forge.forms import pull as pull_form
from tests.forge.hub import TOKEN, Hub
from tests.forge.rest import HANDLERS
from tests.forge.state import Annotation, Outcome, Token

DEMO = "/repos/octo/demo"
NAMES = {"owner": "octo", "repo": "demo"}
PUSHED = "lockgate/a"


@pytest.fixture
def client(hub: Hub) -> Generator[httpx.Client]:
    with httpx.Client(base_url=hub.url, headers=bearer(TOKEN), timeout=30) as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def offer(hub: Hub, client: httpx.Client, branch: str = PUSHED, text: str = "good\n") -> int:
    """A branch with one commit and its pull request; its number."""
    bare = hub.state.bare
    tip = (str(bare.tip("main")),)
    bare.move(branch, bare.commit({"answer.txt": text}, parents=tip, message="x", author="bot"))
    new = {"title": "Do it", "head": branch, "base": "main", "body": "Closes #1."}
    answer = client.post(f"{DEMO}/pulls", json=new)
    assert answer.status_code == 201, answer.text
    return int(answer.json()["number"])


def head(hub: Hub, number: int) -> str:
    return hub.state.pulls[number].sha


# --- what is refused -----------------------------------------------------------------------------

A_PULL = {**NAMES, "pull_number": "1"}
BAD_REQUESTS = {
    "no base": Exchange("POST", f"{REPO}/pulls", NAMES, {}, {"title": "t", "head": "h"}),
    "state merged": Exchange("PATCH", PULL, A_PULL, {}, {"state": "merged"}),
    "draft in a patch": Exchange("PATCH", PULL, A_PULL, {}, {"draft": True}),
    "a method of merging": Exchange("PUT", f"{PULL}/merge", A_PULL, {}, {"merge_method": "ff"}),
    "a query": Exchange("GET", f"{REPO}/pulls", NAMES, {"status": "open"}),
    "a state": Exchange("GET", f"{REPO}/pulls", NAMES, {"state": "merged"}),
    "a path": Exchange("GET", f"{REPO}/mergings", NAMES),
    "a number": Exchange("GET", PULL, {**NAMES, "pull_number": "first"}),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_request_that_github_does_not_describe_is_refused(name: str) -> None:
    with pytest.raises(BrokenContract):
        load_contract().check_request(BAD_REQUESTS[name])


def test_a_request_that_github_describes_passes() -> None:
    body = {"title": "t", "head": "h", "base": "main"}

    load_contract().check_request(Exchange("POST", f"{REPO}/pulls", NAMES, {}, body))


def test_an_answer_without_a_fact_is_refused(hub: Hub, client: httpx.Client) -> None:
    number = offer(hub, client)
    exchange = Exchange("GET", PULL, {**NAMES, "pull_number": str(number)})
    form = pull_form(hub.state, hub.state.pulls[number])
    del form["mergeable_state"]

    with pytest.raises(BrokenContract, match="mergeable_state"):
        hub.contract.check_answer(exchange, 200, hub.contract.filled(exchange, 200, form))


def test_an_answer_with_an_unlisted_code_is_refused() -> None:
    with pytest.raises(BrokenContract, match="418"):
        load_contract().check_answer(Exchange("GET", PULL, A_PULL), 418, {})


def test_the_server_keeps_what_was_against_the_description(tmp_path: Path) -> None:
    with Hub(tmp_path / "github") as hub, httpx.Client(base_url=hub.url) as client:
        answer = client.post(f"{DEMO}/pulls", json={"title": "t"}, headers=bearer(TOKEN))

    assert answer.status_code == 400
    assert "'base' is a required property" in hub.violations[0]


@pytest.mark.parametrize(
    "text",
    [
        "mutation($i: ID!){markPullRequestReadyForReview(input:{pullRequestId:$i}){nothing}}",
        "mutation{enqueuePullRequest(input:{}){clientMutationId}}",
        'query{repository(owner:"o",name:"r"){pullRequest(number:"1"){id}}}',
    ],
)
def test_graphql_against_the_schema_is_refused(text: str) -> None:
    need("schema.graphql")

    assert check_graphql(text) != []


def test_every_call_has_an_answer() -> None:
    assert set(HANDLERS) | {("GET", "/rate_limit")} == set(CALLS)


# --- what is remembered --------------------------------------------------------------------------


def test_a_pull_request_goes_from_red_to_merged(hub: Hub, client: httpx.Client) -> None:
    hub.people.writes_issue("ben", "Do it", "please", label="lockgate")
    bad = Outcome("failure", "one\ntwo\n", "Run tests", (Annotation("answer.txt", 1, "bad"),))
    hub.people.ci("build", bad, Outcome())
    number = offer(hub, client)
    sha = head(hub, number)
    merge = {"sha": sha, "merge_method": "squash"}

    red = client.get(f"{DEMO}/commits/{sha}/check-runs").json()["check_runs"][0]
    run = client.get(f"{DEMO}/actions/runs", params={"head_sha": sha}).json()["workflow_runs"][0]
    job = client.get(f"{DEMO}/actions/runs/{run['id']}/jobs").json()["jobs"][0]
    where = client.get(f"{DEMO}/actions/jobs/{job['id']}/logs")
    text = httpx.get(where.headers["location"]).text
    notes = client.get(f"{DEMO}/check-runs/{red['id']}/annotations").json()
    refused = client.put(f"{DEMO}/pulls/{number}/merge", json=merge)
    client.post(f"{DEMO}/actions/runs/{run['id']}/rerun-failed-jobs")
    hub.people.approves("ben", number)
    landed = client.put(f"{DEMO}/pulls/{number}/merge", json=merge)

    assert (red["conclusion"], job["steps"][-1]["name"]) == ("failure", "Run tests")
    assert text == "one\ntwo\n"
    assert (notes[0]["path"], notes[0]["start_line"]) == ("answer.txt", 1)
    assert (refused.status_code, landed.status_code) == (405, 200)
    assert hub.state.bare.tip("main") == landed.json()["sha"]
    assert hub.state.bare.text("main", "answer.txt") == "good"
    assert hub.state.issues[1].state == "closed"


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
def test_each_way_of_merging_lands_the_tree(hub: Hub, client: httpx.Client, method: str) -> None:
    hub.state.rules.checks, hub.state.rules.approvals = (), 0
    number = offer(hub, client)
    tree = hub.state.bare.tree(head(hub, number))

    landed = client.put(f"{DEMO}/pulls/{number}/merge", json={"merge_method": method}).json()

    assert hub.state.bare.tree(landed["sha"]) == tree


def test_the_author_and_readers_cannot_approve(hub: Hub, client: httpx.Client) -> None:
    hub.state.rules.checks = ()
    number = offer(hub, client)

    hub.people.approves("lockgate[bot]", number)
    hub.people.approves("a stranger", number)

    assert client.get(f"{DEMO}/pulls/{number}").json()["mergeable_state"] == "blocked"


def test_a_head_that_moved_is_a_409(hub: Hub, client: httpx.Client) -> None:
    number = offer(hub, client)
    hub.people.pushes("ben", PUSHED, {"more.txt": "by hand\n"})

    answer = client.put(f"{DEMO}/pulls/{number}/merge", json={"sha": "0" * 40})

    assert answer.status_code == 409


def test_two_changes_of_a_line_do_not_merge(hub: Hub, client: httpx.Client) -> None:
    number = offer(hub, client)
    hub.people.pushes("ben", "main", {"answer.txt": "other\n"})

    seen = client.get(f"{DEMO}/pulls/{number}").json()

    assert (seen["mergeable"], seen["mergeable_state"]) == (False, "dirty")


def test_a_deleted_branch_closes_its_pull_request(hub: Hub, client: httpx.Client) -> None:
    number = offer(hub, client)

    assert client.delete(f"{DEMO}/git/refs/heads/{PUSHED}").status_code == 204
    assert client.get(f"{DEMO}/pulls/{number}").json()["state"] == "closed"


def test_a_second_pull_request_of_a_branch_is_refused(hub: Hub, client: httpx.Client) -> None:
    offer(hub, client)

    again = client.post(f"{DEMO}/pulls", json={"title": "t", "head": PUSHED, "base": "main"})

    assert again.status_code == 422


def test_graphql_takes_a_draft_back_and_queues(hub: Hub, client: httpx.Client) -> None:
    hub.state.rules.checks, hub.state.rules.approvals, hub.state.rules.queue = (), 0, True
    number = offer(hub, client)
    hub.people.drafts("ben", number)
    ready = (
        "mutation($i: ID!){markPullRequestReadyForReview(input:{pullRequestId:$i})"
        "{pullRequest{isDraft}}}"
    )
    queue = (
        "mutation($i: ID!, $h: GitObjectID){enqueuePullRequest(input:"
        "{pullRequestId:$i, expectedHeadOid:$h}){mergeQueueEntry{position}}}"
    )

    def ask(text: str, **variables: str) -> dict[str, object]:
        sent = {"query": text, "variables": {"i": f"PR_{number}", **variables}}
        return dict(client.post("/graphql", json=sent).json())

    assert ask(ready)["data"] == {
        "markPullRequestReadyForReview": {"pullRequest": {"isDraft": False}}
    }
    assert "Head branch was modified" in str(ask(queue, h="0" * 40)["errors"])
    assert ask(queue, h=head(hub, number))["data"] == {
        "enqueuePullRequest": {"mergeQueueEntry": {"position": 1}}
    }
    assert hub.people.queue_merges() == hub.state.bare.tip("main")


def test_auto_merge_waits_for_the_approval(hub: Hub, client: httpx.Client) -> None:
    hub.state.rules.checks = ()
    number = offer(hub, client)
    text = (
        "mutation($i: ID!){enablePullRequestAutoMerge(input:{pullRequestId:$i,"
        " mergeMethod: SQUASH}){pullRequest{autoMergeRequest{mergeMethod}}}}"
    )

    client.post("/graphql", json={"query": text, "variables": {"i": f"PR_{number}"}})
    before = client.get(f"{DEMO}/pulls/{number}").json()["merged"]
    hub.people.approves("ben", number)
    after = client.get(f"{DEMO}/pulls/{number}").json()["merged"]

    assert (before, after) == (False, True)


# --- git -----------------------------------------------------------------------------------------


def push(
    hub: Hub, place: Path, branch: str, token: str = TOKEN
) -> subprocess.CompletedProcess[str]:
    where = hub.git_url.replace("http://", f"http://x-access-token:{token}@")
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(place), "GIT_TERMINAL_PROMPT": "0"}

    def git(*argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *argv],
            cwd=place,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )

    git("clone", "--quiet", str(hub.repository), "clone")
    place /= "clone"
    (place / "answer.txt").write_text("good\n")
    git("commit", "--quiet", "--all", "--message", "x")
    return git("push", where, f"HEAD:refs/heads/{branch}")


@pytest.mark.parametrize("code", ["GH006", "GH013"])
def test_the_target_takes_no_push(hub: Hub, tmp_path: Path, code: str) -> None:
    hub.state.bare.protect("main", code)

    done = push(hub, tmp_path, "main")

    assert done.returncode != 0
    assert f"{code}: " in done.stderr


def test_another_branch_takes_one_with_a_live_token(hub: Hub, tmp_path: Path) -> None:
    done = push(hub, tmp_path, PUSHED)

    assert done.returncode == 0, done.stderr
    assert hub.state.bare.text(PUSHED, "answer.txt") == "good"


def test_a_revoked_token_neither_pushes_nor_reads(
    hub: Hub, client: httpx.Client, tmp_path: Path
) -> None:
    hub.revoke()

    assert push(hub, tmp_path, PUSHED).returncode != 0
    assert client.get(f"{DEMO}/pulls").status_code == 401


# --- budgets, pages, tags, faults ----------------------------------------------------------------


def test_a_304_takes_nothing_from_the_budget(hub: Hub, client: httpx.Client) -> None:
    first = client.get(f"{DEMO}/pulls")
    again = client.get(f"{DEMO}/pulls", headers={"If-None-Match": first.headers["etag"]})

    assert again.status_code == 304
    assert again.headers["x-ratelimit-remaining"] == first.headers["x-ratelimit-remaining"]
    assert again.headers["x-ratelimit-resource"] == "core"


def test_a_list_is_cut_into_pages(hub: Hub, client: httpx.Client) -> None:
    issue = hub.people.writes_issue("ben", "Much")
    for number in range(250):
        hub.people.says("ben", issue.number, f"comment {number}")

    found, where = [], f"{DEMO}/issues/{issue.number}/comments?per_page=100"
    while where:
        answer = client.get(where)
        found += answer.json()
        where = answer.links.get("next", {}).get("url", "")

    assert [it["body"] for it in found] == [f"comment {number}" for number in range(250)]


def test_an_empty_bucket_refuses_only_its_own(hub: Hub, client: httpx.Client) -> None:
    hub.buckets["graphql"].remaining = 0

    refused = client.post("/graphql", json={"query": "query{viewer{login}}"})

    assert (refused.status_code, refused.headers["x-ratelimit-resource"]) == (403, "graphql")
    assert client.get(f"{DEMO}/pulls").status_code == 200


@pytest.mark.parametrize(
    ("kind", "status", "waits"),
    [
        (Kind.TOO_MANY, 429, "1"),
        (Kind.SECONDARY, 403, "1"),
        (Kind.SECONDARY_SILENT, 403, None),
        (Kind.BROKEN_BEFORE, 502, None),
    ],
)
def test_a_planned_fault_is_played_once(
    hub: Hub, client: httpx.Client, kind: Kind, status: int, waits: str | None
) -> None:
    hub.faults.plan(kind)

    first, second = client.get(f"{DEMO}/pulls"), client.get(f"{DEMO}/pulls")

    assert (first.status_code, first.headers.get("retry-after")) == (status, waits)
    assert second.status_code == 200


def test_a_502_can_come_after_the_write_happened(hub: Hub, client: httpx.Client) -> None:
    issue = hub.people.writes_issue("ben", "Do it")
    hub.faults.plan(Kind.BROKEN_AFTER, matches=on("POST", "/comments"))

    answer = client.post(f"{DEMO}/issues/{issue.number}/comments", json={"body": "hi"})

    assert answer.status_code == 502
    assert [it.body for it in issue.comments] == ["hi"]


def test_half_an_answer_and_no_answer(hub: Hub, client: httpx.Client) -> None:
    hub.faults.plan(Kind.CUT)
    with pytest.raises(httpx.RemoteProtocolError):
        client.get(f"{DEMO}/pulls")

    hub.faults.plan(Kind.SILENT)
    with pytest.raises(httpx.ReadTimeout):
        client.get(f"{DEMO}/pulls", timeout=0.2)


def test_a_stale_read_is_the_answer_before(hub: Hub, client: httpx.Client) -> None:
    number = offer(hub, client)
    client.get(f"{DEMO}/pulls/{number}")
    hub.people.closes("ben", number)
    hub.faults.plan(Kind.STALE)

    seen = [client.get(f"{DEMO}/pulls/{number}").json()["state"] for _ in range(2)]

    assert seen == ["open", "closed"]


def test_mergeable_can_stay_unknown(hub: Hub, client: httpx.Client) -> None:
    number = offer(hub, client)
    hub.state.mergeable_unknown = True

    assert client.get(f"{DEMO}/pulls/{number}").json()["mergeable"] is None


def test_a_fine_grained_token_sees_no_check_runs(hub: Hub, client: httpx.Client) -> None:
    hub.state.tokens["github_pat_x"] = Token("maria", "fine-grained")
    sha = str(hub.state.bare.tip("main"))

    seen = client.get(f"{DEMO}/commits/{sha}/check-runs", headers=bearer("github_pat_x"))

    assert seen.status_code == 403


# --- webhooks ------------------------------------------------------------------------------------


class _Ear(BaseHTTPRequestHandler):
    heard: ClassVar[list[tuple[str, str]]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.heard.append((self.headers["X-GitHub-Event"], self.headers["X-GitHub-Delivery"]))
        self.send_response_only(202)
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.mark.parametrize(
    ("how", "heard"),
    [
        ("once", ["issues", "issue_comment"]),
        ("lost", []),
        ("doubled", ["issues", "issues", "issue_comment", "issue_comment"]),
        ("disordered", ["issue_comment", "issues"]),
        ("forged", ["issues", "issue_comment"]),
    ],
)
def test_webhooks_come_as_they_do(hub: Hub, how: str, heard: list[str]) -> None:
    class Ear(_Ear):
        heard: ClassVar[list[tuple[str, str]]] = []

    with HTTPServer(("127.0.0.1", 0), Ear) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        hub.hook.url = f"http://127.0.0.1:{server.server_port}/"
        issue = hub.people.writes_issue("ben", "Do it", label="lockgate")
        hub.people.says("ben", issue.number, "hi")
        codes = hub.send_webhooks(how)
        server.shutdown()
        thread.join()

    assert [event for event, _ in Ear.heard] == heard
    assert codes == [202] * len(heard)


def test_the_examples_of_the_used_webhooks_are_there() -> None:
    events = {it["name"] for it in json.loads(need("webhooks.json").read_text(encoding="utf-8"))}

    assert {"pull_request", "pull_request_review", "check_run", "issues"} <= events
