"""Seats: the reviewers that an evaluation has asked for, and what became of each."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One reviewer of one gate: a dimension, a pass, or the synthesis."""

    gate: str
    dimension: str
    generation: int  # of the session that was asked for last
    agent: str = ""  # another harness than the author's
    said: str = ""  # what it handed in, as JSON
    lost: bool = False  # its session ended without a verdict

    @property
    def name(self) -> str:
        return f"{self.gate}.{self.dimension}"
