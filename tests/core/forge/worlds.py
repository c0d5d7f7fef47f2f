"""Pull requests as tests begin with them: open, pushed, green and approved."""

from msgspec.structs import replace

from lockgate.core.config.settings import ForgeSettings, MergeMode
from lockgate.core.forge.decide import Case
from lockgate.core.forge.model import (
    Check,
    CheckState,
    Comment,
    Identity,
    Person,
    Pull,
    Remark,
    Review,
    ReviewState,
    Rules,
    Seen,
)
from lockgate.core.model.task import ProjectId, TaskId

AT = 1_800_000_000.0
HEAD = "a" * 40
BUILD = Check("build", CheckState.PASSED, 7)
ANN, STRANGER = Person("ann"), Person("eve")
YES = Review(id=1, by=ANN, state=ReviewState.APPROVED, at=AT - 1000)
PULL = Pull(
    task=TaskId("t1"),
    project=ProjectId("p1"),
    branch="lockgate/t1",
    number=12,
    change="c" * 40,
    pushed=HEAD,
    since=AT - 100,
)
SEEN = Seen(
    number=12,
    head=HEAD,
    base="main",
    at=AT,
    mergeable=True,
    checks=(BUILD,),
    base_checks=(BUILD,),
    reviews=(YES,),
)
CASE = Case(
    pull=PULL,
    seen=SEEN,
    rules=Rules(checks=("build",), approvals=1, pull_request=True),
    me=Identity(login="lockgate[bot]", kind="app"),
    target="main",
    settings=ForgeSettings(bots=("helper[bot]",)),
    mode=MergeMode.AUTO,
    trusted=frozenset({"ann", "bob"}),
)


def seen(**fields: object) -> Case:
    return replace(CASE, seen=replace(SEEN, **fields))


def pull(**fields: object) -> Case:
    return replace(CASE, pull=replace(PULL, **fields))


def rules(case: Case = CASE, **fields: object) -> Case:
    return replace(case, rules=replace(CASE.rules, **fields))


def check(state: CheckState, name: str = "build") -> Check:
    return Check(name, state, 7)


def review(state: ReviewState, by: Person = ANN, **fields: object) -> Review:
    return replace(Review(id=2, by=by, state=state, body="no", at=AT - 500), **fields)


def comment(by: Person = ANN, **fields: object) -> Comment:
    one = Comment(id=3, by=by, body="rename it", updated=AT - 500, path="a.py", line=4)
    return replace(one, **fields)


def remark(body: str, by: Person = ANN, **fields: object) -> Remark:
    return replace(Remark(id=4, by=by, body=body, updated=AT - 500), **fields)
