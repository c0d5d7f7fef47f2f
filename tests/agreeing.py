"""A user who has read what a repository asks for and says yes: the real grant, in its home."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from lockgate.bootstrap.rules import base_configuration, home_of, repository_of
from lockgate.errors import BadConfig


def agree(root: Path, environ: Mapping[str, str]) -> None:
    """To all that its base branch asks for now; a configuration that is wrong asks nothing."""
    configuration = base_configuration(repository_of(home_of(environ)), environ)
    project = configuration.repository.project_at(root)
    assert project is not None
    with suppress(BadConfig):
        configuration.agree(project)
