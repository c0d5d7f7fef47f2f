"""Test files read as text: which tests stand in them, and what a change did to how tests run."""

from lockgate.adapters.test_sources.read import FileTestSources, changed_files, source_tests

__all__ = ["FileTestSources", "changed_files", "source_tests"]
