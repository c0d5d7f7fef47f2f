"""Entropy: the same failure repeating, in one call or from one evaluation to the next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType

from lockgate.core.findings import GateFeedback, Identity, identity
from lockgate.core.model import AgentPhase
from lockgate.core.normalise import normalise
from lockgate.core.retry import ToolCall

REPEATS_OF_A_CALL = 3
REPEATS_OF_FINDINGS = 2


@dataclass(frozen=True, slots=True)
class Command:
    """What makes two calls the same one: the id differs each time, this does not."""

    argv: tuple[str, ...]
    phase: AgentPhase


@dataclass(frozen=True, slots=True)
class Streak:
    """How often in a row a command failed with this fingerprint."""

    fingerprint: str
    length: int = 1

    def followed_by(self, fingerprint: str) -> "Streak":
        same = fingerprint == self.fingerprint
        return Streak(fingerprint, self.length + 1 if same else 1)

    @property
    def triggers(self) -> bool:
        return self.length >= REPEATS_OF_A_CALL


class EntropyDetector:
    """Remembers each command's streak; built anew from the streaks that were kept."""

    def __init__(
        self, streaks: Mapping[Command, Streak] | None = None, *, workspaces: Sequence[str] = ()
    ) -> None:
        self._streaks = dict(streaks or {})
        self._workspaces = tuple(workspaces)

    def record(self, tool_call: ToolCall, phase: AgentPhase, output: str = "") -> bool:
        """Count a failure that used up its attempts; True when it is one repetition too many."""
        command = Command(tool_call.argv, phase)
        seen = fingerprint(output, self._workspaces)
        before = self._streaks.get(command)
        streak = before.followed_by(seen) if before else Streak(seen)
        self._streaks[command] = streak
        return streak.triggers

    @property
    def streaks(self) -> Mapping[Command, Streak]:
        return MappingProxyType(self._streaks)

    @property
    def triggered(self) -> bool:
        return any(streak.triggers for streak in self._streaks.values())


def fingerprint(output: str, workspaces: Sequence[str] = ()) -> str:
    # A lone surrogate, as undecodable output has them, must not stop us.
    return sha256(normalise(output, workspaces).encode(errors="surrogatepass")).hexdigest()


def findings_repeat(feedbacks: Sequence[GateFeedback]) -> bool:
    """Whether the last evaluations, oldest first, failed with the same set of findings."""
    last = feedbacks[-REPEATS_OF_FINDINGS:]
    return len(last) == REPEATS_OF_FINDINGS and len({_identities(it) for it in last}) == 1


def _identities(feedback: GateFeedback) -> frozenset[Identity]:
    """Of a failure without findings, its summary is all there is to compare."""
    found = frozenset(identity(feedback.gate_name, finding) for finding in feedback.findings)
    return found or frozenset({Identity(feedback.gate_name, "", normalise(feedback.summary))})
