"""Agents under their runners. Kept empty: the runner must start fast and imports from here."""
