"""`lockgate queue` and `verify` as people use them, on changes that agents really made."""

import json
import os
import pwd
import time

import pytest

from lockgate.adapters.store.train_log import SqlTrainLog
from lockgate.core.model.task import Role, Status
from lockgate.core.train.model import Commit, Tree
from lockgate.ports import Landing
from tests.adapters.workshop import asked, git
from tests.faces.shell import CONFIG, Shell, commit_config

TESTS = CONFIG.replace(
    'name = "review"\ntype = "parallel_review"\ndimensions = ["general"]',
    'name = "tests"\ntype = "command"\ncommand = "! grep -q bad *.txt"\nattempts = 1',
)
HANDS_OFF = '{ section = "Handoff", text = "DONE: it" }, { signal = "complete" }'

ME = pwd.getpwuid(os.getuid()).pw_name


def writes(file: str, text: str) -> str:
    step = f'{{ write = "{file}", text = "{text}\\n" }}'
    return f"[[worker]]\nsteps = [ {step}, {HANDS_OFF} ]\n"


def ready(shell: Shell, **scripts: str) -> list[str]:
    """Changes that have passed their gates, by the agents of an orchestrator."""
    place = shell.repo / ".lockgate" / "agents"
    place.mkdir(parents=True)
    for branch, script in scripts.items():
        (place / f"{branch}.toml").write_text(script, encoding="utf-8")
    commit_config(shell, TESTS)
    ids = [shell.program("task", "create", it, f"Do {it}").out.strip() for it in scripts]
    for id in ids:
        until(shell, id, Status.REVIEWING)
    return ids


def until(shell: Shell, id: str, status: Status) -> None:
    end = time.monotonic() + 60
    while shell.status(id) is not status:
        assert time.monotonic() < end, shell.did("task", "log", id)
        time.sleep(0.05)


def check_board(shell: Shell, ids: set[str]) -> None:
    """It forecasts which two changes would not merge with each other."""
    assert "same.txt" in shell.did("task", "list").splitlines()[-1]
    [clash] = json.loads(shell.did("task", "list", "--json"))["conflicts"]
    assert set(clash["tasks"]) == ids


def test_people_see_the_queue_and_let_changes_land(orchestrated):
    one, two, three = ready(
        orchestrated,
        one=writes("same.txt", "one"),
        two=writes("same.txt", "two"),
        three=writes("three.txt", "three"),
    )

    text = orchestrated.program("queue", "list").out
    listed = orchestrated.program("queue", "list", "--json").facts

    tip = orchestrated.git("rev-parse", "main").strip()
    assert text.startswith(f"main at {tip[:12]}: manual landing by merge, window 4\n")
    assert [text.count(it) for it in ("waits for approval", f"approve {one}", "held")] == [3, 1, 0]
    assert listed["target"]["tip"] == tip
    assert {it["task"]: it["standing"] for it in listed["changes"]} == dict.fromkeys(
        (one, two, three), "held"
    )
    [clash] = listed["conflicts"]
    assert (set(clash["tasks"]), clash["files"]) == ({one, two}, ["same.txt"])
    shown = orchestrated.did("task", "show", one)
    assert f"with {two} (Do two) in same.txt" in shown
    assert [it["task"] for it in orchestrated.facts(one)["conflicts"]] == [two]

    check_board(orchestrated, {one, two})

    held = ("queue", "hold", three, "-m", "after the release")
    assert orchestrated.program(*held).out == f"{three} is held: after the release\n"
    told = f"    held: after the release\n    read it: lockgate diff {three}\n"
    assert [told in orchestrated.did(*it) for it in (("task", "list"), ("status",))] == [True, True]
    approved = orchestrated.program("queue", "approve", one)
    assert approved.out.startswith(f"{one} is in the queue, change ")
    until(orchestrated, one, Status.DONE)
    landed = orchestrated.git("rev-parse", "main").strip()
    assert f"landed as: {landed[:12]}" in " ".join(orchestrated.did("task", "show", one).split())

    dropped = orchestrated.program("queue", "drop", three, "-m", "not this way", "--json")
    assert dropped.facts["failed_attempts"] == 1


def test_verify_tells_what_judged_a_commit(orchestrated):
    [id] = ready(orchestrated, one=writes("one.txt", "one"))
    assert "it has no evidence" in orchestrated.run("verify", "main").why
    orchestrated.program("queue", "approve", id)
    until(orchestrated, id, Status.DONE)

    said = orchestrated.did("verify", "main")
    facts = json.loads(orchestrated.did("verify", "main", "--json"))

    landed = orchestrated.git("rev-parse", "main").strip()
    tree = orchestrated.git("rev-parse", "main^{tree}").strip()
    said = " ".join(said.split())
    assert f"commit: {landed} tree: {tree} " in said
    assert f"tested by: tests, tree {tree[:12]}: " in said
    assert f"change: {id}: Do one" in said
    assert f"approval: merge queue: {ME} (uid {os.getuid()}) said yes" in said
    assert facts["evidence"]["tree"] == tree
    assert facts["commit"] == landed


