"""What an assistant may ask its human for: which ones may, and what the human is shown."""

from collections.abc import Callable

from msgspec import Struct

from lockgate.core.lifecycle import assistants
from lockgate.core.lifecycle.decision import Decision, Declined, Evidence, Refusal
from lockgate.core.model.people import Right
from lockgate.core.model.task import Task, TaskId
from lockgate.ports import AssistantGrants
from lockgate.services.task.callers import Caller, must_be_human
from lockgate.services.task.coordinator import Coordinator, refused
from lockgate.services.task.people import People
from lockgate.services.task.tasks import accept
from lockgate.services.task.views import files_in_order

WHAT = "nothing was granted"


class Wanted(Struct, frozen=True, kw_only=True):
    """A yes or a no that an assistant wants: `decide` is the decision that it would lead to."""

    what: str  # what did not happen, where it is refused
    command: str  # with which a human does it
    patch: str  # the change that was looked at
    may: Right  # what the human must have the right to
    decide: Callable[[Evidence], Decision | Declined]


class Question(Struct, frozen=True):
    """What the human is shown."""

    task: Task
    files: tuple[str, ...]


class AssistantRights(Struct, frozen=True):
    grants: AssistantGrants
    coordinator: Coordinator
    people: People

    def granted(self) -> tuple[str, ...]:
        return self.grants.assistants()

    def grant(self, name: str, caller: Caller) -> None:
        must_be_human(caller, WHAT, Right.ADMIN)
        accept(assistants.check_name(name), WHAT)
        self.grants.grant_assistant(name)

    def forget(self, name: str, caller: Caller) -> None:
        must_be_human(caller, f"the grant of {name} stays", Right.ADMIN)
        self.grants.forget_assistant(name)

    def question(
        self, id: TaskId, wanted: Wanted, assistant: str, caller: Caller, *, asks: bool
    ) -> Question:
        """What to ask the human; Refused where there is nothing to ask, or where none may be.

        `asks` says whether the assistant can show its human a form.
        """
        must_be_human(caller, wanted.what, wanted.may)
        if assistant not in self.granted():
            raise refused(id, assistants.not_granted(assistant, wanted.command), wanted.what)
        seen = self.coordinator.witness.look(id, caller).evidence
        problem: Declined | Refusal | None = assistants.only_in_person(seen.task, wanted.command)
        if problem is None and not asks:
            problem = assistants.cannot_ask(assistant, wanted.command)
        decided = wanted.decide(seen) if problem is None else problem
        if not isinstance(decided, Decision):
            raise refused(id, decided, wanted.what)
        return Question(seen.task, files_in_order(seen.task, self._files(seen.task)))

    def _files(self, task: Task) -> tuple[str, ...]:
        return self.people.judged_files(task) if task.candidate else ()
