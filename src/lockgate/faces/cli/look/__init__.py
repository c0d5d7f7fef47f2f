"""Commands that only show."""
