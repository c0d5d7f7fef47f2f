"""Which refs a hub holds for whom, which addresses it may have, what a trial of one says."""

import pytest

from lockgate.core.config.settings import MergeFence, MergeSettings, MergeTarget, lands_by
from lockgate.core.hub import (
    Reach,
    Tried,
    Unfit,
    change_ref,
    handed_over,
    is_of,
    judged,
    newest_change,
    published_ref,
    reach_of,
    refs_of,
    snapshot_ref,
    tasks_in,
    without,
)

URL = "git@hub.example:team/app.git"
FINE = Tried(branches=2)


def test_work_is_handed_over_by_its_commit_and_by_its_generation() -> None:
    assert handed_over("t", 7, "c") == {snapshot_ref("t", "c"): "c", change_ref("t", 7): "c"}


@pytest.mark.parametrize(
    ("generation", "expected"), [(1, None), (2, "two"), (9, "two"), (10, "ten"), (99, "ten")]
)
def test_a_worker_goes_on_from_the_newest_generation_that_is_not_after_its_own(
    generation, expected
) -> None:
    odd = {f"{change_ref('t', 3)}x": "odd", change_ref("other", 1): "other"}
    refs = {change_ref("t", 2): "two", change_ref("t", 10): "ten", **odd}

    assert newest_change(refs, "t", generation) == expected


def test_refs_are_told_by_their_task_and_by_their_commit() -> None:
    mine = (snapshot_ref("a", "1"), change_ref("a", 1), published_ref("a", "1"))
    refs = (*mine, snapshot_ref("ab", "2"), "refs/lockgate/train/x/3", "refs/heads/main")

    assert tasks_in(refs) == ("a", "ab")
    assert refs_of(refs, "a") == mine
    assert without(("refs/lockgate/train/x/3", "refs/lockgate/train/x/4"), ["4"]) == (
        "refs/lockgate/train/x/3",
    )


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("/srv/app.git", Reach.PATH),
        (URL, Reach.NET),
        ("hub:app.git", Reach.NET),
        ("ssh://git@hub.example:2222/app.git", Reach.NET),
        ("https://hub.example/app.git", Reach.NET),
        ("https://me@hub.example/app.git", Reach.NET),
    ],
)
def test_a_hub_is_a_path_or_is_reached_by_ssh_or_https(url, expected) -> None:
    assert reach_of(url) == expected


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "no whole path"),
        ("app.git", "no whole path"),
        ("-oProxyCommand=x", "no address"),
        ("ext::sh -c x", "no address"),
        ("hub:app\n.git", "no address"),
        ("http://hub.example/app.git", "http:// is not taken"),
        ("git://hub.example/app.git", "git:// is not taken"),
        ("file:///srv/app.git", "file:// is not taken"),
        ("https://", "https:// is not taken"),
        ("https://me:secret@hub.example/app.git", "password"),
    ],
)
def test_any_other_address_is_refused_in_words(url, why) -> None:
    found = reach_of(url)

    assert isinstance(found, Unfit)
    assert why in found.why
    assert found.fix
    [finding] = judged(url, FINE, fenced=True)
    assert not finding.ok


@pytest.mark.parametrize(
    ("origin", "url", "same"),
    [
        ("", URL, False),
        (URL, URL, True),
        ("https://hub.example/team/app", URL, True),
        ("https://hub.example/team/other", URL, False),
        ("/srv/app.git/", "/srv/app.git", True),
        ("/srv/app.git", URL, False),
    ],
)
def test_a_clone_is_known_by_where_it_came_from(origin, url, same) -> None:
    assert is_of(origin, url) is same


def test_a_hub_that_will_do_is_said_so() -> None:
    assert [it.ok for it in judged(URL, FINE, fenced=True)] == [True, True]
    [first, _] = judged("/srv/app.git", FINE, fenced=True)
    assert "this machine" in first.why


ATOMIC = "fatal: the receiving end does not support --atomic push"


@pytest.mark.parametrize(
    ("tried", "fenced", "what"),
    [
        (Tried(read="no route to host"), True, "did not answer"),
        (Tried(), True, "nothing can start"),
        (Tried(branches=1, pushed="deny updating a hidden ref"), True, "no landing is safe"),
        (Tried(branches=1, pushed="deny updating a hidden ref"), False, "no landing is safe"),
        (Tried(branches=1, pushed=ATOMIC), True, "no landing is safe"),
        (Tried(branches=1, refused=False), True, "no landing is safe"),
        (Tried(branches=1, removed="deletion prohibited"), True, "were not removed"),
    ],
)
def test_what_a_hub_lacks_is_said_with_what_to_do(tried, fenced, what) -> None:
    [bad] = [it for it in judged(URL, tried, fenced=fenced) if not it.ok]

    assert what in bad.what
    assert bad.why
    assert bad.fix


def test_without_atomic_pushes_a_hub_will_do_where_a_new_leader_waits() -> None:
    found = judged(URL, Tried(branches=1, pushed=ATOMIC), fenced=False)

    assert all(it.ok for it in found)
    assert "waits" in found[-1].what
    assert "weaker" in found[-1].what


def test_to_wait_at_a_hub_that_has_atomic_pushes_is_called_weaker() -> None:
    [_, last] = judged(URL, FINE, fenced=False)

    assert last.ok
    assert 'weaker: set fence = "ref"' in last.why


@pytest.mark.parametrize("target", MergeTarget)
def test_a_project_with_a_hub_lands_there_whatever_else_is_set(target) -> None:
    merge = MergeSettings(target=target)

    assert lands_by(merge, "origin", MergeFence.REF) == ("origin", MergeFence.REF)
    remote = "" if target is MergeTarget.LOCAL else "origin"
    assert lands_by(merge, "origin", None) == (remote, merge.fence)
