"""What a home keeps for long: found, measured, removed, packed, compared with the database."""

from lockgate.adapters.upkeep.folders import DiskFolders
from lockgate.adapters.upkeep.inspector import HomeInspector
from lockgate.adapters.upkeep.task_refs import GitTaskRefs

__all__ = ["DiskFolders", "GitTaskRefs", "HomeInspector"]
