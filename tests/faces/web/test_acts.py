"""What people do on the web board: each form does what its command does, under their name."""

from html import unescape
from pathlib import Path

import pytest

from lockgate.core.model.people import Right
from lockgate.core.model.task import Status
from lockgate.faces.web.serve import Listening
from lockgate.faces.words.changes import files_of
from tests.faces.web.home import FIXED, Home, a_home
from tests.faces.web.serving import Board, serving, unix_answer
from tests.scenarios.world import git


def waiting(home: Home, branch: str = "fix-login") -> str:
    task = home.started(branch, "After the login, go on")
    return home.waiting(home.changed(task, {"login.py": FIXED, "b.txt": "two\n"})).id


def test_a_yes_is_given_to_the_change_that_was_shown_and_by_whom(shop: Board) -> None:
    id = waiting(shop.home)
    patch = shop.home.load(id).patch

    answer = shop.post(f"/t/{id}/approve", patch=patch)

    assert answer.status == 303
    [yes] = shop.home.load(id).approvals
    assert (yes.gate, yes.patch, yes.by) == ("sign_off", patch, shop.home.app.caller.by)
    assert shop.woken


@pytest.mark.parametrize("act", ["approve", "land", "reject"])
@pytest.mark.parametrize("patch", ["", "0" * 40])
@pytest.mark.unmeasured
def test_another_change_than_the_one_that_was_shown_is_shown_and_nothing_is_done(
    shop: Board, act: str, patch: str
) -> None:
    id = waiting(shop.home)
    before = shop.home.load(id)

    answer = shop.post(f"/t/{id}/{act}", patch=patch, message="no")

    assert answer.status == 409
    assert "has moved on" in answer.text
    assert before.patch in answer.text
    assert shop.home.load(id) == before


def test_comments_on_lines_go_back_to_the_agent_with_the_no(shop: Board) -> None:
    id = waiting(shop.home)
    patch = shop.home.load(id).patch
    saved = shop.post(f"/t/{id}/drafts", patch=patch, at="0n11", text="'//evil' too?")
    shop.post(f"/t/{id}/drafts", patch=patch, at="1n1", text="Why?", priority="P3")
    shown = unescape(shop.get(f"/t/{id}/review").text)
    assert saved.status == 303
    assert "'//evil' too?" in shown
    assert "Send back (2)" in shown

    answer = shop.post(f"/t/{id}/reject", patch=patch, message="Not yet.")

    task = shop.home.load(id)
    assert (answer.status, task.status) == (303, Status.WORKING)
    told = task.history[-1].feedback
    assert told is not None
    found = {(it.location.file, it.location.line): it.issue for it in told.findings if it.location}
    assert found["login.py", 11] == "'//evil' too?"
    assert found["b.txt", 1] == "Why?"
    assert shop.home.app.desk.drafts(task.id, shop.home.app.caller) == ()


@pytest.mark.parametrize("act", ["approve", "land"])
def test_a_yes_keeps_the_notes_and_leaves_the_other_comments(shop: Board, act: str) -> None:
    """A note asks for nothing: it stands with the yes. The rest stays a draft of its author."""
    id = waiting(shop.home)
    if act == "land":
        shop.home.put(shop.home.load(id), Status.REVIEWING, passed=("tests", "sign_off"))
    patch = shop.home.load(id).patch
    shop.post(f"/t/{id}/drafts", patch=patch, at="0n11", text="Name it", priority="P3")
    shop.post(f"/t/{id}/drafts", patch=patch, at="1n1", text="And this?", priority="P1")

    answer = shop.post(f"/t/{id}/{act}", patch=patch)

    assert answer.status == 303
    assert shop.home.load(id).approvals[-1].comment == "login.py:11: Name it"
    left = shop.home.app.desk.drafts(shop.home.load(id).id, shop.home.app.caller)
    assert [it.text for it in left] == ["And this?"]


