"""The agents' programs: one module each, and the registry that knows them by name."""

from lockgate.adapters.harnesses.harness import Found, Harness
from lockgate.adapters.harnesses.registry import Registry

__all__ = ["Found", "Harness", "Registry"]
