"""Every error a person must act on, in three parts: what did not happen, why, what to do."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the shortest commands load this, and need none of the model
    from lockgate.core.model.task import AgentPhase

ENOUGH = 3  # words that a suggestion names
LIKE = 0.65  # how similar two words are that may have been mixed up


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence with the words that are like this one, the likeliest first; empty for none."""
    from difflib import SequenceMatcher  # noqa: PLC0415 - only who mistypes waits for it

    def likeness(other: str) -> float:
        """By as much of a longer word as was typed: a task's id ends in letters of chance."""
        inside = 1.0 if len(word) > 1 and word in other else 0.0
        begins = SequenceMatcher(None, word, other[: len(word) + 1]).ratio()
        return max(inside, begins, SequenceMatcher(None, word, other).ratio())

    found = sorted(((likeness(it), it) for it in known), key=lambda it: (-it[0], it[1]))
    best = [repr(it) for like, it in found[:ENOUGH] if like >= LIKE]
    return f"Did you mean {' or '.join(best)}?" if best else ""


class LockgateError(Exception):
    """The base of the tree; its children differ by who must act."""

    exits_with = 1

    def __init__(self, what: str, *, why: str, fix: str) -> None:
        super().__init__(f"{what}: {why}")
        self.what = what
        self.why = why
        self.fix = fix


class NoSuchTask(LockgateError):
    """`known` are the ids that the user may have meant."""

    def __init__(self, name: str, *, why: str = "", known: Iterable[str] = ()) -> None:
        meant = did_you_mean(name, known)
        super().__init__(
            f"task {name!r} was not found",
            why=why or f"no task's id starts with {name!r}",
            fix=f"{meant} See: lockgate task list" if meant else "lockgate task list",
        )


class Refused(LockgateError):
    """The caller asked for something that is not allowed or makes no sense here."""


class TransitionRefused(Refused):
    def __init__(self, task: str, source: str, target: str, *, why: str, fix: str = "") -> None:
        super().__init__(
            f"task {task} stays {source}, not {target}",
            why=why,
            fix=fix or f"fix that, then run again: lockgate task update {task} --status {target}",
        )


class TurnDeclined(Refused):
    """A request that moves no task was not carried out: the task is not where it makes sense."""


class WordsWaiting(Refused):
    """An agent wants to hand in, and a human has said something that it has not heard yet."""


class TargetIsRed(Refused):
    """The gates fail on the target as it is, so that they cannot judge what would undo a change."""

    def __init__(self, task: str, branch: str, evidence: str) -> None:
        super().__init__(
            f"task {task} was not undone",
            why=f"{branch} is red, so that its gates cannot judge a revert: {evidence}",
            fix=f"land the plain revert at once, unjudged: lockgate undo {task} --now",
        )


class RevertConflicts(Refused):
    """Later changes touch what a revert would take back, so that git cannot make it by itself."""

    def __init__(self, task: str, files: Sequence[str]) -> None:
        super().__init__(
            f"task {task} was not undone",
            why=f"its plain revert conflicts with later changes in: {', '.join(files)}",
            fix=f"let an agent make the revert: lockgate undo {task} --yes",
        )


class Untrusted(Refused):
    """A repository asks for more than the sandbox gives, and no human has said yes to that."""

    def __init__(self, project: str, wants: str, digest: str) -> None:
        super().__init__(
            f"nothing of {project} was run",
            why=f"no human has agreed to what its .lockgate/config.toml asks for: it wants {wants}",
            fix=f"read that, then: lockgate trust (in CI: LOCKGATE_TRUST={digest})",
        )


class BadConfig(LockgateError):
    """The owner of the configuration, or of the command line, must change it."""

    exits_with = 2


class Unavailable(LockgateError):
    """Git, the database or the disk did not do their part; trying again may help."""


class NotPrepared(Unavailable):
    """What a change brings to prepare its services' data fails, which base's does not."""


class SurroundingsFailed(Unavailable):
    """A gate could not run for a reason that lies outside of the work and may pass."""

    def __init__(self, gate: str, why: str) -> None:
        super().__init__(
            f"gate {gate} could not run",
            why=why,
            fix="nothing is counted, and it is tried again by itself; lockgate doctor",
        )


class NotesBroken(Unavailable):
    """Git has lost a part of the notes with the evidence of what landed."""

    def __init__(self, project: str, why: str) -> None:
        super().__init__(
            f"no evidence can be added in {project}",
            why=f"a part of refs/notes/lockgate is missing ({why})",
            fix="write it again from the database: lockgate doctor --repair",
        )


class StaleTask(Unavailable):
    """Somebody else changed the task between load and commit; the turn is taken again."""

    def __init__(self, task: str) -> None:
        super().__init__(
            f"task {task} was not changed",
            why="others kept changing it at the same moment",
            fix="run the command again",
        )


class NoFreeSlot(Unavailable):
    """As many agents of the project are at work as may be; it is tried again."""

    def __init__(self, task: str) -> None:
        super().__init__(
            f"no agent of task {task} was started",
            why="as many agents of its project are at work as it has slots",
            fix="wait until one of them ends, or raise slots in .lockgate/config.toml",
        )


class SchemaIsNewer(Unavailable):
    """A newer program has changed the database so that this one can no longer use it."""

    def __init__(self, where: str, version: int, known: int) -> None:
        super().__init__(
            f"the database {where} was not opened",
            why=f"its schema is version {version} and this lockgate knows versions up to {known}",
            fix="use the newer lockgate that wrote it, or restore a backup from before",
        )


class Restored(Unavailable):
    """The database was replaced by another copy of it while this process was using it."""

    def __init__(self, where: str) -> None:
        super().__init__(
            "nothing more is done from here",
            why=f"the database {where} was replaced by another copy of it while it was in use",
            fix="start again with what that copy knows: lockgate up",
        )


class Overtaken(Unavailable):
    """A newer orchestrator has started on the same database; what it lands is its own affair."""

    def __init__(self) -> None:
        super().__init__(
            "nothing lands from here",
            why="a newer orchestrator serves this database, and it alone lands changes",
            fix="stop this one: lockgate down",
        )


class SandboxRetryExhaustedError(LockgateError):
    """A sandboxed call failed in every attempt it was given (S1)."""

    def __init__(
        self, *, exit_code: int | None, attempt_count: int, phase: "AgentPhase", tool_call_id: str
    ) -> None:
        ended = "was killed" if exit_code is None else f"exited {exit_code}"
        super().__init__(
            f"call {tool_call_id} did not succeed in {phase}",
            why=f"it {ended} in each of {attempt_count} attempts",
            fix="read its output, fix what it reports, then run it again",
        )
        self.exit_code = exit_code
        self.attempt_count = attempt_count
        self.phase = phase
        self.tool_call_id = tool_call_id


class Fenced(LockgateError):
    """The claim on a lane is another's now, so that nothing more counts that this one says."""

    def __init__(self, lane: str) -> None:
        super().__init__(
            f"nothing was written by the job {lane!r}",
            why="another has claimed it, or it was called off",
            fix="nothing: who has it now does it",
        )
