"""The demo: the whole story on a throw-away repository."""
