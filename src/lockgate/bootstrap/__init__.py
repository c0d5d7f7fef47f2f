"""Puts the program together: the only package that chooses adapters."""

from lockgate.bootstrap.app import (
    App,
    config_schema,
    home_of,
    make_demo_repository,
    merge_demo_branch,
    open_app,
    program_version,
    run_demo_tests,
    sandbox_trouble,
)

__all__ = [
    "App",
    "config_schema",
    "home_of",
    "make_demo_repository",
    "merge_demo_branch",
    "open_app",
    "program_version",
    "run_demo_tests",
    "sandbox_trouble",
]
