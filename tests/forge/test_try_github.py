"""`scripts/try_github.sh`: refuses without a token or a name, and tidies away what it made."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forge.hub import TOKEN, Hub
from tests.forge.state import Token

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
SCRIPT = Path(__file__).parents[2] / "scripts" / "try_github.sh"
# This Python first: a version manager's own `python3` would take most of the time.
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def tried(*argv: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(SCRIPT), *argv],
        env={"PATH": PATH, "HOME": os.environ["HOME"], **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def against(hub: Hub, token: str = TOKEN) -> dict[str, str]:
    return {
        "LOCKGATE_GITHUB_TOKEN": token,
        "LOCKGATE_GITHUB_API": hub.url,
        "LOCKGATE_GITHUB_GIT": hub.git_url,
        "LOCKGATE_TRY_WAIT": "0",
    }


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        ((), "no repository is named"),
        (("demo",), "no repository is named"),
        (("a/b/c",), "no name of a repository"),
        (("octo/demo;rm",), "no name of a repository"),
        (("octo/demo", "octo/other"), "one repository is enough"),
        (("octo/demo", "--force"), "--force is no option"),
        (("octo/demo",), "LOCKGATE_GITHUB_TOKEN is not set"),
    ],
)
def test_it_refuses_before_it_touches_anything(argv: tuple[str, ...], why: str) -> None:
    done = tried(*argv, LOCKGATE_GITHUB_API="http://127.0.0.1:1")

    assert done.returncode == 2
    assert why in done.stderr
    assert "Nothing was tried: " in done.stderr


def test_it_asks_each_question_and_leaves_nothing(hub: Hub) -> None:
    """A merge queue is there, and nothing is put into it: that was not asked for."""
    hub.state.rules.checks, hub.state.rules.approvals, hub.state.rules.queue = (), 0, True
    before = hub.state.bare.tip("main")

    done = tried("octo/demo", **against(hub))

    assert done.returncode == 0, done.stderr
    assert "| a status leaves updated_at alone | yes |" in done.stdout
    assert "| POST statuses | 201 |" in done.stdout
    assert "| the merge queue | not tried" in done.stdout
    assert TOKEN not in done.stdout + done.stderr
    assert set(hub.state.bare.heads()) == {"main"}
    assert [it.issue.state for it in hub.state.pulls.values()] == ["closed"]
    assert hub.state.bare.tip("main") == before
    assert hub.did("POST", "/graphql") == []


@pytest.mark.slow
def test_it_says_what_a_fine_grained_token_cannot_do_and_tries_the_merge_queue(hub: Hub) -> None:
    hub.state.rules.checks, hub.state.rules.approvals, hub.state.rules.queue = (), 0, True
    hub.state.tokens["github_pat_x"] = Token("maria", "fine-grained")

    done = tried("octo/demo", "--merge-queue", **against(hub, "github_pat_x"))

    assert done.returncode == 0, done.stderr
    assert "/check-runs | 403 |" in done.stdout
    assert "| POST check-runs (Apps only) | 403 |" in done.stdout
    assert "| the entry's own commit | " in done.stdout
    assert "| POST statuses on it | 201 |" in done.stdout
