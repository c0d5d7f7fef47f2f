"""Lockgate runs coding agents and lets nothing land that has not passed its gates."""

__version__ = "0.1.0"
