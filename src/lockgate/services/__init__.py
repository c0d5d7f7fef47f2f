"""One use case a file: load, decide in the core, commit, act."""
