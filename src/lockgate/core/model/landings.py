"""Events of the merge train: who may land, who is kept back, what landed.

And a pull request as every list shows it.
"""

from msgspec import Struct

from lockgate.core.model.task import TaskId


class LandingApproved(Struct, frozen=True):
    """A human lets the change land."""

    seconds: float = 0.0  # that it waited for them


class LandingHeld(Struct, frozen=True):
    """The change is kept from landing until a human says otherwise."""

    why: str


class ChangeLanded(Struct, frozen=True):
    """The target was moved to this commit, which has the change."""

    commit: str
    change: str
    approved_by: str = ""  # who let it land, where somebody had to
    seconds: float = 0.0  # since the task was created
    usd: float = 0.0  # that all of it cost
    tokens: int = 0
    iteration: int = 0  # that passed the gates


class LandedUnjudged(Struct, frozen=True):
    """A human had a revert land at once, judged by no gate: the target was red."""

    commit: str
    reverts: TaskId
    why: str


class RevertMade(Struct, frozen=True):
    """The task takes back what another task landed; `commit` is the plain revert."""

    reverts: TaskId
    landed: str
    commit: str


class PullRequestChanged(Struct, frozen=True):
    """Something happened to the pull request of the task: it was opened, pushed, merged."""

    number: int
    what: str


LandingEvent = (
    LandingApproved | LandingHeld | ChangeLanded | LandedUnjudged | RevertMade | PullRequestChanged
)


class PullShown(Struct, frozen=True, kw_only=True):
    """A pull request in a row: what it waits for, and for whom."""

    number: int
    link: str = ""  # empty where the forge's own address is none of the web
    ci: str = ""
    reviews: str = ""
    waits: str = ""
    whom: str = ""  # people, CI, the forge or Lockgate
