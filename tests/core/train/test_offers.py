"""The planner where changes land by pull requests: each alone on the tip."""

import pytest
from msgspec.structs import replace

from lockgate.core.forge.model import Intent, Pull
from lockgate.core.model.task import ProjectId, Status, TaskId
from lockgate.core.train.entries import Waits, pull_entries
from lockgate.core.train.model import (
    Broken,
    Build,
    Built,
    CancelTest,
    Candidate,
    Change,
    CheckTip,
    Commit,
    Conflict,
    Drop,
    Entry,
    Green,
    Hold,
    HoldKind,
    Land,
    Offer,
    Place,
    Queue,
    Red,
    SetAside,
    Standing,
    StartTest,
    Tree,
)
from lockgate.core.train.offers import next_steps, offer_places, plan_offers, standings
from tests.given import a_task

TIP = Built(Commit("tip"), Tree("main"))
A, B = (Change(TaskId(it), Commit(it)) for it in "ab")
MADE = Built(Commit("tip+a"), Tree("A"))
CLASH = Conflict(A.task, files=("a.py",))
HEAD = Commit("head")


def an_entry(change: Change = A, **fields: object) -> Entry:
    return replace(Entry(change=change, since=1.0), **fields)


def a_queue(*entries: Entry, **fields: object) -> Queue:
    return replace(Queue(tip=TIP, entries=entries or (an_entry(),)), **fields)


def built(outcome: Built | Conflict = MADE, change: Change = A) -> tuple[Candidate, ...]:
    return (Candidate(TIP.commit, (change,), outcome),)


GREEN = {Tree("A"): Green()}


@pytest.mark.parametrize(
    ("queue", "steps", "place"),
    [
        (a_queue(), (Build(TIP.commit, (A,)),), Place(A.task, Standing.QUEUED)),
        (
            a_queue(candidates=built()),
            (StartTest(MADE, (A.task,)),),
            Place(A.task, Standing.NEXT),
        ),
        (
            a_queue(candidates=built(), running=frozenset({Tree("A"), Tree("old")})),
            (CancelTest(Tree("old")),),
            Place(A.task, Standing.TESTING),
        ),
        (
            a_queue(candidates=built(), results=GREEN),
            (Offer(A.task, MADE, TIP.commit),),
            Place(A.task, Standing.TESTED),
        ),
        (
            a_queue(an_entry(offered=HEAD), candidates=built(), results=GREEN),
            (Land(TIP.commit, MADE.commit, MADE.tree, (A.task,)),),
            Place(A.task, Standing.TESTED),
        ),
        (
            a_queue(an_entry(offered=HEAD, behind=True), candidates=built(), results=GREEN),
            (Offer(A.task, MADE, TIP.commit),),
            Place(A.task, Standing.TESTED),
        ),
        (
            a_queue(an_entry(offered=HEAD, queued=True)),
            (Land(TIP.commit, HEAD, TIP.tree, (A.task,)),),
            Place(A.task, Standing.QUEUED),
        ),
        (
            a_queue(candidates=built(CLASH)),
            (Drop(A.task, CLASH),),
            Place(A.task, Standing.CONFLICT, "a.py"),
        ),
        (
            a_queue(candidates=built(), results={Tree("A"): Red("x")}),
            (CheckTip(TIP),),
            Place(A.task, Standing.FAILING, "x"),
        ),
        (
            a_queue(candidates=built(), results={Tree("A"): Red("x"), TIP.tree: Green()}),
            (Drop(A.task, Red("x")),),
            Place(A.task, Standing.FAILING, "x"),
        ),
        (
            a_queue(candidates=built(), results={Tree("A"): Broken("x"), TIP.tree: Green()}),
            (SetAside(A.task, "x"),),
            Place(A.task, Standing.FAILING, "x"),
        ),
        (
            a_queue(candidates=built(), results={Tree("A"): Red("x"), TIP.tree: Red("y")}),
            (Hold("the target itself is red: y", HoldKind.RED_TIP),),
            Place(A.task, Standing.FAILING, "x"),
        ),
        (
            a_queue(candidates=built(), results={Tree("A"): Red("x"), TIP.tree: Broken("y")}),
            (Hold("the target itself could not be judged: y", HoldKind.HELD),),
            Place(A.task, Standing.FAILING, "x"),
        ),
        (
            a_queue(candidates=built(), results={TIP.tree: Green()}),
            (StartTest(MADE, (A.task,)),),
            Place(A.task, Standing.NEXT),
        ),
        (
            a_queue(an_entry(held="CI: build")),
            (),
            Place(A.task, Standing.HELD, "CI: build"),
        ),
        (
            a_queue(an_entry(depends_on=(B.task,))),
            (),
            Place(A.task, Standing.WAITING, "for b"),
        ),
    ],
)
def test_the_next_steps_of_a_change(queue, steps, place):
    assert plan_offers(queue) == steps
    assert offer_places(queue) == (place,)


