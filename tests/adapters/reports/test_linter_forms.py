"""The usual forms in which eslint and mypy print their complaints are read in full."""

import pytest

from lockgate.adapters.reports import read_reports
from lockgate.core.model.findings import Priority
from lockgate.core.model.gates import Report
from lockgate.core.model.results import ReportRead

P1, P2, P3 = Priority.P1_MAJOR, Priority.P2_MINOR, Priority.P3_SUGGESTION

STYLISH = """

> app@1.0.0 lint
> eslint .


/workspace/src/app.js
   1:10  error    'unused' is defined but never used  no-unused-vars
  12:5   warning  Unexpected console statement        no-console

/workspace/src/b.js
  3:1  error  Parsing error: Unexpected token }

✖ 3 problems (2 errors, 1 warning)
  1 error and 0 warnings potentially fixable with the `--fix` option.
"""
COMPACT = """\
/workspace/src/app.js: line 1, col 10, Error - 'unused' is defined (twice). (no-unused-vars)
/workspace/src/app.js: line 12, col 5, Warning - Unexpected console statement. (no-console)
/workspace/src/b.js: line 3, col 1, Error - Parsing error: Unexpected token }

3 problems
"""
UNIX = """\
/workspace/src/app.js:1:10: 'unused' is defined but never used. [Error/no-unused-vars]
/workspace/src/app.js:12:5: Unexpected console statement. [Warning/no-console]
/workspace/src/b.js:3:1: Parsing error: Unexpected token } [Error]

3 problems
"""
MYPY = """\
src/a.py:3: error: Incompatible return value type (got "int", expected "str")  [return-value]
src/b.py:2:5: error: Name "y" is not defined  [name-defined]
Found 2 errors in 2 files (checked 5 source files)
"""
PRETTY = """\
src/a.py:3: error: Incompatible return value type (got "int", expected
"str")  [return-value]
        return 1
               ^
src/b.py:2:5: error: Name "y" is not defined  [name-defined]
        y
        ^
Found 2 errors in 2 files (checked 5 source files)
"""
OPEN = """\
src/a.py:3: error: Incompatible return value type (got "int", expected "str")  [return-value]
src/b.py:2:5: error: Name "y" is not defined
Found 2 errors in 2 files (checked 5 source files)
"""
JSON = (
    '{"file": "src/a.py", "line": 3, "message": "Bad", "code": null, "severity": "error"}\n'
    '{"file": "src/b.py", "line": 2, "column": 5, "message": "Name", "hint": null,'
    ' "code": "name-defined", "severity": "error"}\n{"severity": 3}\n'
)


def read(text: str) -> ReportRead:
    found = read_reports(None, text, None)
    assert isinstance(found, ReportRead)
    return found


@pytest.mark.parametrize("text", [STYLISH, COMPACT, UNIX], ids=["stylish", "compact", "unix"])
def test_every_form_of_eslint_says_where_and_how_bad(text) -> None:
    found = read(text)

    assert found.format is Report.ESLINT
    places = [
        (it.priority, it.location.file, it.location.line, it.location.column)
        for it in found.findings
        if it.location
    ]
    assert places == [
        (P1, "src/b.js", 3, 1),
        (P2, "src/app.js", 1, 10),
        (P3, "src/app.js", 12, 5),
    ]
    assert found.findings[1].issue.endswith("(no-unused-vars)")


@pytest.mark.parametrize(
    "text", [MYPY, PRETTY, OPEN, JSON], ids=["plain", "pretty", "without codes", "json"]
)
def test_every_form_of_mypy_says_where_and_what(text) -> None:
    found = read(text)

    assert found.format is Report.MYPY
    assert [(it.location.file, it.location.line) for it in found.findings if it.location] == [
        ("src/a.py", 3),
        ("src/b.py", 2),
    ]
    assert all(it.priority is P1 for it in found.findings)


def test_a_message_that_pretty_breaks_is_whole_again() -> None:
    assert read(PRETTY).findings[0].issue == read(MYPY).findings[0].issue


def test_a_last_line_that_is_not_ended_is_kept() -> None:
    assert (
        len(read('Found 1 error in 1 file\nsrc/a.py:3: error: Name "y" is not defined').findings)
        == 1
    )


def test_a_count_of_problems_alone_is_not_eslints() -> None:
    assert read("2 problems\n").format is not Report.ESLINT