def test_a_comment_stays_until_it_is_removed_and_finds_its_line_again(shop: Board) -> None:
    id = waiting(shop.home)
    task = shop.home.load(id)
    shop.post(f"/t/{id}/drafts", patch=task.patch, at="0n11", text="here")
    moved = FIXED.replace('HOME = "/home"', '# A line more.\nHOME = "/home"')
    shop.home.waiting(shop.home.changed(task := shop.home.load(id), {"login.py": moved}))
    text = shop.get(f"/t/{id}/review").text

    at = text.index("here</p>")
    assert text.rindex("page if page.startswith", 0, at) > text.rindex('class="l', 0, at) - 200
    [draft] = shop.home.app.desk.drafts(task.id, shop.home.app.caller)
    shop.post(f"/t/{id}/drafts", patch=shop.home.load(id).patch, drop=draft.id)
    assert shop.home.app.desk.drafts(task.id, shop.home.app.caller) == ()


@pytest.mark.parametrize("at", ["", "9n1", "xn1", "0x1", "0n" + "9" * 30])
def test_a_comment_on_no_line_is_refused(shop: Board, at: str) -> None:
    id = waiting(shop.home)

    answer = shop.post(f"/t/{id}/drafts", patch=shop.home.load(id).patch, at=at, text="x")

    assert answer.status == 422


def test_a_question_is_answered_and_a_stuck_task_is_sent_on(shop: Board) -> None:
    asks = shop.home.put(shop.home.started("a", "Ask"), Status.CLARIFICATION, question="Which?")
    stuck = shop.home.put(shop.home.started("b", "Stuck"), Status.STUCK)

    assert shop.post(f"/t/{asks.id}/answer", message="").status == 422
    assert shop.post(f"/t/{asks.id}/answer", message="The second.").status == 303
    assert shop.post(f"/t/{stuck.id}/resume", directive="Try again.").status == 303

    assert shop.home.load(asks.id).status is Status.WORKING
    assert shop.home.load(stuck.id).status is Status.WORKING


def test_a_task_is_created_from_its_goal_alone(shop: Board) -> None:
    project = shop.home.project("shop").id
    shop.home.task("other", "Another")

    answer = shop.post("/tasks", goal="Say hello\n\nOn the first page.", project=project)

    id = answer.headers["location"].removeprefix("/t/")
    task = shop.home.load(id)
    assert (task.summary, task.auto_start) == ("Say hello", False)
    assert "On the first page." in (shop.home.app.store.body(task.id) or "")


def test_a_task_that_cannot_be_created_keeps_what_was_written(shop: Board) -> None:
    project = shop.home.project("shop").id
    shop.home.task("other", "Another")

    answer = shop.post("/tasks", goal="Say hello", project=project, branch="no branch")

    assert answer.status == 422
    assert "is not a name that git takes" in unescape(answer.text)
    assert "Say hello</textarea>" in answer.text


def test_a_need_that_was_seen_is_dimmed_for_who_has_seen_it(shop: Board) -> None:
    waiting(shop.home)
    [need] = shop.home.app.boards.inbox().needs

    shop.post(f"/needs/{need.key}/seen")

    assert "need dimmed" in shop.get("/").text
    shop.home.app.members.add("ann", Right.LOOK, None, shop.home.app.caller)
    shop.log_in("ann")
    assert "need dimmed" not in shop.get("/").text


@pytest.mark.parametrize(
    ("may", "allowed"),
    [
        (Right.LOOK, set()),
        (Right.WORK, {"reject", "start", "cancel"}),
        (Right.LAND, {"reject", "start", "cancel", "approve"}),
    ],
)
def test_people_do_what_they_have_the_right_to(shop: Board, may: Right, allowed: set[str]) -> None:
    shop.home.app.members.add("ann", may, None, shop.home.app.caller)
    shop.log_in("ann")
    done = set[str]()
    for act in ("approve", "reject", "start", "cancel"):
        task = shop.home.task(f"{act}-it", "Do it")
        if act in {"approve", "reject"}:
            changed = shop.home.changed(
                shop.home.put(
                    task,
                    Status.WORKING,
                    pinned=shop.home.app.configuration.rules_of(shop.home.project("shop")),
                ),
                {f"{act}.txt": "x\n"},
            )
            task = shop.home.waiting(changed)
        answer = shop.post(f"/t/{task.id}/{act}", patch=task.patch, message="so")
        assert answer.status in {303, 422}
        done |= {act} if answer.status == 303 else set()

    assert done == allowed


