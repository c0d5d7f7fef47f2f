"""Who calls: a session's token makes an agent of its role, no token a human."""

import hashlib

from msgspec import Struct

from lockgate.core.lifecycle.decision import Evidence
from lockgate.core.lifecycle.map import unheard
from lockgate.core.model.task import Actor, Role, Session, TaskId
from lockgate.errors import Refused
from lockgate.ports import Store

ACTORS = {Role.WORKER: Actor.WORKER, Role.REVIEWER: Actor.REVIEWER}


class Caller(Struct, frozen=True):
    actor: Actor
    session: Session | None = None


HUMAN = Caller(Actor.HUMAN)


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()


def identify(store: Store, token: str | None) -> Caller:
    """A token that no session has is refused: it is never a human's."""
    if not token:
        return HUMAN
    session = store.session_by_token(hashed(token))
    if session is None:
        raise Refused(
            "the call was not carried out",
            why="the token in LOCKGATE_TOKEN belongs to no session",
            fix="unset LOCKGATE_TOKEN to act as a human",
        )
    return Caller(ACTORS[session.role], session)


def must_be_human(caller: Caller, what: str) -> None:
    if caller.actor is not Actor.HUMAN:
        raise Refused(what, why=f"a {caller.actor} may not do that", fix="ask a human to do it")


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
