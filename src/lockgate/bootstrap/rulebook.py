"""Puts together what reads a repository's rules, with no home and no database."""

from lockgate.adapters.git import GitRepository
from lockgate.bootstrap.configuring import base_configuration
from lockgate.services.configuration import BaseConfiguration
from lockgate.services.rulebook import Rulebook


def rulebook(known: BaseConfiguration | None = None) -> Rulebook:
    """Over a configuration that was read before, where there is one."""
    configuration = known or base_configuration(GitRepository())
    return Rulebook(configuration.repository, configuration)
