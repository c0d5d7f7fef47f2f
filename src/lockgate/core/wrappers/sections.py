"""The parts of settings files that decide how tests are run: read, and put into another text."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import cast

FILE = 300_000
DOTS = 50  # in one line; more take tomllib too long
UNREAD = "(it cannot be read)"

_HEADER = re.compile(r"""\s{0,20}\[{1,2}\s*([\w.:\-"' ]{1,200}?)\s*\]{1,2}\s*(?:[#;].*)?""")
_KEY = re.compile(r"([\w.\-]{1,100})\s*[=:]\s*(.*)")
# Keys of pytest that say nothing about which tests run or how they end.
_HARMLESS = re.compile(
    r"(?:markers|minversion|required_plugins|log_\w+|junit_\w+|console_\w+|cache_dir)\Z"
)


def ini_part(text: str, names: tuple[str, ...]) -> str:
    """Every key of the sections with such names; empty where there is none."""
    found: dict[str, str] = {}
    for name, lines in _sections(text):
        if _named(name, names):
            key = ""
            found.setdefault(name, "")
            for line in lines:
                stripped = line.split(" #")[0].split(" ;")[0].strip()
                given = None if line[:1].isspace() else _KEY.match(stripped)
                key = f"{name} {given[1]}" if given else key
                if stripped and not stripped.startswith(("#", ";")):
                    said = given[2] if given else stripped
                    found[key] = f"{found.get(key, '')} {said}".strip()
    acting = {key: it for key, it in found.items() if not _HARMLESS.match(key.rpartition(" ")[2])}
    return json.dumps(acting, sort_keys=True) if found else ""


def toml_part(text: str, *keys: str) -> str:
    """One table, without what is harmless; empty where there is none."""
    if len(text) > FILE or any(it.count(".") > DOTS for it in text.splitlines() if "=" in it):
        return UNREAD
    try:
        found: object = tomllib.loads(text)
    except (ValueError, RecursionError):
        return UNREAD
    for key in keys:
        found = cast("dict[str, object]", found).get(key) if isinstance(found, dict) else None
    return json.dumps(_acting(found), sort_keys=True, default=str) if found is not None else ""


def with_sections(text: str, other: str, names: tuple[str, ...]) -> str:
    """A text whose sections with such names are those of the other one."""
    kept = [line for name, lines in _headed(text) if not _named(name, names) for line in lines]
    put = [line for name, lines in _headed(other) if _named(name, names) for line in lines]
    return "\n".join((*kept, *put)).rstrip("\n") + "\n"


def package_of(text: str) -> Mapping[str, object]:
    """A package.json; empty where it is none."""
    try:
        found: object = json.loads(text) if len(text) <= FILE else None
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def scripts_of(package: Mapping[str, object]) -> Mapping[str, str]:
    found = package.get("scripts")
    given = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    return {key: it for key, it in given.items() if isinstance(it, str)}


def with_keys(text: str, other: str, scripts: frozenset[str], keys: frozenset[str]) -> str:
    """A package.json whose scripts and keys of these names are those of the other one."""
    package, base = dict(package_of(text)), package_of(other)
    mine = {key: it for key, it in scripts_of(package).items() if key not in scripts}
    theirs = {key: it for key, it in scripts_of(base).items() if key in scripts}
    rest = {key: it for key, it in package.items() if key not in keys}
    rest |= {key: it for key, it in base.items() if key in keys}
    return json.dumps({**rest, "scripts": {**mine, **theirs}}, indent=2) + "\n"


def _acting(value: object, depth: int = 3) -> object:
    if not depth:
        return value
    if isinstance(value, dict):
        table = cast("dict[str, object]", value).items()
        return {key: _acting(it, depth - 1) for key, it in table if not _HARMLESS.match(key)}
    return value


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    for name, lines in _headed(text):
        yield name, lines[1:] if name else lines


def _headed(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each section with its header's line; what is before the first has no name."""
    name, lines = "", list[str]()
    for line in text.splitlines():
        header = _HEADER.fullmatch(line) if line.lstrip().startswith("[") else None
        if header:
            yield name, lines
            name, lines = header[1].replace('"', "").replace("'", "").replace(" ", ""), [line]
        else:
            lines.append(line)
    yield name, lines


def _named(name: str, names: tuple[str, ...]) -> bool:
    return any(name == it or name.startswith((f"{it}:", f"{it}.")) for it in names)
