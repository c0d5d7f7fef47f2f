"""Makes the demo's repository, and runs its tests."""

import json
import shlex
import sys
from pathlib import Path

from lockgate.adapters.demo.files import CONFIG, FILES, REPORTER
from lockgate.adapters.run import Finished, run
from lockgate.adapters.sandbox import trouble
from lockgate.errors import Unavailable

AGENTS = Path(__file__).parent / "agents"
# The user's own git settings must not change the story.
PLAIN_GIT = (
    ("commit.gpgSign", "false"),
    ("core.autocrlf", "false"),
    ("core.excludesFile", "/dev/null"),
    ("core.hooksPath", "/dev/null"),
    ("merge.verifySignatures", "false"),
    ("user.name", "Lockgate demo"),
    ("user.email", "demo@localhost"),
)


def make_repository(root: Path, seconds: float = 0.0) -> str | None:
    """Each agent takes so many seconds to think. Answers why there is no sandbox, where none is."""
    why_bare = trouble()
    config = CONFIG.format(
        test=json.dumps(_tests(), ensure_ascii=False), level="none" if why_bare else "auto"
    )
    agents = {
        f".lockgate/agents/{it.name}": it.read_text("utf-8").replace("SECONDS", str(seconds))
        for it in AGENTS.glob("*.toml")
    }
    for name, text in {".lockgate/config.toml": config, **agents, **FILES}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    _git(root, "init", "--quiet", "--template=", "--initial-branch=main")
    for key, value in PLAIN_GIT:
        _git(root, "config", key, value)
    _git(root, "add", "--all")
    _git(root, "commit", "--quiet", "--message", "A small application")
    return why_bare


def run_tests(root: Path) -> tuple[bool, str]:
    """Whether they pass on what is checked out, and what they say."""
    done = run(("/bin/sh", "-c", _tests()), cwd=root)
    return done.code == 0, (done.err or done.out).strip()


def _tests() -> str:
    return f"{shlex.quote(sys.executable)} -B {REPORTER}"


def _git(root: Path, *argv: str) -> Finished:
    done = run(("git", "-C", str(root), *argv))
    if done.code != 0:
        raise Unavailable(
            "the demo's repository was not made",
            why=done.err.strip() or f"git {argv[0]} exited {done.code}",
            fix="see that git works here: git --version",
        )
    return done
