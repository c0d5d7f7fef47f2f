"""The GitHub adapter against the test server, which holds it to GitHub's own description."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import httpx
import pytest

from lockgate.adapters.forge.github import client as client_module
from lockgate.adapters.forge.github.client import CUT, MOST_LOG, Client, Denied, Wires
from lockgate.adapters.forge.github.forge import GithubForge
from lockgate.core.forge.model import (
    HOLD_LABEL,
    Access,
    Check,
    CheckState,
    ReviewState,
    Seen,
    Unknown,
)
from lockgate.errors import Unavailable
from lockgate.ports.forge import Asked, How, Moved, NewPull, NotYet, PullRequest, Verdict
from tests.forge.conftest import hub
from tests.forge.faults import Kind, on
from tests.forge.hub import TOKEN, Hub
from tests.forge.state import Annotation, Outcome, Token

__all__ = ["hub"]
BRANCH = "lockgate/t1"
FAILS = Outcome("failure", "boom\n", "make test", (Annotation("answer.txt", 3, "bad"),))
NEW = NewPull(branch=BRANCH, base="main", title="Fix it", body="ours")


class Clock:
    def __init__(self) -> None:
        self.now, self.slept = 1000.0, list[float]()

    def elapsed(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def a_forge(hub: Hub, token: str = TOKEN, clock: Clock | None = None) -> GithubForge:
    time = clock or Clock()
    wires = Wires(elapsed=time.elapsed, sleep=time.sleep)
    client = Client(api=f"{hub.url}/", token=lambda: token, wires=wires)
    return GithubForge(client=client, repository="octo/demo")


@pytest.fixture
def forge(hub: Hub) -> GithubForge:
    return a_forge(hub)


def pushed(hub: Hub, text: str = "42\n") -> str:
    bare = hub.state.bare
    tip = (str(bare.tip("main")),)
    made = bare.commit({"answer.txt": text}, parents=tip, message="x", author="bot")
    bare.move(BRANCH, made)
    return made


def opened(hub: Hub, forge: GithubForge) -> PullRequest:
    pushed(hub)
    return forge.open(NEW)


def seen(forge: GithubForge, number: int) -> Seen:
    found = forge.look([number])[number]
    assert isinstance(found, Seen), found
    return found


def test_who_it_is_and_what_it_may(forge):
    me = forge.whoami()

    assert (me.login, me.kind, me.sees_checks) == ("lockgate[bot]", "app", True)
    assert me.repo == "github.com/octo/demo"


def test_what_the_target_asks_for(hub, forge):
    found = forge.rules("main")

    assert (found.checks, found.approvals, found.pull_request) == (("build",), 1, True)
    hub.state.rules.strict = hub.state.rules.queue = hub.state.rules.signatures = True
    found = forge.rules("main")
    assert found.strict
    assert found.queue
    assert found.signed


def test_classic_protection_counts_as_well(hub, forge):
    hub.state.rules.classic = True

    found = forge.rules("main")

    assert (found.checks, found.approvals) == (("build",), 1)


def test_a_pull_request_is_opened_once(hub, forge):
    made = opened(hub, forge)

    assert forge.find(BRANCH) == made
    assert forge.open(NEW).number == made.number
    assert len(hub.state.pulls) == 1
    assert forge.find("lockgate/other") is None


@pytest.mark.parametrize(
    "fork", [{"full_name": "eve/demo"}, None], ids=["a fork", "a fork that is gone"]
)
def test_a_pull_request_of_a_fork_is_never_taken_for_ours(fork):
    """Not even where the server forgets that we asked for our own branch only."""
    ours, theirs = (
        {"ref": BRANCH, "sha": "a", "repo": it} for it in ({"full_name": "octo/demo"}, fork)
    )
    row = {"number": 7, "state": "open", "html_url": "", "body": "", "base": ours, "head": theirs}

    client = _over(lambda _request: httpx.Response(200, json=[row]))

    assert GithubForge(client=client, repository="octo/demo").find(BRANCH) is None
    client.close()


def test_a_write_that_happened_and_was_lost_is_found_again(hub, forge):
    pushed(hub)
    hub.faults.plan(Kind.BROKEN_AFTER, matches=on("POST", "/pulls"))

    with pytest.raises(Unavailable):
        forge.open(NEW)

    assert forge.find(BRANCH) is not None
    assert len(hub.state.pulls) == 1


def test_a_look_has_all_that_decisions_need(hub, forge):
    hub.people.ci("build", Outcome("success"))
    number = opened(hub, forge).number
    hub.people.requests_changes("maria", number, "rename", ("answer.txt", 1, "this"))
    hub.people.says("eve", number, "hello")

    found = seen(forge, number)

    assert (found.base, found.open, found.merged, found.draft) == ("main", True, False, False)
    assert found.checks == (Check("build", CheckState.PASSED, found.checks[0].id),)
    assert [it.name for it in found.base_checks] == ["build"]
    assert [(it.by.login, it.state) for it in found.reviews] == [
        ("maria", ReviewState.CHANGES_REQUESTED)
    ]
    assert [(it.path, it.line, it.body) for it in found.comments] == [("answer.txt", 1, "this")]
    assert [it.by.login for it in found.remarks] == ["eve"]
    assert found.at > 0


def test_a_second_look_costs_nothing(hub, forge):
    number = opened(hub, forge).number
    seen(forge, number)
    seen(forge, number)
    hub.log.clear()

    seen(forge, number)

    assert {it.status for it in hub.log} == {304}


def test_every_page_is_read(hub, forge):
    number = opened(hub, forge).number
    for n in range(250):
        hub.people.says("maria", number, f"word {n}")

    assert len(seen(forge, number).remarks) == 250


def test_a_lost_page_makes_the_look_unknown(hub, forge):
    number = opened(hub, forge).number
    for n in range(150):
        hub.people.says("maria", number, f"word {n}")
    hub.faults.plan(Kind.BROKEN_BEFORE, matches=lambda _method, path: "page=2" in path)

    assert isinstance(forge.look([number])[number], Unknown)


@pytest.mark.parametrize(
    "kind", [Kind.TOO_MANY, Kind.SECONDARY, Kind.SECONDARY_SILENT, Kind.CUT, Kind.BROKEN_BEFORE]
)
def test_a_fault_makes_a_look_unknown_and_passes(hub, kind):
    clock = Clock()
    forge = a_forge(hub, clock=clock)
    number = opened(hub, forge).number
    hub.faults.plan(kind, matches=on("GET", f"/pulls/{number}"))

    assert isinstance(forge.look([number])[number], Unknown)
    clock.now += 3700
    assert seen(forge, number).number == number


def test_a_limit_is_obeyed_before_anything_is_asked_again(hub):
    clock = Clock()
    forge = a_forge(hub, clock=clock)
    hub.faults.plan(Kind.SECONDARY_SILENT, matches=on("GET", "/rules/branches/main"))
    with pytest.raises(Unavailable):
        forge.rules("main")
    hub.log.clear()

    with pytest.raises(Unavailable, match="left alone for 60 s"):
        forge.rules("main")

    assert hub.log == []
    clock.now += 61
    assert forge.rules("main").checks == ("build",)


def test_writes_are_a_second_apart(hub):
    clock = Clock()
    forge = a_forge(hub, clock=clock)
    number = opened(hub, forge).number

    forge.amend(number, body="new")

    assert clock.slept == [1.0]
    assert hub.state.pulls[number].issue.body == "new"


def test_a_failed_job_has_its_step_its_log_and_its_places(hub, forge):
    hub.people.ci("build", FAILS)
    number = opened(hub, forge).number
    found = seen(forge, number)

    [failure] = forge.failures(found, found.checks)

    assert (failure.step, failure.log.strip()) == ("make test", "boom")
    assert [(it.path, it.line) for it in failure.places] == [("answer.txt", 3)]


def test_a_check_that_is_no_job_has_no_log(hub, forge):
    number = opened(hub, forge).number

    [failure] = forge.failures(seen(forge, number), [Check("other", CheckState.FAILED)])

    assert (failure.log, failure.places) == ("", ())


def test_jobs_are_run_again(hub, forge):
    hub.people.ci("build", Outcome("cancelled", None), Outcome("success"))
    number = opened(hub, forge).number
    found = seen(forge, number)
    assert found.checks[0].state is CheckState.UNJUDGED

    forge.rerun(found, found.checks)

    assert hub.did("POST", "rerun-failed-jobs")


def test_a_verdict_is_a_check_of_an_app_and_a_status_of_a_person(hub, forge):
    head = pushed(hub)
    forge.report(head, Verdict("main", passed=True, summary="passed"))
    assert hub.did("POST", "/check-runs")
    hub.state.tokens["ghp_classic"] = Token("ben", "classic")

    a_forge(hub, "ghp_classic").report(head, Verdict("main", passed=True, summary="passed"))

    assert hub.did("POST", f"/statuses/{head}")


def test_only_the_head_that_was_seen_is_merged(hub, forge):
    hub.people.ci("build", Outcome("success"))
    number = opened(hub, forge).number
    head = hub.state.pulls[number].sha
    assert isinstance(forge.land(number, head, How.SQUASH), NotYet)
    hub.people.approves("maria", number)

    assert forge.land(number, "e" * 40, How.SQUASH) == Moved()
    assert forge.land(number, head, How.SQUASH) == Asked()
    found = seen(forge, number)
    assert found.merged
    assert found.merge_commit == hub.state.pulls[number].merge_commit


def test_the_forges_queue_takes_the_head_that_was_seen(hub, forge):
    hub.state.rules.queue = True
    hub.people.ci("build", Outcome("success"))
    number = opened(hub, forge).number
    hub.people.approves("maria", number)
    head = hub.state.pulls[number].sha
    forge.rules("main")

    assert forge.land(number, "e" * 40, How.QUEUE) == Moved()
    assert forge.land(number, head, How.QUEUE) == Asked()
    found = seen(forge, number)
    assert (found.place, found.entry) == (1, head)


def test_the_forge_merges_by_itself_once_it_may(hub, forge):
    hub.people.ci("build", Outcome("success"))
    number = opened(hub, forge).number
    head = hub.state.pulls[number].sha

    assert forge.land(number, head, How.AUTO) == Asked()
    hub.people.approves("maria", number)
    hub.state.settle()

    assert seen(forge, number).merged


def test_who_held_it_is_named(hub, forge):
    number = opened(hub, forge).number
    hub.people.labels("maria", number, HOLD_LABEL)

    assert seen(forge, number).acted_by == "maria"


def test_a_thread_is_answered(hub, forge):
    number = opened(hub, forge).number
    hub.people.comments("maria", number, "", ("answer.txt", 1, "this"))
    [one] = seen(forge, number).comments

    forge.reply(number, one.thread, "Answered in abc.")

    assert [it.body for it in hub.state.pulls[number].comments] == ["this", "Answered in abc."]


def test_an_answer_that_is_there_is_not_given_again(hub, forge):
    number = opened(hub, forge).number
    hub.people.comments("maria", number, "", ("answer.txt", 1, "this"))
    [one] = seen(forge, number).comments

    for _ in range(2):
        forge.reply(number, one.thread, "Answered in abc.")

    assert [it.body for it in hub.state.pulls[number].comments] == ["this", "Answered in abc."]


def test_access_is_what_github_says_and_is_remembered(hub, forge):
    assert forge.may("maria") is Access.ADMIN
    assert not forge.may("eve").trusted
    asked = len(hub.log)

    assert forge.may("maria") is Access.ADMIN
    assert len(hub.log) == asked


def test_issues_have_their_labeller_and_say_when_they_were_edited(hub, forge):
    issue = hub.people.writes_issue("eve", "Fix it", "please")
    hub.people.labels("maria", issue.number)
    opened(hub, forge)

    [found] = forge.issues("lockgate", "")
    assert (found.author, found.labelled_by, found.edited_since) == ("eve", "maria", False)

    hub.people.edits("eve", issue.number, body="something else")
    [found] = forge.issues("lockgate", "")
    assert found.edited_since


def test_there_is_one_comment_edited_in_place(hub, forge):
    issue = hub.people.writes_issue("eve", "Fix it")
    forge.comment(issue.number, "intake", "one")
    forge.comment(issue.number, "intake", "two")
    forge.comment(issue.number, "intake", "two")

    assert [it.body for it in issue.comments] == ["<!-- lockgate: intake -->\ntwo"]
    forge.close_issue(issue.number)
    assert issue.state == "closed"


def test_a_token_without_checks_sees_jobs_and_says_so(hub):
    hub.state.tokens["github_pat_x"] = Token("ben", "fine-grained", frozenset({"checks"}))
    forge = a_forge(hub, "github_pat_x")
    hub.people.ci("build", FAILS)
    number = opened(hub, forge).number

    assert not forge.whoami().sees_checks
    assert [(it.name, it.state) for it in seen(forge, number).checks] == [
        ("build", CheckState.FAILED)
    ]


def test_a_revoked_token_is_told(hub, forge):
    hub.revoke()

    with pytest.raises(Denied) as raised:
        forge.rules("main")

    assert raised.value.status == 401


# --- what goes wrong between Lockgate and GitHub ------------------------------------------------


@pytest.mark.parametrize("kind", [Kind.SILENT, Kind.SILENT_AFTER])
def test_a_server_that_does_not_answer_in_time_moves_nothing(hub, forge, kind, monkeypatch):
    number = opened(hub, forge).number
    forge.client.close()
    monkeypatch.setattr(client_module, "SECONDS", 0.2)
    hub.faults.plan(kind, matches=on("GET", f"/pulls/{number}"))
    hub.faults.plan(kind, matches=on("POST", "/check-runs"))

    assert isinstance(forge.look([number])[number], Unknown)
    with pytest.raises(Unavailable):
        forge.report(hub.state.pulls[number].sha, Verdict("main", passed=True, summary="passed"))
    assert seen(forge, number).number == number


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_off_by_an_hour_changes_nothing(hub, hours):
    """Server times meet only server times."""
    clock = Clock()
    forge = a_forge(hub, clock=clock)
    hub.state.clock = timedelta(hours=hours)
    number = opened(hub, forge).number
    review = hub.people.requests_changes("maria", number, "no")
    found = seen(forge, number)

    assert 0 <= found.at - found.reviews[0].at < 60, review
    assert 3500 < forge.budget().left <= 3600
    hub.buckets["core"].remaining = 0
    assert isinstance(forge.look([number])[number], Unknown)
    assert 3500 < forge.client.silent_for() <= 3601


def test_an_empty_bucket_of_graphql_leaves_rest_alone(hub, forge):
    number = opened(hub, forge).number
    seen(forge, number)
    hub.state.rules.threads = True
    forge.rules("main")
    hub.buckets["graphql"].remaining = 0

    assert isinstance(forge.look([number])[number], Unknown), "which threads are open is not known"
    hub.state.rules.threads = False
    forge.rules("main")
    assert seen(forge, number).number == number
    assert forge.client.silent_for("graphql") > 0
    assert forge.client.silent_for() == 0


def test_half_of_a_limit_is_told_with_what_was_paid(hub, forge):
    number = opened(hub, forge).number
    seen(forge, number)
    before = forge.budget()

    seen(forge, number)

    assert forge.budget().paid == before.paid, "304 is free"
    hub.people.says("ben", number, "hm")
    seen(forge, number)
    assert forge.budget().paid > before.paid
    assert forge.budget().remaining < before.remaining


class Log(httpx.SyncByteStream):
    """Thirty parts of a megabyte; it counts what is read of it."""

    def __init__(self, parts: list[bytes]) -> None:
        self.parts, self.read = parts, 0

    def __iter__(self) -> Iterator[bytes]:
        for part in self.parts:
            self.read += len(part)
            yield part


MB = 1024 * 1024
PARTS = [*[b"x" * MB] * 29, b"y" * (MB - 4) + b"boom"]
LOGS, PLAIN_HTTP = "https://logs.example/1", "http://logs.example/1"


@pytest.mark.parametrize(
    ("where", "ranges", "length", "ends"),
    [
        (LOGS, True, MOST_LOG, "boom"),
        (LOGS, False, MOST_LOG + len(CUT), CUT),
        (PLAIN_HTTP, True, 0, ""),
    ],
    ids=["the end", "no part can be asked for", "not over https"],
)
def test_a_log_is_fetched_without_the_token_over_https_and_up_to_20_mb(where, ranges, length, ends):
    asked, given = list[httpx.Request](), list[Log]()

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if request.url.host == "api.github.com":
            return httpx.Response(302, headers={"location": where})
        part = ranges and request.headers.get("range") == f"bytes={30 * MB - MOST_LOG}-"
        given.append(Log(PARTS[-(MOST_LOG // MB) :] if part else PARTS))
        size = sum(map(len, given[-1].parts))
        headers = {"content-length": str(size)}
        return httpx.Response(206 if part else 200, headers=headers, stream=given[-1])

    client = _over(answer)
    text = client.log("repos/o/r/actions/jobs/1/logs")
    client.close()

    assert len(text) == length
    assert text.endswith(ends)
    assert sum(it.read for it in given) <= MOST_LOG + MB
    assert all("authorization" not in it.headers for it in asked[1:])
    assert asked[0].headers["authorization"] == "Bearer ghs_secret"


def test_a_log_that_breaks_off_is_an_answer_that_did_not_come():
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "api.github.com":
            return httpx.Response(302, headers={"location": LOGS})
        raise httpx.ReadError("cut off")

    client = _over(answer)
    with pytest.raises(Unavailable, match="cut off"):
        client.log("repos/o/r/actions/jobs/1/logs")
    client.close()


def _over(answer: Callable[[httpx.Request], httpx.Response]) -> Client:
    time, transport = Clock(), httpx.MockTransport(answer)
    wires = Wires(elapsed=time.elapsed, sleep=time.sleep, transport=transport)
    return Client(api="https://api.github.com/", token=lambda: "ghs_secret", wires=wires)


def test_a_draft_is_made_ready_once(hub, forge):
    pushed(hub)
    number = forge.open(NewPull(branch=BRANCH, base="main", title="x", body="", draft=True)).number
    assert seen(forge, number).draft

    for _ in range(2):
        forge.ready(number)

    assert not seen(forge, number).draft
    assert len([it for it in hub.did("POST", "/graphql") if "Ready" in str(it.body)]) == 1


def test_an_old_answer_shows_the_old_head_and_the_next_look_the_new_one(hub, forge):
    """What follows from a head that is not the pushed one is nothing: tests/core/forge has it."""
    number = opened(hub, forge).number
    first = seen(forge, number).head
    second = pushed(hub, "43\n")
    hub.faults.plan(Kind.STALE, matches=on("GET", f"/pulls/{number}"))

    assert seen(forge, number).head == first
    assert seen(forge, number).head == second
