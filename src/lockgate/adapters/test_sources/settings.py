"""The part of settings files that decides how tests are run."""

import configparser
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import cast

from lockgate.core.differential.table import HarnessChange

FILE = 200_000
DOTS = 50  # in one line; more take tomllib too long
VALUE = 120

# Keys that say nothing about which tests run or how they end.
_HARMLESS = re.compile(r"markers|minversion|required_plugins|log_|junit_|console_|cache_dir")
_SCRIPTS = re.compile(r"\A(?:pre|post)?test\b")
_RUNNERS = ("jest", "vitest", "mocha", "ava", "c8", "nyc", "babel")
_SECTIONS = {
    "tox.ini": ("pytest", "testenv"),
    "setup.cfg": ("tool:pytest",),
    "pytest.ini": ("pytest",),
    ".pytest.ini": ("pytest",),
}

Values = Mapping[str, str]


def changed_settings(path: str, before: str, after: str) -> Iterator[HarnessChange]:
    old, new = _acting(path, before), _acting(path, after)
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key) and not _HARMLESS.match(key):
            value = new.get(key)
            how = "no longer sets" if value is None else "sets"
            said = "" if value is None else f" = {' '.join(value.split())[:VALUE]}"
            yield HarnessChange(path, f"{path} {how} {key}{said}", _line(after, key))


def _acting(path: str, text: str) -> Values:
    name = path.rpartition("/")[2]
    if not text:
        return {}
    try:
        if len(text) > FILE:
            return {"what cannot be read": text}
        if name.endswith(".toml"):
            return _toml(name, text)
        return _package(text) if name == "package.json" else _ini(name, text)
    except (ValueError, RecursionError, configparser.Error):
        return {"what cannot be read": text}


def _toml(name: str, text: str) -> Values:
    if any(line.count(".") > DOTS and "=" in line for line in text.splitlines()):
        return {"what cannot be read": text}
    found = cast("object", tomllib.loads(text))
    table = (
        _within(found, "tool", "pytest") if name == "pyproject.toml" else _within(found, "pytest")
    )
    table = {**table, **_within(table, "ini_options")}
    return {key: json.dumps(it, default=str) for key, it in table.items() if key != "ini_options"}


def _package(text: str) -> Values:
    found = cast("object", json.loads(text))
    scripts = _within(found, "scripts")
    acting = {key: it for key, it in scripts.items() if _SCRIPTS.match(key)}
    runners = {key: it for key, it in _within(found).items() if key in _RUNNERS}
    return {key: json.dumps(it) for key, it in {**acting, **runners}.items()}


def _ini(name: str, text: str) -> Values:
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    parser.read_string(text)
    return {
        key: value or ""
        for section in parser.sections()
        if section.startswith(_SECTIONS.get(name, ()))
        for key, value in parser.items(section)
    }


def _within(value: object, *keys: str) -> dict[str, object]:
    for key in keys:
        value = cast("dict[str, object]", value).get(key) if isinstance(value, dict) else None
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _line(text: str, key: str) -> int | None:
    lines = text.splitlines()
    return next((at for at, it in enumerate(lines, 1) if key in it), None)
