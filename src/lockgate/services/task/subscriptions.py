"""Who is told of what needs a human: targets are added, listed, tried and removed by people."""

import re
from collections.abc import Sequence

from msgspec import Struct

from lockgate.core.lifecycle.needs import NeedKind
from lockgate.core.model.people import Right
from lockgate.core.model.task import TaskId
from lockgate.core.notices.text import Message
from lockgate.errors import Refused, Unavailable, did_you_mean
from lockgate.ports import Clock, Store
from lockgate.ports.notify import Address, Addresses, Letter, Notifier
from lockgate.services.task.callers import Caller, must_be_human

PLAIN = ("http://", "https://")
NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$")


class Wanted(Struct, frozen=True, kw_only=True):
    """A target as a person asks for it; what is empty is found."""

    url: str
    name: str = ""
    secret: str = ""
    person: str = ""
    kinds: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()


def address_facts(address: Address) -> dict[str, object]:
    """Without its URL and its secret."""
    way = "webhook" if address.is_webhook else address.url.partition(":")[0]
    return {
        "name": address.name,
        "way": way,
        "for": address.person,
        "kinds": list(address.kinds),
        "projects": list(address.projects),
    }


class Subscriptions(Struct, frozen=True, kw_only=True):
    store: Store
    addresses: Addresses
    notifier: Notifier
    clock: Clock

    def add(self, address: Wanted, caller: Caller) -> Address:
        """With a secret where it is a webhook, and a name where it has none."""
        must_be_human(caller, "no target was added")
        self._check(address)
        name = address.name or self._free_name(address.url)
        secret = address.secret
        why = self.notifier.problem(address.url)
        if why and not address.url.startswith(PLAIN):
            fix = "see docs/notifications.md for the URLs of services, desktop: and webhooks"
            raise Refused("no target was added", why=why, fix=fix)
        if why:
            secret = secret or self.notifier.new_secret()
        made = Address(
            name=name,
            url=address.url,
            secret=secret if why else "",
            person=address.person,
            kinds=address.kinds,
            projects=address.projects,
            added=self.clock.now(),
        )
        self.addresses.add(made)
        return made

    def shown(self, caller: Caller) -> tuple[tuple[Address, ...], tuple[str, ...]]:
        """All targets, and the tasks that nobody is told of."""
        must_be_human(caller, "no target was shown", Right.LOOK)
        return self.addresses.all(), tuple(sorted(self.addresses.muted()))

    def test(self, name: str, caller: Caller) -> Address:
        """Sends one message there now; Unavailable where it does not arrive."""
        must_be_human(caller, f"nothing was sent to {name}")
        address = self._named(name)
        now = self.clock.now()
        message = Message("Lockgate: a test", "Notifications of what needs you arrive here.")
        facts: dict[str, object] = {"type": "test", "event": "test", "need": None, "url": ""}
        letter = Letter(id=f"test:{now:.3f}", message=message, facts={**facts, "time": now})
        why = self.notifier.send(address, letter)
        if why:
            fix = f"see that the target works, then: lockgate notify test {name}"
            raise Unavailable(f"nothing arrived at {name}", why=why, fix=fix)
        return address

    def remove(self, name: str, caller: Caller) -> None:
        must_be_human(caller, f"{name} was not removed")
        self._named(name)
        self.addresses.remove(name)

    def mute(self, task: TaskId, caller: Caller, *, muted: bool) -> None:
        """Nobody is told of this task any more, or everybody again."""
        must_be_human(caller, f"notifications of task {task} stay as they are")
        self.addresses.mute(task, muted=muted)

    def _named(self, name: str) -> Address:
        known = {it.name: it for it in self.addresses.all()}
        if name not in known:
            meant = did_you_mean(name, known)
            fix = f"{meant} See: lockgate notify list".strip()
            raise Refused(f"{name} was not found", why="no target has that name", fix=fix)
        return known[name]

    def _check(self, address: Wanted) -> None:
        what = "no target was added"
        wrong = [it for it in address.kinds if it not in set(NeedKind)]
        if wrong:
            kinds = ", ".join(NeedKind)
            raise Refused(what, why=f"there is no kind {wrong[0]!r}", fix=f"kinds are: {kinds}")
        if address.name and not NAME.match(address.name):
            why = f"{address.name!r} is no name"
            raise Refused(what, why=why, fix="use letters, digits, - and _")
        if address.secret and not address.secret.startswith("whsec_"):
            raise Refused(what, why="the secret is none", fix="it begins with whsec_")

    def _free_name(self, url: str) -> str:
        taken = {it.name for it in self.addresses.all()}
        scheme = re.sub(r"[^a-z0-9]", "", url.partition(":")[0].lower()) or "target"
        return _first_free("webhook" if scheme in {"http", "https"} else scheme, tuple(taken))


def _first_free(stem: str, taken: Sequence[str]) -> str:
    number = 1
    while (name := stem if number == 1 else f"{stem}-{number}") in taken:
        number += 1
    return name
