"""What one host has made, another has too: by the hub, and by nothing else."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.hub import GitTrial
from lockgate.adapters.hub.mirror import LOCK
from lockgate.adapters.train.git import LOCK as LANDING
from lockgate.core.hub import Tried
from lockgate.core.model.task import TaskId
from lockgate.core.train.model import Commit
from lockgate.errors import Unavailable
from lockgate.ports import Arrived, Candidate
from lockgate.ports.train import Span
from tests.adapters.hub.hosts import TASK, Fleet
from tests.adapters.workshop import asked, git


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def test_work_taken_on_one_host_is_judged_on_another(fleet, tmp_path) -> None:
    one, two, task = fleet.host("one"), fleet.host("two"), fleet.task()

    made = one.works(task, "new.txt")

    snapshot, newest = f"refs/lockgate/snapshots/{TASK}/{made.commit}", f"changes/{TASK}/1"
    assert fleet.refs() == [f"refs/lockgate/{newest}", snapshot]
    there = two.candidate(task, made.commit)
    assert two.workspaces.change(there).patch == made.patch
    assert two.workspaces.changed_files(there) == ("new.txt",)
    assert "+x" in two.workspaces.diff(two.project, task, made.commit)
    tree = two.workspaces.checkout(there, tmp_path / "checkout")
    assert (tmp_path / "checkout" / "new.txt").read_text() == "x\n"
    assert tree == one.workspaces.tree(one.project, made.commit)


def test_a_worker_of_another_host_goes_on_where_the_last_one_was(fleet) -> None:
    one, two = fleet.host("one"), fleet.host("two")
    one.works(fleet.task(generation=1), "first.txt")

    second = two.works(fleet.task(generation=5), "second.txt")
    moved = fleet.user_pushes("pushed.txt")
    place = one.workspaces.prepare(one.project, fleet.task(generation=9))

    assert second.files == ("first.txt", "second.txt")
    assert (place / "second.txt").exists()
    assert asked(one.workspaces.base(one.project), "rev-parse", "main") == moved
    third = one.works(fleet.task(generation=9), "third.txt")
    assert third.files == ("first.txt", "second.txt", "third.txt")


def test_what_a_worker_pushes_that_was_given_up_is_nobody_s_start(fleet) -> None:
    one, two, three = (fleet.host(it) for it in ("one", "two", "three"))
    one.works(fleet.task(generation=1), "first.txt")
    two.works(fleet.task(generation=5), "second.txt")

    one.works(fleet.task(generation=1), "late.txt")
    place = three.workspaces.prepare(three.project, fleet.task(generation=9))

    assert (place / "second.txt").exists()
    assert not (place / "late.txt").exists()


def test_a_clone_that_another_host_has_left_behind_is_not_heard(fleet) -> None:
    one, two = fleet.host("one"), fleet.host("two")
    one.works(fleet.task(generation=1), "first.txt")
    second = two.works(fleet.task(generation=5), "second.txt")
    place = one.workspaces.place(TASK)
    (place / "late.txt").write_text("x\n")

    with pytest.raises(Unavailable, match="another host has gone on"):
        one.workspaces.take(one.project, fleet.task(generation=5))

    assert fleet.at_hub(f"refs/lockgate/changes/{TASK}/5") == second.commit
    assert place.is_dir()
    one.workspaces.release(one.project, fleet.task(generation=5))
    assert not place.exists()
    two.workspaces.release(two.project, fleet.task(generation=5))
    assert not two.workspaces.place(TASK).exists()


def test_a_host_without_the_clone_hands_nothing_over(fleet) -> None:
    one, task = fleet.host("one"), fleet.task()

    assert one.takes(task).files == ()

    assert fleet.refs() == []


def test_a_hub_that_does_not_answer_is_said_and_nothing_is_handed_over(fleet) -> None:
    one, task = fleet.host("one"), fleet.task()
    place = one.workspaces.prepare(one.project, task)
    (place / "new.txt").write_text("x\n")
    fleet.goes_away()

    with pytest.raises(Unavailable, match=r"from the hub .*hüb\.git") as seen:
        one.workspaces.take(one.project, task)

    assert "lockgate fleet check" in seen.value.fix
    fleet.hub.with_name("gone").rename(fleet.hub)
    assert one.takes(task).files == ("new.txt",)
    assert len(fleet.refs()) == 2


def test_a_commit_that_the_hub_has_not_is_said(fleet) -> None:
    two, task = fleet.host("two"), fleet.task()

    with pytest.raises(Unavailable, match=f"commit {'1' * 40} was not taken"):
        two.workspaces.change(two.candidate(task, "1" * 40))
    with pytest.raises(Unavailable, match=f"it has no commit {'1' * 40}"):
        two.exchange.follow(two.project, "1" * 40)


def test_only_what_is_new_is_sent_though_the_hub_is_ahead(fleet) -> None:
    for number in range(20):
        fleet.user_pushes(f"{number}.txt")
    one, task = fleet.host("one"), fleet.task()
    place = one.workspaces.prepare(one.project, task)
    (place / "new.txt").write_text("x\n")
    fleet.user_pushes("ahead.txt")
    before = fleet.objects()

    one.takes(task)

    assert fleet.objects() - before <= 3  # a commit, its tree, and no file: there is one like it


# The mirror, by which a host reads a project.


def test_the_mirror_has_the_branches_of_the_hub_and_no_others(fleet) -> None:
    one = fleet.host("one")
    git(fleet.hub, "branch", "old", "main")
    one.exchange.follow(one.project)
    head = one.repository.base_branch(one.project)
    git(fleet.hub, "branch", "-D", "old")
    git(fleet.hub, "branch", "old/new", "main")

    moved = fleet.user_pushes("more.txt")
    one.exchange.follow(one.project)

    assert head is not None
    assert head.name == "main"
    assert one.repository.commit_of(one.project, "main") == moved
    assert asked(one.mirror, "for-each-ref", "--format=%(refname:short)", "refs/heads") == (
        "main\nold/new"
    )
    assert one.repository.origin(one.project) == fleet.url


def test_the_usual_branch_is_the_hub_s_own(fleet) -> None:
    git(fleet.hub, "branch", "trunk", "main")
    git(fleet.hub, "symbolic-ref", "HEAD", "refs/heads/trunk")
    one = fleet.host("one")

    head = one.repository.base_branch(one.project)

    assert head is not None
    assert head.name == "trunk"
    assert one.repository.default_branches(one.project) == ("trunk",)


def test_rules_of_a_commit_that_this_host_does_not_have_come_from_the_hub(fleet) -> None:
    one = fleet.host("one")
    one.exchange.follow(one.project)
    commit = fleet.user_pushes("rules.toml")

    assert one.repository.file_at(one.project, commit, "rules.toml") == "x\n"
    assert one.repository.file_at(one.project, commit, "others.toml") is None
    with pytest.raises(Unavailable):
        one.repository.file_at(one.project, "1" * 40, "rules.toml")


def test_a_base_that_was_rewritten_at_the_hub_is_still_found(fleet) -> None:
    old = fleet.user_pushes("secret.txt")
    task = fleet.task()
    git(fleet.root, "reset", "--quiet", "--hard", "HEAD~1")
    git(fleet.root, "push", "--quiet", "--force", "origin", "main")

    place = fleet.host("one").workspaces.prepare(fleet.host("one").project, task)

    assert task.pinned is not None
    assert task.pinned.base_commit == old
    assert (place / "secret.txt").exists()


def test_a_hub_without_a_branch_is_said(fleet, tmp_path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", str(tmp_path / "empty.git"))
    one = fleet.host("one")
    empty = replace(one.project, url=str(tmp_path / "empty.git"))

    with pytest.raises(Unavailable, match="it has no branch"):
        one.exchange.follow(empty)
    with pytest.raises(Unavailable, match="its repositories are not made yet"):
        one.exchange.send(empty, {"refs/lockgate/x": "1" * 40})


def test_the_train_and_the_mirror_take_one_lock() -> None:
    assert LOCK == LANDING


def test_a_project_without_a_hub_asks_nobody(fleet) -> None:
    exchange, project = fleet.host("one").exchange, replace(fleet.host("one").project, url="")

    exchange.follow(project)
    exchange.send(project, {"refs/lockgate/x": "1" * 40})
    exchange.bring(project, ("1" * 40,))
    exchange.bring_refs(project, "refs/lockgate/published/x")
    exchange.bring_notes(project, "refs/notes/lockgate")

    assert exchange.refs(project, "*") == {}
    assert exchange.send_notes(project, "refs/notes/lockgate")
    assert exchange.publish(project, "b", "1" * 40, None, "m") is None
    assert not fleet.host("one").home.exists()


# The train: candidates of one host, tested and landed by others.


def test_a_candidate_built_on_one_host_is_tested_on_another_and_landed_by_a_third(fleet) -> None:
    one, two, three = (fleet.host(it) for it in ("one", "two", "three"))
    task, other = fleet.task(), fleet.task("other-1234")
    first = (task, one.works(task, "new.txt").commit)
    second = (other, one.works(other, "other.txt").commit)

    built = two.builds(first, second)
    name = f"train-{'0' * 12}-{built.tree[:12]}"
    it = Candidate(project=three.project, commit=built.commit, rules=task.pinned, name=name)
    files = three.workspaces.change(it).files
    was = three.yard.tip(three.target).commit
    landed = one.yard.land(one.target, one.yard.tip(one.target).commit, built.commit)

    assert files == ("new.txt", "other.txt")
    assert landed == Arrived()
    assert three.yard.has(three.target, built.commit)
    assert was != fleet.at_hub() == built.commit
    assert two.repository.commit_of(two.project, "main") == was
    assert two.yard.tip(two.target) == built
    assert two.repository.commit_of(two.project, "main") == built.commit


def test_candidates_that_nobody_needs_go_from_the_hub(fleet) -> None:
    one, task = fleet.host("one"), fleet.task()
    commit = one.works(task, "new.txt").commit
    first = one.builds((task, commit))
    fleet.user_pushes("more.txt")
    second = one.builds((task, commit))

    one.yard.prune(one.target, [second.commit])

    [kept] = fleet.refs("refs/lockgate/train")
    assert kept.endswith(second.commit)
    assert first.commit != second.commit


def test_changes_overlap_on_a_host_that_has_neither_and_not_once_they_are_gone(fleet) -> None:
    one, two, base = fleet.host("one"), fleet.host("two"), Commit(fleet.at_hub())
    a = one.works(fleet.task("a-1"), "same.txt", "a\n").commit
    b = one.works(fleet.task("b-1"), "same.txt", "b\n").commit
    two.yard.tip(two.target)
    spans = Span(base, Commit(a)), Span(base, Commit(b))

    assert two.yard.overlap(two.project, *spans) == ("same.txt",)
    gone = Span(base, Commit("1" * 40))
    assert two.yard.overlap(two.project, spans[0], gone) == ()


def test_evidence_of_two_hosts_is_kept_together(fleet) -> None:
    one, two = fleet.host("one"), fleet.host("two")
    first, second = Commit(fleet.at_hub()), Commit(fleet.user_pushes("more.txt"))
    for host in (one, two):
        host.yard.tip(host.target)

    one.yard.note(one.project, first, "by one")
    two.yard.note(two.project, second, "by two")

    assert one.yard.note_of(one.project, second) == (second, "by two")
    assert two.yard.note_of(two.project, first) == (first, "by one")
    fleet.goes_away()
    assert one.yard.note_of(one.project, first) == (first, "by one")


def test_notes_that_the_hub_refuses_are_said_and_lost_ones_written_again(fleet) -> None:
    one, commit = fleet.host("one"), Commit(fleet.at_hub())
    one.yard.tip(one.target)
    hook = fleet.hub / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)

    with pytest.raises(Unavailable, match="was not pushed"):
        one.yard.note(one.project, commit, "by one")
    hook.unlink()

    assert one.yard.rewrite_notes(one.project, {commit: "again"}) == 1
    two = fleet.host("two")
    two.yard.tip(two.target)
    assert two.yard.note_of(two.project, commit) == (commit, "again")


# A task's branch at the hub, for people.


def test_a_branch_is_published_at_the_hub_by_whichever_host_is_at_it(fleet) -> None:
    one, two = fleet.host("one"), fleet.host("two")
    task = fleet.task(generation=1)
    first = one.works(task, "first.txt").commit
    assert one.workspaces.publish(one.project, task, first) is None
    assert fleet.at_hub(f"refs/heads/{TASK}") == first

    again = fleet.task(generation=5)
    place = two.workspaces.prepare(two.project, again)
    git(place, "reset", "--quiet", "--hard", "origin/main")
    second = two.works(again, "second.txt").commit

    assert two.workspaces.publish(two.project, again, second) is None
    assert fleet.at_hub(f"refs/heads/{TASK}") == second


def test_a_branch_that_a_person_has_moved_is_left_where_it_is(fleet) -> None:
    one, task = fleet.host("one"), fleet.task()
    commit = one.works(task, "new.txt").commit
    theirs = fleet.user_commits("theirs.txt")
    git(fleet.root, "push", "--quiet", "origin", f"HEAD:refs/heads/{TASK}")

    why = one.workspaces.publish(one.project, task, commit)

    assert why is not None
    assert "has work that is not part of the change" in why
    assert fleet.at_hub(f"refs/heads/{TASK}") == theirs
    late = one.exchange.publish(one.project, TASK, commit, None, "refs/lockgate/published/x")
    assert late is not None
    assert fleet.at_hub(f"refs/heads/{TASK}") == theirs


def test_a_person_s_branch_at_the_hub_is_adopted(fleet) -> None:
    one, two = fleet.host("one"), fleet.host("two")
    task = fleet.task(id=TaskId("theirs-1"))
    assert one.workspaces.adopt(one.project, task) is None
    theirs = fleet.user_commits("theirs.txt")
    git(fleet.root, "push", "--quiet", "origin", "HEAD:refs/heads/theirs-1")

    adopted = one.workspaces.adopt(one.project, task)

    assert adopted is not None
    assert adopted.commit == theirs
    assert two.workspaces.change(two.candidate(task, theirs)).files == ("theirs.txt",)


def test_a_hub_is_reached_by_ssh_as_the_user_s_git_does(tmp_path, monkeypatch) -> None:
    """The program stands for ssh: it runs on this machine what was to run on the other."""
    ssh, settings = tmp_path / "ssh", tmp_path / "gitconfig"
    ssh.write_text('#!/bin/sh\necho "$*" >>"$0.log"\nfor last; do :; done\nexec sh -c "$last"\n')
    ssh.chmod(0o755)
    settings.write_text(f"[core]\n\tsshCommand = {ssh}\n[ssh]\n\tvariant = simple\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    fleet = Fleet(tmp_path, f"ssh://git@hub.example{tmp_path}/hub.git")
    fleet.hub.rename(tmp_path / "hub.git")
    fleet.hub = tmp_path / "hub.git"
    one, two, task = fleet.host("one"), fleet.host("two"), fleet.task()

    made = one.works(task, "new.txt")
    built = two.builds((task, made.commit))
    tip = two.yard.tip(two.target).commit

    assert two.yard.land(two.target, tip, built.commit) == Arrived()
    assert GitTrial().tried(fleet.url) == Tried(branches=1)
    assert fleet.at_hub() == built.commit
    assert "git@hub.example git-receive-pack" in Path(f"{ssh}.log").read_text()