def test_a_gate_that_names_its_people_takes_a_yes_of_those_alone(shop: Board) -> None:
    home = shop.home
    config = home.project("shop").root
    home.app.members.add("ann", Right.LAND, None, home.app.caller)
    path = Path(config) / ".lockgate" / "config.toml"
    text = path.read_text().replace('type = "human"', 'type = "human"\napprovers = ["ann"]')
    path.write_text(text)
    git(Path(config), "commit", "--quiet", "--all", "--message", "Ann approves")
    id = waiting(home)
    patch = home.load(id).patch

    refused = shop.post(f"/t/{id}/approve", patch=patch)
    shop.log_in("ann")
    taken = shop.post(f"/t/{id}/approve", patch=patch)

    assert refused.status == 422
    assert "takes a yes of ann alone" in unescape(refused.text)
    assert taken.status == 303
    assert [(it.by, it.how) for it in home.load(id).approvals] == [("ann", "web login")]


# --- people behind a proxy -----------------------------------------------------------------------


def said(host: str, path: str, more: str = "", body: str = "") -> bytes:
    method = "POST" if body else "GET"
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def test_two_people_approve_by_name_through_a_proxy_s_socket(tmp_path: Path) -> None:
    home = a_home(tmp_path)
    home.app.members.add("ann", Right.LAND, None, home.app.caller)
    path = tmp_path / "board.sock"
    at = Listening(path=path, url="https://board.example", header="X-Remote-User")
    with serving(home, at) as board:
        for who in ("ann", "ben"):
            id = waiting(home, f"by-{who}")
            page = unix_answer(path, said("board.example", "/new", f"X-Remote-User: {who}\r\n"))
            key = page.decode().partition('data-csrf="')[2].partition('"')[0]
            more = f"X-Remote-User: {who}\r\nOrigin: https://board.example\r\n"
            more += "Content-Type: application/x-www-form-urlencoded\r\n"
            body = f"csrf={key}&patch={home.load(id).patch}"
            answer = unix_answer(path, said("board.example", f"/t/{id}/approve", more, body))
            yes = home.load(id).approvals
            if who == "ann":
                assert [it.by for it in yes] == ["ann"]
            else:
                assert b"has the right to look" in answer
                assert yes == ()
        nobody = unix_answer(path, said("board.example", "/"))
        assert nobody.startswith(b"HTTP/1.1 401")
        assert board.served.secure
    home.app.close()


def test_a_forged_header_over_tcp_is_nobody_s_word(shop: Board) -> None:
    headers = [("Host", shop.served.host), ("X-Remote-User", shop.home.app.caller.by)]

    assert shop.ask("GET", "/", headers).status == 401


# --- how much a phone loads ----------------------------------------------------------------------


def test_the_review_of_three_hundred_lines_is_at_most_sixty_kilobytes(shop: Board) -> None:
    task = shop.home.started("much", "Change much")
    lines = "".join(
        f"    line_{n} = compute(something, {n * 37})  # as before\n" for n in range(300)
    )
    id = shop.home.waiting(shop.home.changed(task, {"much.py": lines})).id
    sent = 0
    for path in (f"/t/{id}/review", "/static/board.css", "/static/board.js", "/static/icon.svg"):
        headers = [*shop.usual("GET"), ("Accept-Encoding", "gzip")]
        answer = shop.ask("GET", path, headers)
        assert answer.status == 200
        sent += int(answer.headers["content-length"])

    assert sent <= 60_000


