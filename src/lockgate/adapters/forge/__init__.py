"""Forges: each a package of its own, behind the port `Forge`."""

from lockgate.adapters.forge.credentials import GithubLogin, github_login
from lockgate.adapters.forge.github.client import Client, Wires
from lockgate.adapters.forge.github.forge import GithubForge

__all__ = ["Client", "GithubForge", "GithubLogin", "Wires", "github_login"]
