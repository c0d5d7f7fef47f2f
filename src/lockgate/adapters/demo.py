"""The demo's throw-away repository: two branches, and a configuration with one review gate."""

from pathlib import Path

from lockgate.adapters.run import run
from lockgate.errors import Unavailable

CONFIG = """\
[project]
agent = "scripted"
respawn = "auto"

[gates]
formula = "none"

[[gates.list]]
name = "review"
type = "parallel_review"
dimensions = ["general"]
"""
BRANCHES = ("fix-login", "add-export", "speed-up")


def make_repository(root: Path) -> None:
    root.mkdir(parents=True)
    _git(root, "init", "--quiet", "--initial-branch=main")
    _git(root, "config", "user.name", "Lockgate demo")
    _git(root, "config", "user.email", "demo@localhost")
    (root / ".lockgate").mkdir()
    (root / ".lockgate" / "config.toml").write_text(CONFIG, encoding="utf-8")
    (root / "app.py").write_text("print('hello')\n", encoding="utf-8")
    _commit(root, "A small application")
    for branch in BRANCHES:
        _git(root, "checkout", "--quiet", "-b", branch, "main")
        (root / f"{branch}.py").write_text(f"print('{branch}')\n", encoding="utf-8")
        _commit(root, f"Work on {branch}")
    _git(root, "checkout", "--quiet", "main")


def merge_branch(root: Path, branch: str) -> None:
    _git(root, "merge", "--quiet", "--no-ff", "--message", f"Merge {branch}", branch)


def _commit(root: Path, message: str) -> None:
    _git(root, "add", "--all")
    _git(root, "commit", "--quiet", "--message", message)


def _git(root: Path, *argv: str) -> None:
    done = run(("git", "-C", str(root), *argv))
    if done.code != 0:
        raise Unavailable(
            "the demo's repository was not made",
            why=done.err.strip() or f"git {argv[0]} exited {done.code}",
            fix="see that git works here: git --version",
        )
