"""Lockgate on a laptop that is logged in at a team's server; it runs on macOS too."""
