"""Which branch is the base, whose rules judge a change: never what is checked out."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from lockgate.core.config.ci import ONLY_WITH, TARGETS

USUAL = ("main", "master")
HEADS = "refs/heads/"


class Target(Struct, frozen=True):
    """The branch that a build server says a change goes to, and the variable that says it."""

    variable: str
    branch: str


class Branches(Struct, frozen=True, kw_only=True):
    """What a repository says of its branches: each with its commit.

    `default` is the branch that the remote's HEAD names, `recorded` the one that `init` was told.
    """

    local: Mapping[str, str]
    fetched: Mapping[str, str]  # those of the remote, as they were when they were fetched
    default: str = ""
    recorded: str = ""
    remote: str = ""  # its name; empty where there is no remote


class Branch(Struct, frozen=True):
    """A branch and its commit; `ref` is how git knows it where it is the remote's."""

    name: str
    commit: str
    ref: str = ""


def target_of(environ: Mapping[str, str]) -> Target | None:
    """None where no build server speaks of a pull request."""
    for name in TARGETS:
        told = environ.get(name, "").removeprefix(HEADS)
        also = environ.get(ONLY_WITH.get(name, name), "")
        if told and also not in {"", "false"}:
            return Target(name, told)
    return None


def in_ci(environ: Mapping[str, str]) -> bool:
    """Where a build server runs us, local branches are what it made of the change."""
    return environ.get("CI", "") not in {"", "false"} or target_of(environ) is not None


def base_of(branches: Branches, *, fetched_first: bool = False) -> Branch | None:
    """The remote's default branch, the recorded one, a usual one, the only one; else None."""
    for name in _candidates(branches):
        found = tip_of(branches, name, fetched_first=fetched_first)
        if found:
            return found
    return None


def tip_of(branches: Branches, name: str, *, fetched_first: bool = False) -> Branch | None:
    here = Branch(name, branches.local.get(name, ""))
    there = Branch(name, branches.fetched.get(name, ""), f"{branches.remote}/{name}")
    both = (there, here) if fetched_first else (here, there)
    return next((it for it in both if it.commit), None)


def _candidates(branches: Branches) -> Iterator[str]:
    yield from filter(None, (branches.default, branches.recorded))
    yield from USUAL
    if len(branches.local) == 1 and not branches.remote:
        yield from branches.local
