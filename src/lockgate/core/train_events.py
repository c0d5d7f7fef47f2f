"""Events of the merge train: who may land, who is kept back, what landed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LandingApproved:
    """A human lets the change land."""


@dataclass(frozen=True, slots=True)
class LandingHeld:
    """The change is kept from landing until a human says otherwise."""

    why: str


@dataclass(frozen=True, slots=True)
class ChangeLanded:
    """The target was moved to this commit, which has the change."""

    commit: str
    change: str
