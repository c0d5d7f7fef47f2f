"""What the demo's repository has in it before its agents come."""

import json
import shlex
import sys
from pathlib import Path

from lockgate.adapters.run import Finished, run
from lockgate.adapters.sandbox import trouble
from lockgate.errors import Unavailable

CONFIG = """\
[project]
agent = "scripted"
slots = 3

[commands]
test = {test}

[gates]
formula = "none"

[[gates.list]]
name = "tests"
type = "command"
attempts = 1

[[gates.list]]
name = "differential"
type = "differential"
attempts = 1

[[gates.list]]
name = "code_review"
type = "parallel_review"
dimensions = ["correctness", "security"]

[[gates.list]]
name = "sign_off"
type = "human"
prompt = "It decides where people are sent: is that right?"
when = "change.paths.exists(p, p == 'login.py')"

[sandbox]
level = "{level}"
"""

# What the differential gate needs: a report that names each test.
REPORTER = "report-unittest.py"
REPORT = '''\
"""Runs the tests; where $OUT is set, a JUnit report goes there."""
import os
import sys
import unittest
from xml.sax.saxutils import escape, quoteattr


class Result(unittest.TextTestResult):
    said = {}

    def startTest(self, test):
        super().startTest(test)
        self.said[test.id()] = ""

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.said[test.id()] = self.failures[-1][1]

    def addError(self, test, error):
        super().addError(test, error)
        self.said[test.id()] = self.errors[-1][1]


def case(id, said):
    where, _, name = id.rpartition(".")
    told = [line for line in said.splitlines() if "Error" in line] or [said]
    failure = f"<failure message={quoteattr(told[-1])}>{escape(said)}</failure>" if said else ""
    return f"<testcase classname={quoteattr(where)} name={quoteattr(name)}>{failure}</testcase>"


tests = unittest.defaultTestLoader.discover(".")
result = unittest.TextTestRunner(resultclass=Result, verbosity=0).run(tests)
if os.environ.get("OUT"):
    with open(os.environ["OUT"] + "/junit.xml", "w", encoding="utf-8") as file:
        file.write("<testsuite>")
        file.writelines(case(*it) for it in Result.said.items())
        file.write("</testsuite>")
sys.exit(not result.wasSuccessful())
'''
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
NAMES = '''\
"""Names of files and pages."""


def slug(title):
    return title.lower().replace(" ", "-")
'''
TEST_NAMES = """\
import unittest

from names import slug


class Slug(unittest.TestCase):
    def test_spaces_become_dashes(self):
        self.assertEqual(slug("a b"), "a-b")

    def test_capitals_become_small(self):
        self.assertEqual(slug("Totals"), "totals")
"""
FILES = {
    REPORTER: REPORT,
    "login.py": LOGIN,
    "test_login.py": TEST_LOGIN,
    "names.py": NAMES,
    "test_names.py": TEST_NAMES,
}


# Makes the demo's repository, and runs its tests.


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
