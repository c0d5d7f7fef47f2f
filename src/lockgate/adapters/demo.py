"""The demo's throw-away repository: a small application, its tests, and two scripted agents."""

import json
import shlex
import sys
from pathlib import Path

from lockgate.adapters.run import Finished, run
from lockgate.adapters.sandbox import trouble
from lockgate.errors import Unavailable

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
CONFIG = """\
[project]
agent = "scripted"
slots = 2

[commands]
test = {test}

[gates]
formula = "none"

[[gates.list]]
name = "tests"
type = "command"

[sandbox]
level = "{level}"
"""
LOGIN = '''\
"""Where somebody is sent after logging in."""


def after_login(wanted):
    return "/home"
'''
TEST_LOGIN = """\
import unittest

from login import after_login


class AfterLogin(unittest.TestCase):
    def test_without_a_wish_it_is_home(self):
        self.assertEqual(after_login(""), "/home")

    def test_nobody_is_sent_to_another_site(self):
        self.assertEqual(after_login("https://evil.example"), "/home")
"""

# It fixes what it broke only because the failure is in its prompt: see `when`.
FIX_LOGIN = r'''
[[worker]]
steps = [
  { sleep = SECONDS },
  { write = "login.py", text = """
def after_login(wanted):
    return wanted or "/home"
""" },
  { section = "Handoff", text = "DONE: login goes on to the page that was asked for" },
  { signal = "complete" },
]

[[worker]]
when = "'https://evil.example' != '/home'"
steps = [
  { sleep = SECONDS },
  { write = "login.py", text = """
def after_login(wanted):
    here = wanted.startswith("/") and not wanted.startswith("//")
    return wanted if here else "/home"
""" },
  { append = "test_login.py", text = """

    def test_a_page_of_ours_is_gone_on_to(self):
        self.assertEqual(after_login("/reports"), "/reports")
""" },
  { section = "Handoff", text = "DONE: only to pages of this site, and a test for it" },
  { signal = "complete" },
]
'''
ADD_EXPORT = r'''
[[worker]]
steps = [
  { sleep = SECONDS },
  { write = "export.py", text = "def as_csv(rows):\n" },
  { crash = 3 },
]

[[worker]]
steps = [
  { sleep = SECONDS },
  { write = "export.py", text = """
def as_csv(rows):
    return "".join(",".join(str(cell) for cell in row) + "\\n" for row in rows)
""" },
  { write = "test_export.py", text = """
import unittest

from export import as_csv


class AsCsv(unittest.TestCase):
    def test_a_row_is_a_line(self):
        self.assertEqual(as_csv([(1, 2), (3, 4)]), "1,2\\n3,4\\n")
""" },
  { section = "Handoff", text = "DONE: rows become lines of CSV, and a test for it" },
  { signal = "complete" },
]
'''


def make_repository(root: Path, seconds: float = 0.0) -> str | None:
    """Each agent takes so many seconds to think. Answers why there is no sandbox, where none is."""
    why_bare = trouble()
    config = CONFIG.format(
        test=json.dumps(_tests(), ensure_ascii=False), level="none" if why_bare else "auto"
    )
    files = {
        ".lockgate/config.toml": config,
        ".lockgate/agents/fix-login.toml": FIX_LOGIN.replace("SECONDS", str(seconds)),
        ".lockgate/agents/add-export.toml": ADD_EXPORT.replace("SECONDS", str(seconds)),
        "login.py": LOGIN,
        "test_login.py": TEST_LOGIN,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    _git(root, "init", "--quiet", "--template=", "--initial-branch=main")
    for key, value in PLAIN_GIT:
        _git(root, "config", key, value)
    _git(root, "add", "--all")
    _git(root, "commit", "--quiet", "--message", "A small application")
    return why_bare


def merge_branch(root: Path, branch: str) -> None:
    _git(root, "merge", "--quiet", "--no-ff", "--message", f"Merge {branch}", branch)


def run_tests(root: Path) -> tuple[bool, str]:
    """Whether they pass on what is checked out, and what they say."""
    done = run(("/bin/sh", "-c", _tests()), cwd=root)
    return done.code == 0, (done.err or done.out).strip()


def _tests() -> str:
    return f"{shlex.quote(sys.executable)} -B -m unittest -q"


def _git(root: Path, *argv: str) -> Finished:
    done = run(("git", "-C", str(root), *argv))
    if done.code != 0:
        raise Unavailable(
            "the demo's repository was not made",
            why=done.err.strip() or f"git {argv[0]} exited {done.code}",
            fix="see that git works here: git --version",
        )
    return done
