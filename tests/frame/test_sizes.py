"""The size check: every limit is shown to break."""

from pathlib import Path

import pytest

from scripts import check_sizes
from scripts.check_sizes import judge, measure

SHORT = "def short() -> None: ...\n"


def function(lines: int, name: str = "long") -> str:
    return f"def {name}() -> None:\n" + "    pass\n" * (lines - 1)


def imports(count: int) -> str:
    return "".join(f"import lockgate.p{number}.m\n" for number in range(count))


def complaints(tmp_path: Path, text: str, name: str = "sample.py") -> list[str]:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return judge([measure(path, tmp_path)])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n" * 501, "has 501 lines, at most 500"),
        (function(46) + SHORT * 60, "long has 46 lines, at most 45"),
        (function(31) + SHORT * 32, "1 of 33 functions have more than 30 lines"),
        ("def f(a, b, c, d, e, f, g): ...\n", "takes 7 arguments, at most 6"),
        ("def f(a, b, /, c, d, *, e, **f): ...\ndef g(a, b, c, *d, e, f, g): ...", "g takes 7"),
        ("class A:\n    def f(self, a, b, c, d, e, f, g): ...\n", "takes 7 arguments"),
        (imports(9), "imports 9 of our packages, at most 8"),
    ],
)
def test_what_is_too_big_is_named(tmp_path: Path, text: str, words: str) -> None:
    found = complaints(tmp_path, text)

    assert len(found) == 1
    assert words in found[0]


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n" * 500,
        function(45) + SHORT * 40,
        function(31) + SHORT * 33,
        "class A:\n    def f(self, a, b, c, d, e, f): ...\n",
        imports(8) + "import os, sys, json\nfrom lockgate.p1.m import a, b, c, d\n",
    ],
)
def test_what_is_just_small_enough_passes(tmp_path: Path, text: str) -> None:
    assert complaints(tmp_path, text) == []


def test_the_file_that_wires_everything_may_import_everything(tmp_path: Path) -> None:
    assert complaints(tmp_path, imports(30), "bootstrap/app.py") == []


def test_modules_of_one_package_count_once_and_those_of_its_own_not_at_all(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / "near").mkdir(exist_ok=True)
        (tmp_path / "near" / f"m{number}.py").touch()
    names = ", ".join(f"m{number}" for number in range(20))

    text = f"from lockgate.near import {names}\n"

    assert complaints(tmp_path, text + imports(7), "far/sample.py") == []
    assert complaints(tmp_path, text + imports(8), "near/sample.py") == []
    assert "imports 9 of our packages" in complaints(tmp_path, text + imports(8), "far/b.py")[0]


def test_the_script_exits_1_and_prints_the_offender(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "big.py").write_text("x = 1\n" * 501, encoding="utf-8")

    code = check_sizes.main([str(tmp_path)])

    printed = capsys.readouterr()
    assert code == 1
    assert "501 in the core" in printed.out
    assert "core/big.py" in printed.err


def test_many_public_names_are_only_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "".join(f"name{number}: int = {number}\n" for number in range(13)) + "_own = 1\n"
    (tmp_path / "crowded.py").write_text(text, encoding="utf-8")

    code = check_sizes.main([str(tmp_path)])

    assert code == 0
    assert "crowded.py has 13 public names" in capsys.readouterr().out
