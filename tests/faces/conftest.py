"""What tests of the command line start from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lockgate.adapters.sandbox import trouble
from tests.faces.shell import Shell, a_shell, make_repository


@pytest.fixture(scope="session")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one review gate, to copy."""
    root = tmp_path_factory.mktemp("configured") / "repo"
    make_repository(root)
    return root


@pytest.fixture(scope="session")
def bare_of_config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository without a configuration, to copy."""
    root = tmp_path_factory.mktemp("plain") / "repo"
    make_repository(root, config=None)
    return root


@pytest.fixture
def shell(tmp_path: Path, configured: Path) -> Shell:
    return a_shell(tmp_path / "shell", configured)


@pytest.fixture
def plain(tmp_path: Path, bare_of_config: Path) -> Shell:
    return a_shell(tmp_path / "plain", bare_of_config)


@pytest.fixture
def orchestrated(shell: Shell) -> Iterator[Shell]:
    """Commands start an orchestrator as they do for a user; nothing of it is left afterwards."""
    why_not = trouble()
    if why_not:
        pytest.skip(f"needs a sandbox: {why_not}")
    shell.alone = False
    yield shell
    stopped = shell.program("down")
    app = shell.app()
    for session in app.store.sessions_alive():
        app.sessions.end(session.id, 0.0)
    app.store.close()
    assert stopped.code == 0, stopped
