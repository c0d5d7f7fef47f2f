"""The size check: every limit is shown to break."""

from pathlib import Path

import pytest

from scripts import check_sizes
from scripts.check_sizes import STANDS_ALONE, judge, judge_tree, measure, report

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
    text = "".join(f"name{number}: int = {number}\n" for number in range(13)) + "_own = 1\n" * 13
    (tmp_path / "crowded.py").write_text(text, encoding="utf-8")

    code = check_sizes.main([str(tmp_path)])

    assert code == 0
    assert "crowded.py has 13 public names" in capsys.readouterr().out


# --- the modules together -----------------------------------------------------------------------

FULL = "x = 1\n" * 80


def tree(root: Path, **files: str) -> list[check_sizes.Module]:
    """`a__b` is the module b of the package a, `a__INIT` its __init__."""
    for name, text in files.items():
        parts = ("__init__" if it == "INIT" else it for it in name.split("__"))
        path = root.joinpath(*parts).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [measure(path, root) for path in sorted(root.rglob("*.py"))]


@pytest.mark.unmeasured
def test_a_package_of_more_than_20_modules_is_named(tmp_path: Path) -> None:
    for number in range(20):
        tree(tmp_path, **{f"a__m{number}": FULL})

    assert judge_tree(tree(tmp_path, a__INIT="")) == []
    assert judge_tree(tree(tmp_path, a__more=FULL)) == [
        "package lockgate.a has 21 modules, at most 20"
    ]


def test_modules_that_are_large_on_the_whole_are_named(tmp_path: Path) -> None:
    found = judge_tree(tree(tmp_path, a="x = 1\n" * 201, b="x = 1\n" * 201, c=FULL))

    assert found == ["half of the modules have more than 201 lines, at most 200"]


def test_a_module_of_less_than_25_lines_is_named(tmp_path: Path) -> None:
    found = judge_tree(tree(tmp_path, a="x = 1\n" * 24, b="x = 1\n" * 25))

    assert found == ["a.py has 24 lines, at least 25: put it where it is used"]


def test_a_small_module_with_one_importer_is_named(tmp_path: Path) -> None:
    small = "x = 1\n" * 59

    found = judge_tree(tree(tmp_path, a__small=small, b=f"from lockgate.a import small\n{FULL}"))

    assert len(found) == 1
    assert "a/small.py is small and only lockgate.b imports it" in found[0]


@pytest.mark.parametrize(
    "more",
    [
        {"c": f"import lockgate.a.small\n{FULL}"},  # a second importer
        {"c": f'TABLE = {{"it": "lockgate.a.small:run"}}\n{FULL}'},  # a table that loads it
        {"a__small": "x = 1\n" * 60},  # not so small
    ],
    ids=["two importers", "a table", "60 lines"],
)
def test_a_small_module_of_two_or_of_a_table_stands_alone(
    tmp_path: Path, more: dict[str, str]
) -> None:
    files = {"a__small": "x = 1\n" * 59, "b": f"from lockgate.a import small\n{FULL}", **more}

    assert judge_tree(tree(tmp_path, **files)) == []


def test_a_name_that_a_package_passes_on_counts_for_its_module(tmp_path: Path) -> None:
    init = "from lockgate.a.small import x\n"
    use = f"from lockgate.a import x\n{FULL}"

    one = judge_tree(tree(tmp_path, a__INIT=init, a__small="x = 1\n" * 59, b=use))
    two = judge_tree(tree(tmp_path, c=use))

    assert len(one) == 1
    assert two == []


def test_modules_and_packages_that_import_each_other_are_named(tmp_path: Path) -> None:
    modules = tree(
        tmp_path,
        a__one=f"import lockgate.a.two\n{FULL}",
        a__two=f"def later():\n    import lockgate.a.one\n{FULL}",
        b__one=f"import lockgate.c.one\n{FULL}",
        b__two=FULL,
        c__one=FULL,
        c__two=f"import lockgate.b.two\n{FULL}",
    )

    assert sorted(judge_tree(modules)) == [
        "these import each other: lockgate.a.one, lockgate.a.two",
        "these import each other: lockgate.b, lockgate.c",
    ]


def test_what_stands_alone_is_there_and_has_a_reason() -> None:
    root = Path(check_sizes.__file__).parents[1] / "src" / "lockgate"

    assert [it for it in STANDS_ALONE if not (root / it).is_file()] == []
    assert all(STANDS_ALONE.values())


def test_a_module_that_needs_no_permission_to_stand_alone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_sizes, "STANDS_ALONE", {"a.py": "once it was small"})

    assert judge_tree(tree(tmp_path, a=FULL)) == ["a.py stands in STANDS_ALONE for no reason"]


def test_the_report_has_the_figures_of_the_house(tmp_path: Path) -> None:
    modules = tree(tmp_path, a__INIT="", a__one=FULL, b="x = 1\n" * 40 + "import lockgate.a.one\n")

    assert report(modules)[2] == (
        "without __init__: 2 modules, median 60.5, longest 80; 2 packages, the largest lockgate.a "
        "with 1; one importer: 1 (50%); under 50 lines: 1, under 25: 0; "
        "fan-out: at most 1 packages"
    )