def test_a_note_that_was_copied_or_forged_verifies_nothing(orchestrated):
    [id] = ready(orchestrated, one=writes("one.txt", "one"))
    orchestrated.program("queue", "approve", id)
    until(orchestrated, id, Status.DONE)
    notes = ("notes", "--ref=refs/notes/lockgate")
    landed = orchestrated.git("rev-parse", "main").strip()
    copied = orchestrated.git(*notes, "show", "main")

    orchestrated.git("commit", "--quiet", "--allow-empty", "--message", "by hand")
    orchestrated.git(*notes, "add", "-m", copied, "main")
    assert "another commit's" in orchestrated.run("verify", "main").why
    (orchestrated.repo / "more.txt").write_text("more\n", encoding="utf-8")
    orchestrated.git("add", "--all")
    orchestrated.git("commit", "--quiet", "--message", "more by hand")
    forged = copied.replace(landed, orchestrated.git("rev-parse", "main").strip())
    orchestrated.git(*notes, "add", "-m", forged, "main")

    assert "another tree" in orchestrated.run("verify", "main").why
    answer = orchestrated.run("verify", "main", "--json")
    assert (answer.code, set(answer.facts["error"])) == (1, {"what", "why", "fix"})


@pytest.mark.parametrize("command", [("approve",), ("hold", "-m", "no"), ("drop", "-m", "no")])
def test_what_is_not_in_the_queue_is_refused_in_three_parts(shell, command):
    id = shell.create()
    word, *rest = command

    answer = shell.run("queue", word, id, *rest)

    assert "it is pending; only a task that is reviewing can land" in answer.why
    assert shell.run("queue", word, id, *rest, "--json").facts["error"]["what"]


def test_an_agent_has_no_say_in_the_queue(shell):
    id = shell.create()
    shell.bring(id, Status.WORKING)
    token = shell.begin(id, Role.WORKER)

    assert "a worker may not do that" in shell.run("queue", "approve", id, token=token).why


def test_an_empty_queue_says_so(shell):
    assert shell.did("queue", "list").endswith("\nnothing waits to land\n")
    assert json.loads(shell.did("queue", "list", "--json"))["changes"] == []


def test_what_git_does_not_know_cannot_be_verified(shell):
    assert "this repository has no commit 'nobody'" in shell.run("verify", "nobody").why


def test_evidence_that_is_nested_too_deeply_is_no_evidence(shell, tmp_path):
    (tmp_path / "note").write_text("[" * 200_000)
    shell.git("notes", "--ref=refs/notes/lockgate", "add", "--file", str(tmp_path / "note"), "main")

    assert "another commit's, or damaged" in shell.run("verify", "main").why


# --- lockgate verify ----------------------------------------------------------------------------


def noted(shell: Shell) -> tuple[str, str]:
    """HEAD and its tree, with a note that fits and that anybody could have written."""
    commit, tree = (asked(shell.repo, "rev-parse", it) for it in ("HEAD", "HEAD^{tree}"))
    proof = {"gate": "tests", "proof": {"tree": tree, "ran": ["true"]}}
    evidence = {"commit": commit, "tree": tree, "train": [proof], "changes": []}
    git(shell.repo, "notes", "--ref=refs/notes/lockgate", "add", "-m", json.dumps(evidence))
    return commit, tree


def lands(shell: Shell, commit: str, tree: str, *, landed: bool) -> None:
    """What the log of this home has of a landing."""
    app = shell.app()
    log = SqlTrainLog(app.store.database)
    meant = Landing(expected=Commit("0" * 40), commit=Commit(commit), tree=Tree(tree), tasks=())
    log.settle("p  main", log.intend("p  main", meant, 1.0).number, landed=landed)
    app.store.close()


def test_verify_says_that_a_note_alone_vouches_for_a_landing(shell):
    commit, tree = noted(shell)
    lands(shell, commit, tree, landed=False)

    said, facts = shell.did("verify", "HEAD"), shell.run("verify", "HEAD", "--json").facts

    assert "not in this home's log; the note alone says so" in said
    assert (facts["commit"], facts["in_log"]) == (commit, False)


def test_verify_says_that_this_homes_log_knows_the_landing(shell):
    commit, tree = noted(shell)
    lands(shell, commit, tree, landed=True)

    said, facts = shell.did("verify", "HEAD"), shell.run("verify", "HEAD", "--json").facts

    assert "in this home's log" in said
    assert "the note alone" not in said
    assert facts["in_log"] is True


@pytest.mark.parametrize("landed", [False, True], ids=["unknown", "in the log"])
def test_verify_says_of_a_commit_without_a_note_whether_the_log_knows_it(shell, landed):
    commit, tree = (asked(shell.repo, "rev-parse", it) for it in ("HEAD", "HEAD^{tree}"))
    lands(shell, commit, tree, landed=landed)

    answer = shell.run("verify", "HEAD")

    assert answer.code == 1
    assert ("this home's log has its landing" in answer.why) is landed
    assert ("it did not come through Lockgate's merge queue" in answer.why) is not landed
