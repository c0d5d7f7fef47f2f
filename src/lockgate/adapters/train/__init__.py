"""The merge train's git: candidates in judge.git, and the branch that they land on."""

from lockgate.adapters.train.pulls import GitPullYard
from lockgate.adapters.train.repository import GitYard

__all__ = ["GitPullYard", "GitYard"]
