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

# A release writes jobs in the newest form of the release before it, so that hosts of both can do
# them, whichever leads: a new form is read first, and written one release later.
FORM = 2  # the newest that is read: one more with every change that no earlier release can read
TAKEN = 3  # forms: this one, the one that is written, and the one that the release before writes
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
for _kind in KINDS.values():
    msgspec.json.Decoder(_kind)  # by one thread: see `config.schema`


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
    return canonical({**facts, "form": FORM - 1, "kind": NAMES[type(job)]})


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
