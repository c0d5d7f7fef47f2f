"""Reads a config text into settings, or says everything that is wrong with it, by line."""

import hashlib
import json
import sys
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache, partial
from importlib.metadata import entry_points
from pathlib import Path as File
from typing import Any, cast

from msgspec import Struct, ValidationError
from msgspec.structs import replace

from lockgate.adapters.config.layout import Complaint, Path, TooCostly, lines_of, nearest_line
from lockgate.adapters.config.schema import (
    Config,
    config_from,
    settings_from,
    spelled_out,
    written_problems,
)
from lockgate.core.config.checks import Problem, problems
from lockgate.core.config.settings import Settings
from lockgate.errors import BadConfig

MOST_SHOWN = 20
THIRD_PARTIES = "lockgate.harnesses"
FIX = "correct it and commit; `lockgate init --schema` prints every key and what is allowed"
LATER = ("needs",)  # keys that count only where they are written: earlier hashes stay


def load_config(text: str | None, *, origin: str) -> Settings:
    """The settings; BadConfig names every problem at once, in the order of the file.

    No text is the formula code-review without commands: its gates are there and none of them can
    pass, so nothing lands. `checks.problems` says what is missing.
    """
    if text is None:
        return _with_installed(settings_from(Config()))
    lines = lines_of(text)
    if isinstance(lines, TooCostly):
        raise _bad(origin, [f"line {lines.line}: {lines.says}"])
    raw = _parsed(text, origin)
    settings, found = _judged(raw)
    if settings is None or found:
        placed = sorted(found, key=lambda it: nearest_line(lines, it[0]))
        shown = [f"line {nearest_line(lines, at)}: {say()}" for at, say in placed[:MOST_SHOWN]]
        raise _bad(origin, shown, len(found))
    return settings


def config_hash(settings: Settings) -> str:
    """SHA-256 over what the settings say, so a comment or the order of keys does not change it."""
    written = replace(settings, installed=())
    canonical = json.dumps(_plain(written), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _with_installed(settings: Settings) -> Settings:
    """Third parties' agents, by the entry points they declare."""
    return replace(settings, installed=_third_parties(tuple(map(_as_it_is, sys.path))))


@lru_cache(maxsize=1)
def _third_parties(_: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    """Read again only where a package was installed or removed: it opens a file of each one."""
    return tuple(sorted({it.name for it in entry_points(group=THIRD_PARTIES)}))


def _as_it_is(folder: str) -> tuple[str, int]:
    """Its name, and when something was last put into it or taken out."""
    with suppress(OSError):
        return folder, File(folder).stat().st_mtime_ns
    return folder, 0


def json_schema() -> dict[str, Any]:
    from lockgate.adapters.config import complaints  # noqa: PLC0415 - pydantic is heavy

    return complaints.json_schema()


def _parsed(text: str, origin: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise _bad(origin, [f"it is not TOML: {error}"]) from None


def _judged(raw: dict[str, Any]) -> tuple[Settings | None, list[Complaint]]:
    """The settings where every value is allowed, and all that is wrong."""
    spelled = spelled_out(raw)
    try:
        config = config_from(spelled)
    except ValidationError as error:
        from lockgate.adapters.config.complaints import complaints  # noqa: PLC0415 - pydantic is heavy

        return None, complaints(spelled) or [((), partial(str, error))]
    settings = _with_installed(settings_from(config))
    found = (*written_problems(config), *problems(settings), *_when_problems(settings))
    return settings, [(_indexed(it.where, raw), partial(str, it.says)) for it in found]


def _when_problems(settings: Settings) -> list[Problem]:
    conditional = [gate for gate in settings.gates if gate.place.when]
    if not conditional:
        return []
    from lockgate.adapters.config.when import Unfit, compile_when  # noqa: PLC0415 - heavy

    found: list[Problem] = []
    for gate in conditional:
        compiled = compile_when(gate.place.when)
        if isinstance(compiled, Unfit):
            says = f"gate {gate.name} has a `when` that cannot be used: {compiled.says}"
            found.append(Problem(("gates", "list", gate.name, "when"), says))
    return found


def _indexed(where: tuple[str, ...], raw: Mapping[str, Any]) -> Path:
    """Names of entries become places in the file; a gate not listed is the formula's, so there."""
    path: Path = ()
    here: Any = raw
    for part in where:
        if isinstance(here, list):
            entries = cast("list[dict[str, Any]]", here)  # the schema has judged it
            places = [place for place, it in enumerate(entries) if it["name"] == part]
            path, here = (*path, places[-1] if places else part), None
        else:
            inner = cast("dict[str, Any]", here).get(part) if isinstance(here, dict) else None
            path, here = (*path, part), inner
    match path:
        case ("gates", "list", str(), *_):
            return ("gates", "formula")
        case _:
            return path


def _bad(origin: str, shown: list[str], total: int = 1) -> BadConfig:
    more = [f"and {total - len(shown)} more"] if total > len(shown) else []
    why = shown[0] if total == 1 else "\n  ".join((f"{total} problems", *shown, *more))
    return BadConfig(f"{origin} was not loaded", why=why, fix=FIX)


def _plain(value: object) -> object:
    """Structs keep their name, so that two kinds of gate with the same fields differ."""
    if isinstance(value, Struct):
        written = (it for it in value.__struct_fields__ if it not in LATER or getattr(value, it))
        named = {it: _plain(getattr(value, it)) for it in written}
        return {"": type(value).__name__, **named}
    if isinstance(value, tuple):
        return [_plain(it) for it in cast("tuple[object, ...]", value)]  # of any length
    return value
