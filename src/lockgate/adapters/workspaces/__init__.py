"""The clones that agents work in, and the two repositories that they never write."""

from lockgate.adapters.workspaces.workspaces import GitWorkspaces

__all__ = ["GitWorkspaces"]
