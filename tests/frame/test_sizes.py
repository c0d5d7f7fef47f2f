"""The size check: every limit is shown to break."""

from pathlib import Path

import pytest

from scripts import check_sizes
from scripts.check_sizes import judge, measure

SHORT = "def short() -> None: ...\n"


def function(lines: int, name: str = "long") -> str:
    return f"def {name}() -> None:\n" + "    pass\n" * (lines - 1)


def imports(count: int) -> str:
    return "".join(f"import lockgate.m{number}\n" for number in range(count))


def complaints(tmp_path: Path, text: str, name: str = "sample.py") -> list[str]:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return judge([measure(path, tmp_path)])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n" * 301, "has 301 lines, at most 300"),
        (function(46) + SHORT * 60, "long has 46 lines, at most 45"),
        (function(31) + SHORT * 32, "1 of 33 functions have more than 30 lines"),
        ("def f(a, b, c, d, e, f, g): ...\n", "takes 7 arguments, at most 6"),
        ("def f(a, b, /, c, d, *, e, **f): ...\ndef g(a, b, c, *d, e, f, g): ...", "g takes 7"),
        ("class A:\n    def f(self, a, b, c, d, e, f, g): ...\n", "takes 7 arguments"),
        (imports(11), "imports 11 of our modules, at most 10"),
    ],
)
def test_what_is_too_big_is_named(tmp_path: Path, text: str, words: str) -> None:
    found = complaints(tmp_path, text)

    assert len(found) == 1
    assert words in found[0]


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n" * 300,
        function(45) + SHORT * 40,
        function(31) + SHORT * 33,
        "class A:\n    def f(self, a, b, c, d, e, f): ...\n",
        imports(10) + "import os, sys, json\nfrom lockgate.m1 import a, b, c, d\n",
    ],
)
def test_what_is_just_small_enough_passes(tmp_path: Path, text: str) -> None:
    assert complaints(tmp_path, text) == []


def test_the_file_that_wires_everything_may_import_everything(tmp_path: Path) -> None:
    assert complaints(tmp_path, imports(30), "bootstrap/app.py") == []


def test_modules_imported_from_a_package_count_one_by_one(tmp_path: Path) -> None:
    names = [f"m{number}" for number in range(11)]
    for name in names:
        (tmp_path / f"{name}.py").touch()

    found = complaints(tmp_path, f"from lockgate import {', '.join(names)}\n")

    assert "imports 11 of our modules" in found[0]


def test_the_script_exits_1_and_prints_the_offender(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "big.py").write_text("x = 1\n" * 301, encoding="utf-8")

    code = check_sizes.main([str(tmp_path)])

    printed = capsys.readouterr()
    assert code == 1
    assert "301 in the core" in printed.out
    assert "core/big.py" in printed.err


def test_many_public_names_are_only_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "".join(f"name{number}: int = {number}\n" for number in range(13)) + "_own = 1\n"
    (tmp_path / "crowded.py").write_text(text, encoding="utf-8")

    code = check_sizes.main([str(tmp_path)])

    assert code == 0
    assert "crowded.py has 13 public names" in capsys.readouterr().out
