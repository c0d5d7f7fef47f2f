"""Decides, and touches nothing: no file, no clock, no process, no randomness."""
