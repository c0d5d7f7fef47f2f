"""Who comes in at the web board: a link logs a browser in once, a token is a program's."""

import hashlib
import hmac
from collections.abc import Callable

from msgspec import Struct

from lockgate.core.model.people import Right
from lockgate.errors import Refused
from lockgate.ports import Chance, Clock
from lockgate.ports.keys import Key, KeyKind, Place, WebKeys
from lockgate.services.task.callers import Caller, hashed, must_be_human

LINK_SECONDS = 60.0
LOGIN_SECONDS = 30 * 86400.0
LAPTOP_SECONDS = 90 * 86400.0


class WebLogins(Struct, frozen=True, kw_only=True):
    """What its owner has is given away once; what is kept is its hash."""

    keys: WebKeys
    place: Callable[[], Place]  # made when it is asked for first
    reached_at: Callable[[str], None]  # remembers where people reach the board
    clock: Clock
    chance: Chance

    def link(self, person: str, caller: Caller, lasts: float = LINK_SECONDS) -> str:
        """For one login, soon; who makes one for somebody else could be that person."""
        must_be_human(caller, "no link was made", _right_over(person, caller))
        return self._made(KeyKind.LINK, person, lasts=lasts)

    def token(self, person: str, name: str, caller: Caller, *, read_only: bool) -> str:
        must_be_human(caller, "no token was made")
        if any(it.name == name for it in self.tokens()):
            what, why = f"no token {name} was made", "there is one of that name"
            raise Refused(what, why=why, fix=f"lockgate web token {name} --revoke")
        return self._made(KeyKind.TOKEN, person, name=name, read_only=read_only)

    def tokens(self) -> tuple[Key, ...]:
        return self.keys.all(KeyKind.TOKEN, self.clock.now())

    def revoke(self, name: str, caller: Caller) -> None:
        must_be_human(caller, f"token {name} was not revoked")
        found = [it for it in self.tokens() if it.name == name]
        if not found:
            what, known = (
                f"token {name} was not revoked",
                ", ".join(it.name for it in self.tokens()),
            )
            raise Refused(what, why="there is none of that name", fix=f"tokens: {known or 'none'}")
        must_be_human(caller, f"token {name} was not revoked", _right_over(found[0].person, caller))
        self.keys.drop(found[0].hash)

    def log_in_laptop(self, link: str, laptop: str) -> tuple[str, Key] | None:
        """A token for a link that is good, in place of one that this laptop has had."""
        used = self.keys.take(hashed(link), KeyKind.LINK, self.clock.now())
        if used is None:
            return None
        name = f"{used.person}@{laptop}"
        for it in self.tokens():
            if it.name == name and it.person == used.person:
                self.keys.drop(it.hash)
        token = self._made(KeyKind.TOKEN, used.person, name=name, lasts=LAPTOP_SECONDS)
        made = self.with_token(token)
        return (token, made) if made else None

    def forget(self, person: str, caller: Caller) -> None:
        """All that lets somebody in, who is not one of the people any more."""
        must_be_human(caller, f"the logins of {person} stay", Right.ADMIN)
        self.keys.drop_all_of(person)

    def log_in(self, link: str) -> str | None:
        """A browser's own key for a link that is good; the link is used up."""
        used = self.keys.take(hashed(link), KeyKind.LINK, self.clock.now())
        return self._made(KeyKind.LOGIN, used.person, lasts=LOGIN_SECONDS) if used else None

    def log_out(self, login: str) -> None:
        self.keys.drop(hashed(login))

    def logged_in(self, login: str) -> Key | None:
        return self.keys.find(hashed(login), KeyKind.LOGIN, self.clock.now())

    def with_token(self, token: str) -> Key | None:
        return self.keys.find(hashed(token), KeyKind.TOKEN, self.clock.now())

    def form_key(self, who: str) -> str:
        """What a form of this login must bring along; another site cannot know it."""
        secret = self.place().secret.encode()
        return hmac.new(secret, who.encode(errors="replace"), hashlib.sha256).hexdigest()

    def _made(
        self,
        kind: KeyKind,
        person: str,
        *,
        name: str = "",
        read_only: bool = False,
        lasts: float = 0.0,
    ) -> str:
        token, now = self.chance.token(), self.clock.now()
        key = Key(
            hash=hashed(token),
            kind=kind,
            person=person,
            name=name,
            read_only=read_only,
            made=now,
            expires=now + lasts if lasts else 0.0,
        )
        self.keys.add(key, now)
        return token


def _right_over(person: str, caller: Caller) -> Right:
    return Right.WORK if person == caller.by else Right.ADMIN