def test_two_that_are_ready_land_one_after_the_other_and_new_ones_are_offered_meanwhile():
    other = Built(Commit("tip+b"), Tree("B"))
    c = Change(TaskId("c"), Commit("c"))
    third = Built(Commit("tip+c"), Tree("C"))
    queue = a_queue(
        an_entry(offered=HEAD),
        an_entry(B, offered=HEAD, since=2.0),
        an_entry(c, since=3.0),
        candidates=(*built(), *built(other, B), *built(third, c)),
        results={Tree(it): Green() for it in "ABC"},
    )

    assert plan_offers(queue) == (
        Land(TIP.commit, MADE.commit, MADE.tree, (A.task,)),
        Offer(c.task, third, TIP.commit),
    )


@pytest.mark.parametrize(
    ("queued", "steps"), [(False, ()), (True, (Land(TIP.commit, HEAD, TIP.tree, (A.task,)),))]
)
def test_while_the_forge_merges_one_no_other_lands(queued, steps):
    asked = an_entry(B, held="the forge was asked to merge it", offered=HEAD, landing=True)
    ready = an_entry(offered=HEAD, queued=queued)
    queue = a_queue(replace(asked, queued=queued), ready, candidates=built(), results=GREEN)

    assert plan_offers(queue) == steps


def test_no_more_tests_run_than_the_window_has_places():
    other = Built(Commit("tip+b"), Tree("B"))
    queue = a_queue(an_entry(), an_entry(B), candidates=(*built(), *built(other, B)), window=1)

    assert plan_offers(queue) == (StartTest(MADE, (A.task,)),)


PULL = Pull(
    task=TaskId("t"),
    project=ProjectId("p1"),
    number=12,
    change="c1",
    pushed="head",
    base="tip",
)


@pytest.mark.parametrize(
    ("pull", "fields"),
    [
        (None, {}),
        (PULL, {"held": "its pull request was not looked at yet", "offered": HEAD}),
        (replace(PULL, waits="CI: build"), {"held": "CI: build", "offered": HEAD}),
        (replace(PULL, ready=True), {"offered": HEAD}),
        (replace(PULL, ready=True, strict=True), {"offered": HEAD}),
        (
            replace(PULL, ready=True, strict=True, base="old", queue=True),
            {"offered": HEAD, "behind": True, "queued": True},
        ),
        (replace(PULL, change="c0"), {}),
        (
            replace(PULL, change="c0", intent=Intent.OFFER),
            {"held": "it is being offered as a pull request"},
        ),
        (
            replace(PULL, ready=True, intent=Intent.MERGE),
            {"held": "the forge was asked to merge it", "offered": HEAD, "landing": True},
        ),
        (
            replace(PULL, ready=True, intent=Intent.REOPEN),
            {"held": "its pull request is being reopened", "offered": HEAD},
        ),
        (replace(PULL, ready=True, intent=Intent.CLOSE), {"offered": HEAD}),
    ],
)
def test_what_an_offered_change_waits_for_is_its_hold(pull, fields):
    task = a_task(Status.REVIEWING, candidate="c1")

    [entry] = pull_entries([Waits(task, pull=pull)], TIP.commit)

    plain = Entry(change=Change(task.id, Commit("c1")), since=task.updated)
    assert entry == replace(plain, **fields)


def test_a_persons_own_hold_stays():
    task = a_task(Status.REVIEWING, candidate="c1", held="mine")

    [entry] = pull_entries([Waits(task, pull=replace(PULL, ready=True))], TIP.commit)

    assert (entry.held, entry.offered) == ("mine", None)


def test_a_target_of_pull_requests_has_its_own_planner():
    queue = a_queue(candidates=built(), results=GREEN)

    assert next_steps(queue) == (Land(TIP.commit, MADE.commit, MADE.tree, (A.task,)),)
    assert next_steps(replace(queue, pulls=True)) == (Offer(A.task, MADE, TIP.commit),)
    assert standings(queue) == standings(replace(queue, pulls=True))
