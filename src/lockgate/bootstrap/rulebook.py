"""Puts together what reads a repository's rules, with no database."""

import os

from lockgate.bootstrap.configuring import base_configuration, home_of, repository_of
from lockgate.services.gates.commit_check import Rulebook
from lockgate.services.task.projects import BaseConfiguration


def rulebook(known: BaseConfiguration | None = None) -> Rulebook:
    """Over a configuration that was read before, where there is one."""
    environ = os.environ
    configuration = known or base_configuration(repository_of(home_of(environ)), environ)
    return Rulebook(configuration.repository, configuration)