def test_a_change_of_five_thousand_files_is_shown_file_by_file(shop: Board) -> None:
    """As git tells it; a change that git really made is in test_moments.py."""
    task = shop.home.waiting(shop.home.changed(shop.home.started("many", "Many"), {"a": "x\n"}))
    told = "".join(_added(f"part{n % 50}/file_{n:04}.py", n) for n in range(5_000))
    shop.site._diffs[task.id, task.patch] = files_of(told)
    page = f"/t/{task.id}/review"

    whole = shop.ask("GET", page, [*shop.usual("GET"), ("Accept-Encoding", "gzip")])
    part = shop.get(f"{page}?part=1&file=4321").text

    assert whole.status == 200
    assert int(whole.headers["content-length"]) < 500_000
    assert part.count('<details class="file"') == 1
    assert part.count('class="hunk"') == 1
    assert 'id="f-4321" open' in part


def _added(name: str, value: int) -> str:
    return (
        f"diff --git a/{name} b/{name}\nnew file mode 100644\nindex 0000000..1111111\n"
        f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+VALUE = {value}\n"
    )


# --- the other forms -----------------------------------------------------------------------------


def test_a_change_is_let_land_held_and_taken_out_of_the_queue(shop: Board) -> None:
    home = shop.home
    task = home.changed(home.started("cart", "Keep the cart"), {"cart.py": "x\n"})
    task = home.put(task, Status.REVIEWING, passed=("tests", "sign_off"))

    assert shop.post(f"/t/{task.id}/land", patch=task.patch).status == 303
    assert home.load(task.id).to_land
    assert shop.post(f"/t/{task.id}/hold", message="Wait for Ann.").status == 303
    assert home.load(task.id).held == "Wait for Ann."
    assert shop.post(f"/t/{task.id}/drop", message="").status == 422
    assert shop.post(f"/t/{task.id}/drop", message="Rename it.").status == 303
    assert home.load(task.id).status is Status.WORKING


def test_words_reach_the_agent_and_the_log(shop: Board) -> None:
    working, waits = shop.home.started("a", "Work"), waiting(shop.home)

    said = shop.post(f"/t/{working.id}/say", message="Look at the tests first.")
    noted = shop.post(f"/t/{waits}/comment", message="I look at it tomorrow.")

    assert (said.status, noted.status) == (303, 303)
    types = {it.type for it in shop.home.app.store.events(None, 0, 1000)}
    assert {"word.said", "human.commented"} <= types
    assert shop.home.load(waits).waiting == "sign_off"


def test_a_need_is_put_off_until_tomorrow(shop: Board) -> None:
    waiting(shop.home)
    [need] = shop.home.app.boards.inbox().needs

    answer = shop.post(f"/needs/{need.key}/snooze")

    assert (answer.status, answer.headers["location"]) == (303, "/#needs")
    assert "need dimmed" in shop.get("/").text


@pytest.mark.parametrize(("chosen", "kept"), [("dark", True), ("light", True), ("x", False)])
def test_a_colour_scheme_is_kept_and_leads_to_a_page_of_ours(shop, chosen, kept) -> None:
    answer = shop.post("/theme", theme=chosen, next="//evil.example")

    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert [it.startswith(f"theme={chosen};") for it in answer.cookies] == [True] * kept


def test_an_agent_that_is_gone_is_started_again(shop: Board) -> None:
    task = shop.home.put(shop.home.started("a", "Work"), Status.WORKING, dead=True)

    answer = shop.post(f"/t/{task.id}/respawn", directive="Go on.")

    assert answer.status == 303
    assert shop.home.load(task.id).directive == "Go on."
    assert shop.home.app.store.events(task.id, 0, 1000)[-1].type == "agent.respawned"


def test_a_form_of_no_action_is_told(shop: Board) -> None:
    assert shop.post(f"/t/{waiting(shop.home)}/nothing").status == 404
