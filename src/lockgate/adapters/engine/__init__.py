"""The engine in this process: threads, and lanes that are gone with it."""

from lockgate.adapters.engine.local import LocalEngine

__all__ = ["LocalEngine"]
