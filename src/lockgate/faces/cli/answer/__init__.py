"""Commands by which a human answers."""
