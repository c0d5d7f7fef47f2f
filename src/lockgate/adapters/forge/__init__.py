"""Forges: each a package of its own, behind the port `Forge`; only its client needs httpx."""
