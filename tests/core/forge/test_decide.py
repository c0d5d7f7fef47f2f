"""Every row of the table of pull requests: what was observed, and what follows from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.config.settings import AutoMerge, CommentMode, ForgeSettings, MergeMode
from lockgate.core.forge.decide import (
    Case,
    CheckMerged,
    FetchFailures,
    NeedPeople,
    Ready,
    Reopen,
    Rerun,
    SendBack,
    TakeCommits,
    TryMerge,
    Wait,
    commands,
    decide,
    merges_itself,
    speakers,
)
from lockgate.core.forge.model import (
    HOLD_LABEL,
    Access,
    CheckState,
    Intent,
    Person,
    Relation,
    ReviewState,
    is_early,
    mark_of,
)
from lockgate.core.model.task import Status
from tests.core.forge.worlds import (
    ANN,
    AT,
    BUILD,
    CASE,
    HEAD,
    PULL,
    STRANGER,
    YES,
    check,
    comment,
    pull,
    remark,
    review,
    rules,
    seen,
)
from tests.given import a_task

C, R = CheckState, ReviewState
LATE = ForgeSettings(ci_wait=60)
WAIT = ForgeSettings(comments=CommentMode.WAIT)
FAILED = check(C.FAILED)
ASKS = review(R.CHANGES_REQUESTED)

ROWS = {
    "approved, green, not a draft, mergeable: the train lands it": (CASE, Ready()),
    "manual mode: a person merges": (
        replace(CASE, mode=MergeMode.MANUAL),
        NeedPeople("it is yours to merge: there, or by `lockgate approve`"),
    ),
    "manual mode and approved here": (
        replace(CASE, mode=MergeMode.MANUAL, approved=True),
        Ready(),
    ),
    "a token that cannot see checks lands nothing": (
        replace(CASE, me=replace(CASE.me, sees_checks=False)),
        NeedPeople("it is yours to merge: this token cannot see the checks of other apps"),
    ),
    "the forge refused this head for good": (
        pull(refused=HEAD, refusal="a rule"),
        NeedPeople("the forge did not merge it: a rule"),
    ),
    "the forge refused it, and a human approved it again": (
        replace(pull(refused=HEAD, refusal="a rule"), approved=True),
        Ready(),
    ),
    "merged: the fetched target decides": (
        seen(merged=True, open=False, merge_commit="m"),
        CheckMerged("m"),
    ),
    "merged into another branch": (
        seen(merged=True, open=False, base="old"),
        NeedPeople("it was merged into old, not into main"),
    ),
    "closed": (
        seen(open=False, acted_by="ann"),
        NeedPeople(
            "it was closed by @ann: reopen it there or by `lockgate approve`, send it back by "
            "`lockgate queue drop`, or cancel the task"
        ),
    ),
    "closed and approved again": (
        replace(seen(open=False), approved=True),
        Reopen(),
    ),
    "an old answer, with an old head": (
        replace(seen(head="b" * 40), relation=Relation.BEHIND),
        Wait("the forge does not show the pushed commit yet"),
    ),
    "a head that nobody could compare": (
        replace(seen(head="b" * 40), relation=Relation.UNKNOWN),
        Wait("the forge does not show the pushed commit yet"),
    ),
    "another head than the branch has": (
        seen(head="b" * 40),
        Wait("the forge does not show the pushed commit yet"),
    ),
    "a person's commits on our head": (
        replace(seen(head="b" * 40), relation=Relation.AHEAD),
        TakeCommits("b" * 40),
    ),
    "the branch was deleted": (
        replace(CASE, relation=Relation.GONE),
        NeedPeople("its branch was deleted: `lockgate pr restore` pushes it again"),
    ),
    "the head was rewritten": (
        replace(seen(head="b" * 40), relation=Relation.REWRITTEN),
        NeedPeople(
            "somebody rewrote its branch: `lockgate pr adopt` takes their commits, "
            "`lockgate pr restore` puts ours back"
        ),
    ),
    "another base": (
        seen(base="old", acted_by="ann"),
        NeedPeople("it was given the base old by @ann; it is for main"),
    ),
    "the label that holds": (
        seen(labels=(HOLD_LABEL,)),
        NeedPeople(f"it has the label {HOLD_LABEL}"),
    ),
    "a draft": (seen(draft=True, acted_by="ann"), NeedPeople("it was made a draft by @ann")),
    "/lockgate hold": (
        seen(remarks=(remark("/lockgate hold\nplease"),)),
        NeedPeople("@ann said /lockgate hold; /lockgate retry lifts it"),
    ),
    "/lockgate retry after a hold": (
        seen(remarks=(remark("/lockgate hold"), remark("/lockgate retry", id=5))),
        Ready(),
    ),
    "/lockgate fix": (
        seen(remarks=(remark("/lockgate fix\nthe name"),)),
        SendBack((), (), (remark("/lockgate fix\nthe name"),)),
    ),
    "/lockgate of a stranger": (seen(remarks=(remark("/lockgate hold", STRANGER),)), Ready()),
    "a plain remark": (seen(remarks=(remark("nice /lockgate hold"),)), Ready()),
    "a remark with one word": (seen(remarks=(remark("/lockgate"),)), Ready()),
    "changes requested": (
        seen(reviews=(ASKS,), comments=(comment(),)),
        SendBack((ASKS,), (comment(),), ()),
    ),
    "changes requested without words": (
        seen(reviews=(replace(ASKS, body=""),)),
        SendBack((replace(ASKS, body=""),), (), ()),
    ),
    "changes requested, and people still write": (
        seen(reviews=(replace(ASKS, at=AT - 10),)),
        Wait("people are reviewing it"),
    ),
    "changes requested by a stranger": (
        seen(reviews=(YES, review(R.CHANGES_REQUESTED, STRANGER))),
        Ready(),
    ),
    "changes requested by a bot that is named": (
        seen(reviews=(YES, review(R.CHANGES_REQUESTED, Person("helper[bot]", bot=True)))),
        SendBack((review(R.CHANGES_REQUESTED, Person("helper[bot]", bot=True)),), (), ()),
    ),
    "changes requested by any other bot": (
        seen(reviews=(YES, review(R.CHANGES_REQUESTED, Person("ann", bot=True)))),
        Ready(),
    ),
    "delivered before, not approved since": (
        replace(
            seen(reviews=(ASKS,)),
            pull=replace(CASE.pull, delivered=(mark_of(ASKS.id, ASKS.at),)),
        ),
        NeedPeople("@ann asked for changes and has not approved since"),
    ),
    "delivered before, approved since": (
        replace(
            seen(reviews=(ASKS, replace(YES, id=9, at=AT - 300))),
            pull=replace(CASE.pull, delivered=(mark_of(ASKS.id, ASKS.at),)),
        ),
        Ready(),
    ),
    "too many rounds": (
        replace(seen(reviews=(ASKS,)), pull=replace(CASE.pull, rounds=8)),
        NeedPeople("its reviews sent it back 8 times: a human decides"),
    ),
    "an inline comment": (
        seen(reviews=(YES, review(R.COMMENTED, body="")), comments=(comment(),)),
        SendBack((), (comment(),), ()),
    ),
    "an inline comment of a stranger": (seen(comments=(comment(STRANGER),)), Ready()),
    "an inline comment that was delivered": (
        replace(
            seen(comments=(comment(),)),
            pull=replace(CASE.pull, delivered=(mark_of(3, AT - 500),)),
        ),
        Ready(),
    ),
    "an inline comment that was edited since": (
        replace(
            seen(comments=(comment(updated=AT - 400),)),
            pull=replace(CASE.pull, delivered=(mark_of(3, AT - 500),)),
        ),
        SendBack((), (comment(updated=AT - 400),), ()),
    ),
    "comments wait for the next send-back": (
        replace(seen(comments=(comment(),)), settings=WAIT),
        Ready(),
    ),
    "comments go with a request for changes": (
        replace(seen(reviews=(ASKS,), comments=(comment(),)), settings=WAIT),
        SendBack((ASKS,), (comment(),), ()),
    ),
    "a required check is missing": (seen(checks=()), Wait("CI: build")),
    "a required check is not completed": (seen(checks=(check(C.PENDING),)), Wait("CI: build")),
    "a required check is late": (
        replace(seen(checks=()), settings=LATE),
        NeedPeople("CI has given no result for 2 minutes: build"),
    ),
    "the pushed head was never seen, so nothing is late": (
        replace(seen(checks=()), settings=LATE, pull=replace(CASE.pull, since=0.0)),
        Wait("CI: build"),
    ),
    "no required checks: those of the target are expected": (
        rules(seen(checks=()), checks=()),
        Wait("CI: build"),
    ),
    "no checks at all": (rules(seen(checks=(), base_checks=()), checks=()), Ready()),
    "CI is red, the target passes it": (seen(checks=(FAILED,)), FetchFailures((FAILED,))),
    "CI is red on the target as well": (
        seen(checks=(FAILED,), base_checks=(FAILED,)),
        Wait("CI of main is red: build"),
    ),
    "a check that nobody expects is red": (
        seen(checks=(BUILD, check(C.FAILED, "lint"))),
        Ready(),
    ),
    "CI judged nothing": (seen(checks=(check(C.UNJUDGED),)), Rerun((check(C.UNJUDGED),))),
    "CI judged nothing twice": (
        replace(seen(checks=(check(C.UNJUDGED),)), pull=replace(CASE.pull, reran=HEAD)),
        NeedPeople("CI did not judge it, also when it ran again: build"),
    ),
    "it conflicts": (seen(mergeable=False), TryMerge()),
    "nobody knows whether it merges": (
        seen(mergeable=None),
        Wait("the forge has not said yet whether it merges"),
    ),
    "in the forge's queue": (seen(place=3), Wait("place 3 in the merge queue of the forge")),
    "out of the forge's queue": (
        seen(dequeued=True),
        NeedPeople("the merge queue of the forge took it out; `lockgate approve` puts it in again"),
    ),
    "out of the forge's queue, and let in again": (
        replace(seen(dequeued=True), approved=True),
        Ready(),
    ),
    "no approval": (seen(reviews=()), NeedPeople("it waits for an approval")),
    "two approvals missing": (
        rules(seen(reviews=()), approvals=2),
        NeedPeople("it waits for 2 approvals"),
    ),
    "a stranger's approval": (
        seen(reviews=(review(R.APPROVED, STRANGER),)),
        NeedPeople("it waits for an approval"),
    ),
    "a dismissed approval": (
        seen(reviews=(YES, review(R.DISMISSED))),
        NeedPeople("it waits for an approval"),
    ),
    "no approval is asked for": (rules(seen(reviews=()), approvals=0), Ready()),
    "blocked, nobody says why": (
        seen(blocked=True),
        NeedPeople("the forge blocks it: it does not say why"),
    ),
    "blocked by threads": (
        rules(seen(blocked=True, threads_open=2), threads=True),
        NeedPeople("the forge blocks it: threads are not resolved"),
    ),
    "blocked by signatures": (
        rules(seen(blocked=True), signed=True),
        NeedPeople(
            "the forge blocks it: the target takes signed commits only: set [forge] sign = true"
        ),
    ),
    "blocked by who pushed last": (
        rules(seen(blocked=True), last_push=True),
        NeedPeople("the forge blocks it: somebody other than the last pusher must approve it"),
    ),
}


@pytest.mark.parametrize(("case", "act"), ROWS.values(), ids=ROWS.keys())
def test_what_follows_from_what_was_observed(case, act):
    assert decide(case) == act


def test_each_comment_is_marked_as_it_was_handed_on():
    found = decide(seen(reviews=(ASKS,), comments=(comment(),), remarks=(remark("/lockgate fix"),)))

    assert isinstance(found, SendBack)
    assert found.marks == tuple(mark_of(id, AT - 500) for id in (2, 3, 4))


def test_the_people_are_asked_about_and_bots_are_not():
    bot = comment(Person("helper[bot]", bot=True))

    assert speakers(seen(comments=(bot,), remarks=(remark("hi", STRANGER),)).seen) == {"ann", "eve"}


def test_only_those_who_may_write_are_trusted():
    assert [it for it in Access if it.trusted] == [Access.ADMIN, Access.WRITE]


def test_the_forge_merges_by_itself_only_where_that_is_asked_for():
    assert not merges_itself(ForgeSettings())
    assert merges_itself(ForgeSettings(auto_merge=AutoMerge.FORGE))


def test_words_for_lockgate_are_in_their_order():
    said = seen(remarks=(remark("/lockgate fix a"), remark("/lockgate hold", ANN, id=5)))

    assert [word for word, _ in commands(said)] == ["fix", "hold"]


@given(
    head=st.sampled_from([HEAD, "b" * 40]),
    relation=st.sampled_from(Relation),
    mergeable=st.sampled_from([True, False, None]),
    state=st.sampled_from(CheckState),
    base=st.sampled_from(CheckState),
    reviews=st.lists(
        st.builds(
            review,
            st.sampled_from(ReviewState),
            st.sampled_from([ANN, STRANGER, Person("ann", bot=True)]),
            id=st.integers(1, 5),
        ),
        max_size=4,
    ),
    mode=st.sampled_from(MergeMode),
)
def test_nothing_red_unapproved_or_unknown_is_ever_ready(  # noqa: PLR0917 - a world's facts
    head, relation, mergeable, state, base, reviews, mode
):
    case: Case = replace(
        seen(
            head=head,
            mergeable=mergeable,
            checks=(check(state),),
            base_checks=(check(base),),
            reviews=tuple(reviews),
        ),
        relation=relation,
        mode=mode,
    )

    if decide(case) == Ready():
        assert (head, relation, mergeable, state) == (HEAD, Relation.SAME, True, C.PASSED)
        assert mode is MergeMode.AUTO
        last = [it.state for it in reviews if it.by.login == "ann" and it.state is not R.COMMENTED]
        assert last[-1] is R.APPROVED


def test_a_case_of_a_pull_that_was_not_pushed_waits():
    assert decide(pull(pushed="")) == Wait("the forge does not show the pushed commit yet")


@pytest.mark.parametrize(
    ("pull", "task", "early"),
    [
        ({"change": ""}, {"candidate": "c1"}, True),
        ({"change": ""}, {"candidate": ""}, False),
        ({"change": "c1"}, {"candidate": "c1"}, False),
        ({"change": "", "early": "c1"}, {"candidate": "c1"}, False),
        ({"change": ""}, {"candidate": "c1", "held": "mine"}, False),
        ({"change": "", "intent": Intent.OFFER}, {"candidate": "c1"}, False),
    ],
)
def test_a_change_is_shown_as_a_draft_once_and_only_where_nothing_else_is_meant(pull, task, early):
    assert is_early(replace(PULL, **pull), a_task(Status.REVIEWING, **task)) is early
