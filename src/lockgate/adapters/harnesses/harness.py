"""What every agent's module says about its program; also what a third party's must say."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from lockgate.core.model.agents import Exit, Job, Launch, Report


class Found(Struct, frozen=True):
    """A program on this machine: how its command line begins, and what a sandbox must show."""

    argv: tuple[str, ...]
    paths: tuple[str, ...]


class Harness(Struct, frozen=True, kw_only=True):
    """One agent's program.

    `find` looks along a PATH (None: this process's own). `launch` gets an environment that holds
    nothing but `variables`. `login` names the variable that it would log in by, of those that it
    is given; without it that is the first of `keys`. `read` gets the output as it was kept, perhaps
    cut in its middle, and the present time.
    """

    install: str  # one line for people
    find: Callable[[str | None], Found | None]
    launch: Callable[[Found, Job], Launch]
    read: Callable[[str, Exit, float], Report]
    variables: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()  # those of them of which one is a login; none where it needs none
    login: Callable[[Mapping[str, str]], str] | None = None
    resumes: bool = True
