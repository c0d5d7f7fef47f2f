"""Puts together what reads a repository's rules, with no home and no database."""

from lockgate.adapters.git import GitRepository
from lockgate.bootstrap.configuring import base_configuration
from lockgate.services.rulebook import Rulebook


def rulebook() -> Rulebook:
    repository = GitRepository()
    return Rulebook(repository, base_configuration(repository))
