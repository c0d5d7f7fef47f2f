"""Commands that agents and their hooks call."""
