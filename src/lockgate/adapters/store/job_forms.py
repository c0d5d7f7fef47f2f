"""Jobs as JSON, for hosts that may run different versions of this program."""

import msgspec

from lockgate.adapters.store.json_forms import Fields, damaged, object_of
from lockgate.core.jobs import (
    Attend,
    CarryOut,
    Evaluate,
    HostLost,
    Job,
    Lead,
    SyncForge,
    TestTree,
    Tidy,
    TurnTrain,
)
from lockgate.core.model.facts import canonical
from lockgate.errors import Refused

FORM = 1  # one more with every change that the program before it cannot read
TAKEN = 2  # forms: this one, and the one before it
KINDS: dict[str, type[Job]] = {
    "carry out": CarryOut,
    "evaluate": Evaluate,
    "turn train": TurnTrain,
    "test tree": TestTree,
    "sync forge": SyncForge,
    "tidy": Tidy,
    "attend": Attend,
    "host lost": HostLost,
    "lead": Lead,
}
NAMES = {kind: name for name, kind in KINDS.items()}


class UnknownForm(Refused):
    """A job was written by a program that this one is too old, or too new, for."""

    def __init__(self, lane: str, form: int) -> None:
        super().__init__(
            f"the job {lane!r} was not taken",
            why=f"it is written in form {form} and this lockgate reads {_taken()}",
            fix="use the same version of lockgate on every host, the leader's last",
        )


def job_to_json(job: Job) -> str:
    facts = object_of("a job", msgspec.to_builtins(job))
    return canonical({**facts, "form": FORM, "kind": NAMES[type(job)]})


def job_from_json(lane: str, it: Fields) -> Job:
    """UnknownForm where another version must read it; Unavailable where nobody can."""
    facts = dict(object_of(it.where, it.json("job")))
    head = Fields(it.where, facts)
    form, kind = head.whole("form"), head.text("kind")
    if not FORM - TAKEN < form <= FORM:
        raise UnknownForm(lane, form)
    if kind not in KINDS:
        raise damaged(it.where, f"there is no kind of job {kind!r}")
    try:
        return msgspec.convert(facts, KINDS[kind])
    except msgspec.ValidationError as error:
        raise damaged(it.where, str(error)) from error


def _taken() -> str:
    return f"forms {FORM - TAKEN + 1} to {FORM}"
