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
REPORT = '''\
"""Runs the tests; where $OUT is set, it gets a JUnit report."""
import os
import sys
import unittest
from xml.sax.saxutils import quoteattr


class Result(unittest.TextTestResult):
    def startTest(self, test):
        super().startTest(test)
        self.said = getattr(self, "said", {})
        self.said[test.id()] = ""

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.said[test.id()] = self.failures[-1][1]

    def addError(self, test, error):
        super().addError(test, error)
        self.said[test.id()] = self.errors[-1][1]


def case(id, said):
    where, _, name = id.rpartition(".")
    failure = f"<failure message={quoteattr(said)}/>" if said else ""
    return f"<testcase classname={quoteattr(where)} name={quoteattr(name)}>{failure}</testcase>"


tests = unittest.defaultTestLoader.discover(".")
result = unittest.TextTestRunner(resultclass=Result, verbosity=0).run(tests)
if os.environ.get("OUT"):
    cases = "".join(case(*it) for it in getattr(result, "said", {}).items())
    with open(os.environ["OUT"] + "/junit.xml", "w", encoding="utf-8") as file:
        file.write(f"<testsuite>{cases}</testsuite>")
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

# A reviewer that has nothing to say against a change, and one that joins what others found.
REVIEWERS = r"""
[[reviewer]]
when = '"groups"'
steps = [ { shell = '''echo '{"groups": []}' | lockgate review submit --file -''' } ]

[[reviewer]]
steps = [ { shell = '''echo '{"verdict": "PASS"}' | lockgate review submit --file -''' } ]
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

# It breaks a test and takes the test away; told to mend it, it does the work.
TIDY_NAMES = r'''
[[worker]]
when = "Keep the test"
steps = [
  { sleep = SECONDS },
  { write = "names.py", text = """
def slug(title):
    if "/" in title:
        raise ValueError("a name has no slash in it")
    return title.lower().replace(" ", "-")
""" },
  { write = "test_names.py", text = """
import unittest

from names import slug


class Slug(unittest.TestCase):
    def test_spaces_become_dashes(self):
        self.assertEqual(slug("a b"), "a-b")

    def test_capitals_become_small(self):
        self.assertEqual(slug("Totals"), "totals")

    def test_a_slash_is_refused(self):
        self.assertRaises(ValueError, slug, "a/b")
""" },
  { section = "Handoff", text = "DONE: slashes are refused; the old tests are all there" },
  { signal = "complete" },
]

[[worker]]
steps = [
  { sleep = SECONDS },
  { write = "names.py", text = """
def slug(title):
    if "/" in title:
        raise ValueError("a name has no slash in it")
    return title.replace(" ", "-")
""" },
  { write = "test_names.py", text = """
import unittest

from names import slug


class Slug(unittest.TestCase):
    def test_spaces_become_dashes(self):
        self.assertEqual(slug("a b"), "a-b")
""" },
  { section = "Handoff", text = "DONE: slashes are refused, all tests pass" },
  { signal = "complete" },
]
'''

# It crashes once, gets a finding of a reviewer, and breaks only together with tidy-names.
ADD_EXPORT = r'''
[[worker]]
when = "fails on the target"
steps = [
  { sleep = SECONDS },
  { shell = "sed 's/slug(title).replace(\"\/\", \"-\")/slug(title.replace(\"\/\", \"-\"))/' export.py > new && cat new > export.py && rm new" },
  { section = "Handoff", text = "DONE: the slash goes before the name is made" },
  { signal = "complete" },
]

[[worker]]
when = "run as a formula"
steps = [
  { sleep = SECONDS },
  { append = "export.py", text = """


def _cell(value):
    text = str(value)
    return "'" + text if text.startswith(("=", "+", "@")) else text
""" },
  { section = "Handoff", text = "DONE: a cell is never a formula" },
  { signal = "complete" },
]

[[worker]]
steps = [
  { sleep = SECONDS },
  { write = "export.py", text = "def as_csv(rows):\n" },
  { crash = 3 },
]

[[worker]]
steps = [
  { sleep = SECONDS },
  { section = "Handoff", text = "DONE: rows become lines of CSV, and tests for it" },
  { signal = "complete" },
]

[[reviewer]]
when = "dimension: security"
steps = [ { shell = '''x''' } ]
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
