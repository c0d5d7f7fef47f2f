"""Puts the program together: the only package that chooses adapters.

Most of it is loaded when it is asked for: a command that needs no database does not wait for it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockgate.bootstrap.app import (
        App,
        make_demo_repository,
        open_app,
        orchestrator_pid,
        path_outside_of,
        run_demo_tests,
        uid_of_user,
    )
    from lockgate.bootstrap.rules import home_of

__all__ = [
    "App",
    "home_of",
    "make_demo_repository",
    "open_app",
    "orchestrator_pid",
    "path_outside_of",
    "run_demo_tests",
    "uid_of_user",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(name)
    from lockgate.bootstrap import app

    found: object = getattr(app, name)
    return found
