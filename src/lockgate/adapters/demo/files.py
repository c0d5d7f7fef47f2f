"""What the demo's repository has in it before its agents come."""

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
