"""Git between hosts: this host's mirror of a project's hub, and what is handed over by it."""

from lockgate.adapters.hub.exchange import GitExchange
from lockgate.adapters.hub.trial import GitTrial

__all__ = ["GitExchange", "GitTrial"]
