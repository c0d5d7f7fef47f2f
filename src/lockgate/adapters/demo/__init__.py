"""The demo's throw-away repository: a small application, its tests, and scripted agents."""

from lockgate.adapters.demo.repository import make_repository, run_tests

__all__ = ["make_repository", "run_tests"]
