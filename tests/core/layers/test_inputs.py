"""Which edits make base's set-up layer unfit for a change."""

import pytest

from lockgate.core.layers.inputs import edited_inputs

PYPROJECT = '[project]\nname = "app"\ndependencies = ["a"]\n[tool.ruff]\nline-length = 100\n'
PACKAGE = '{"name": "app", "dependencies": {"a": "1"}, "scripts": {"test": "jest"}}'


def edited(base: dict[str, str], change: dict[str, str], *inputs: str) -> tuple[str, ...]:
    files = tuple(it for it in {**base, **change} if base.get(it) != change.get(it))
    return edited_inputs(files, inputs, base.get, change.get)


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("requirements.txt", "a\n", "a\nb\n"),
        ("requirements/test.txt", "a\n", "b\n"),
        ("web/package-lock.json", "{}", '{"a": 1}'),
        ("uv.lock", "1", "2"),
        ("go.mod", "module x", "module x\nrequire y v1"),
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace('"a"', '"b"')),
        ("pyproject.toml", PYPROJECT, f"{PYPROJECT}[tool.setuptools]\npackages = []\n"),
        ("pyproject.toml", "[project]\n", "[project]\nname = 'x'\n"),
        ("pyproject.toml", PYPROJECT, "not [ toml"),
        ("package.json", PACKAGE, PACKAGE.replace('"a"', '"b"')),
        ("package.json", PACKAGE, PACKAGE.replace('"test"', '"postinstall"')),
        ("package.json", '{"name": "a"}', '{"name": "b"}'),
        ("package.json", "[]", "[1]"),
    ],
)
def test_an_edit_of_what_is_installed_counts(path: str, before: str, after: str) -> None:
    assert edited({path: before}, {path: after}) == (path,)
    assert edited({path: before}, {path: after}, path) == (path,)


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("src/app.py", "1", "2"),
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace("100", "99")),
        ("package.json", PACKAGE, PACKAGE.replace("jest", "vitest")),
    ],
)
def test_another_edit_does_not(path: str, before: str, after: str) -> None:
    assert edited({path: before}, {path: after}) == ()


def test_only_the_named_inputs_count_where_some_are_named() -> None:
    base, change = {"uv.lock": "1", "deps/a": "1"}, {"uv.lock": "2", "deps/a": "2"}

    assert edited(base, change, "deps") == ("deps/a",)
    assert edited(base, change, "deps/*") == ("deps/a",)
    assert edited(base, change, "other") == ()


def test_a_package_that_moves_at_the_top_counts_where_python_is_installed() -> None:
    base, change = {"app/__init__.py": "", "a.py": ""}, {"src/app/__init__.py": "", "a.py": ""}

    assert edited(base, change, "pyproject.toml") == ("app/__init__.py", "src/app/__init__.py")
    assert edited(base, change) == ("app/__init__.py", "src/app/__init__.py")
    assert edited(base, change, "package.json") == ()
    assert edited(base, {"app/__init__.py": "edited", "a.py": ""}, "pyproject.toml") == ()
