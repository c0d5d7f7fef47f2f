"""Work is handed on: as one commit, with the checkpoint that says what it is."""

from dataclasses import dataclass, replace

from lockgate.core.arrival import Arrival, also, arrive, stay
from lockgate.core.decision import Decision, Declined, Evidence
from lockgate.core.evaluation_ends import over, spend
from lockgate.core.events import Event
from lockgate.core.gate_events import ChangeMended, ChangeTaken, TaskCompletionSignaled
from lockgate.core.model import Checkpoint, Size, Status
from lockgate.core.steering import shown_first

S = Status
NO_SIZE = Size()


@dataclass(frozen=True, slots=True)
class Work:
    """What an agent's done signal is about."""

    checkpoint: Checkpoint
    candidate: str = ""
    patch: str = ""
    size: Size = NO_SIZE
    mended: str = ""


def handed_on(seen: Evidence, reason: str, work: Work | None) -> Decision:
    decision = arrive(seen, spend(seen), Arrival(S.AGENT_REVIEW, reason))
    if work is None:
        return decision
    files = shown_first(work.checkpoint.files_modified, seen.rules)
    task = replace(decision.task, candidate=work.candidate, patch=work.patch, size=work.size)
    noted = (
        *_mended(work.candidate, work.mended),
        TaskCompletionSignaled(seen.task.id, work.checkpoint),
    )
    return replace(decision, task=replace(task, protected=files), events=(*noted, *decision.events))


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a change besides its files."""

    patch: str = ""
    added: int = 0
    mended: str = ""


NO_FACTS = Facts()


def change_taken(
    seen: Evidence, commit: str, files: tuple[str, ...], facts: Facts = NO_FACTS
) -> Decision | Declined:
    """The work as one commit, before anything judges it; no pass outlives another commit."""
    task = seen.task
    if task.status is not S.AGENT_REVIEW:
        return over(seen)
    same = commit == task.candidate
    known = task.protected if same else ()  # also what gates that passed want a human to see
    taken = replace(
        task,
        candidate=commit,
        patch=facts.patch,
        size=Size(len(files), facts.added),
        protected=tuple(dict.fromkeys((*shown_first(files, seen.rules), *known))),
        passed=task.passed if same else (),
        waiting=task.waiting if same else "",
        seats=task.seats if same or not task.candidate else (),
    )
    return also(stay(seen, taken), *_mended(commit, facts.mended), ChangeTaken(commit, files))


def _mended(commit: str, why: str) -> tuple[Event, ...]:
    return (ChangeMended(commit, why),) if why else ()
