"""What a home keeps for long: found, measured, removed, packed, compared with the database."""

from lockgate.adapters.upkeep.inspector import HomeInspector
from lockgate.adapters.upkeep.shelves import HomeShelves
from lockgate.adapters.upkeep.stacks import GitStacks

__all__ = ["GitStacks", "HomeInspector", "HomeShelves"]
