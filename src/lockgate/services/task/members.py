"""The people of a home: who has which right, and what each has drafted and seen."""

from msgspec import Struct

from lockgate.core.model.findings import Priority
from lockgate.core.model.people import Draft, Person, Right, good_name
from lockgate.core.model.task import TaskId
from lockgate.errors import Refused
from lockgate.ports import Chance, Clock, Store
from lockgate.services.task.callers import Caller, must_be_human

LONGEST = 20_000  # characters of a comment


class Members(Struct, frozen=True):
    store: Store
    clock: Clock

    def all(self, caller: Caller) -> tuple[Person, ...]:
        must_be_human(caller, "nobody was shown", Right.LOOK)
        return self.store.people()

    def add(self, name: str, may: Right, uid: int | None, caller: Caller) -> Person:
        """Somebody new, or another right for somebody who is there."""
        what = f"{name!r} was not added"
        must_be_human(caller, what, Right.ADMIN)
        if not good_name(name):
            why = "a name has letters, digits, '.', '_', '@' and '-', and 64 of them at most"
            raise Refused(what, why=why, fix="lockgate people add ann --may work")
        taken = next((it.name for it in self.store.people() if it.uid == uid), None)
        if uid is not None and taken not in {None, name}:
            why = f"user {uid} of this machine is {taken}"
            raise Refused(what, why=why, fix=f"first: lockgate people remove {taken}")
        now = self.clock.now()
        person = Person(name=name, may=may, uid=uid, added=now, added_by=caller.by)
        self.store.put_person(person)
        return person

    def remove(self, name: str, caller: Caller) -> None:
        what = f"{name!r} was not removed"
        must_be_human(caller, what, Right.ADMIN)
        if not self.store.remove_person(name):
            raise Refused(what, why="nobody has that name", fix="lockgate people list")


class Notebook(Struct, frozen=True):
    """What one person keeps for later: comments on a change, and which needs they have seen."""

    store: Store
    clock: Clock
    chance: Chance

    def save(self, draft: Draft, caller: Caller) -> Draft:
        """A comment on a line of a change; one without an id is new."""
        what = "the comment was not saved"
        must_be_human(caller, what)
        if not draft.text.strip() or len(draft.text) > LONGEST:
            why = f"it is empty, or longer than {LONGEST:,} characters"
            raise Refused(what, why=why, fix="say what is wrong with the line")
        if draft.priority not in set(Priority):
            why = f"{draft.priority!r} is no priority"
            raise Refused(what, why=why, fix=f"use one of {', '.join(Priority)}")
        self.store.load(draft.task)
        kept = Draft(
            id=draft.id or self.chance.token()[:16],
            task=draft.task,
            patch=draft.patch,
            person=caller.by,
            file=draft.file,
            side=draft.side,
            line=draft.line,
            quote=draft.quote,
            text=draft.text,
            priority=draft.priority,
            time=self.clock.now(),
        )
        self.store.put_draft(kept)
        return kept

    def drafts(self, task: TaskId, caller: Caller) -> tuple[Draft, ...]:
        """Their own, the oldest first."""
        must_be_human(caller, "no comment was shown", Right.LOOK)
        return self.store.drafts(task, caller.by)

    def discard(self, task: TaskId, ids: tuple[str, ...], caller: Caller) -> None:
        """These, or all of the task where none are named; nobody discards another's."""
        must_be_human(caller, "no comment was discarded")
        for it in self.store.drafts(task, caller.by):
            if not ids or it.id in ids:
                self.store.drop_draft(it.id)

    def mark_seen(self, need: str, caller: Caller) -> None:
        """It is dimmed and shown last, until its cause is another one."""
        must_be_human(caller, "the need was not marked", Right.LOOK)
        self.store.mark_seen(caller.by, need, 0.0)

    def snooze(self, need: str, seconds: float, caller: Caller) -> None:
        must_be_human(caller, "the need was not put off", Right.LOOK)
        self.store.mark_seen(caller.by, need, self.clock.now() + seconds)

    def show_again(self, need: str, caller: Caller) -> None:
        must_be_human(caller, "the need was not marked", Right.LOOK)
        self.store.mark_seen(caller.by, need, None)
