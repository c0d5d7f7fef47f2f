"""Setting a repository up, and looking whether a machine has what it needs."""
