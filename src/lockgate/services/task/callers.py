"""Who calls: a session's token makes an agent of its role, no token a human.

A human is known by the user of their process, which the kernel tells, or by what another face
asked them for. What git calls somebody is never believed.
"""

import hashlib
from collections.abc import Callable

from msgspec import Struct

from lockgate.core.lifecycle.decision import Evidence
from lockgate.core.lifecycle.map import unheard
from lockgate.core.model.people import Right, allows
from lockgate.core.model.task import Actor, Role, Session, TaskId
from lockgate.errors import Refused
from lockgate.ports import Store

ACTORS = {Role.WORKER: Actor.WORKER, Role.REVIEWER: Actor.REVIEWER}
ROOT = 0  # the user who may do everything on a machine anyway


class Caller(Struct, frozen=True):
    """`by` is a human's name, `how` by what they are known; both empty for all others.

    Who is `far` comes by the network: no file of this machine is theirs to name.
    """

    actor: Actor
    session: Session | None = None
    by: str = ""
    how: str = ""
    may: Right = Right.ADMIN
    far: bool = False


HUMAN = Caller(Actor.HUMAN)


class Users(Struct, frozen=True):
    """The users of this machine: who owns the home, and what each is called."""

    owner: int
    name: Callable[[int], str]


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()


def identify(
    store: Store, token: str | None, uid: int | None = None, users: Users | None = None
) -> Caller:
    """A token that no session has is refused: it is never a human's."""
    if not token:
        return HUMAN if uid is None or users is None else _known(store, uid, users)
    session = store.session_by_token(hashed(token))
    if session is None:
        raise Refused(
            "the call was not carried out",
            why="the token in LOCKGATE_TOKEN belongs to no session",
            fix="unset LOCKGATE_TOKEN to act as a human",
        )
    return Caller(ACTORS[session.role], session)


def _known(store: Store, uid: int, users: Users) -> Caller:
    """The owner of the home has all rights; who is not listed may look."""
    person = next((it for it in store.people() if it.uid == uid), None)
    name, how = person.name if person else users.name(uid), f"uid {uid}"
    if uid in {users.owner, ROOT}:
        return Caller(Actor.HUMAN, by=name, how=how)
    return Caller(Actor.HUMAN, by=name, how=how, may=person.may if person else Right.LOOK)


def must_be_human(caller: Caller, what: str, may: Right = Right.WORK) -> None:
    """Refused where an agent calls, or somebody who has no right to that."""
    if caller.actor is not Actor.HUMAN:
        raise Refused(what, why=f"a {caller.actor} may not do that", fix="ask a human to do it")
    if not allows(caller.may, may):
        raise Refused(
            what,
            why=f"{caller.by} has the right to {caller.may}, and this needs the right to {may}",
            fix=f"ask an admin of this home: lockgate people add {_person(caller)} --may {may}",
        )


def _person(caller: Caller) -> str:
    """The name without the assistant that they called by."""
    return caller.by.partition(" via ")[0]


def must_be_heard(seen: Evidence, what: str) -> None:
    missing = unheard(seen)
    if missing:
        raise Refused(what, why=missing.why, fix=missing.fix)


def must_own(caller: Caller, id: TaskId) -> None:
    """An agent acts on its own task only."""
    if caller.session and caller.session.task != id:
        raise not_its_own(caller.session)


def not_its_own(session: Session) -> Refused:
    """The same words for every other task: a session cannot ask which ones there are."""
    return Refused(
        "nothing was done",
        why=f"this session belongs to task {session.task} and sees no other",
        fix=f"lockgate task show {session.task}",
    )
