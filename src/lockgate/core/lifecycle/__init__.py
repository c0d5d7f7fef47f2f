"""The lifecycle of a task. Everything that decides a status is in this package."""
