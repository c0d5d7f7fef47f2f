"""The commands that CI definitions run: GitHub's workflows, GitLab's, Travis's file."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from lockgate.core.discovery.found import Said, strings, table

FILES = re.compile(r"\.github/workflows/[^/]+\.ya?ml|\.gitlab-ci\.ya?ml|\.travis\.ya?ml")
MOST_CHARACTERS = 200_000
MOST_FILES = 30
_NO_TESTS = re.compile(
    r"release|deploy|publish|docs?\b|stale|codeql|label|scorecard", re.IGNORECASE
)
_RESERVED = frozenset({"stages", "variables", "include", "image", "default", "workflow", "cache"})


def commands(texts: Mapping[str, str]) -> tuple[Said, ...]:
    """In order: files and jobs that are named after tests first, those of releases not at all."""
    found = [
        (name, job, it)
        for name in sorted(texts)
        if FILES.fullmatch(name) and not _NO_TESTS.search(name.rpartition("/")[2])
        for job, it in _said(name, _parsed(texts[name]))
        if not _NO_TESTS.search(job)
    ]
    found.sort(key=lambda it: ("test" not in it[1].lower(), "test" not in it[0].lower()))
    return tuple(dict.fromkeys(it for _, _, it in found))


def _parsed(text: str) -> Mapping[str, Any]:
    import yaml  # noqa: PLC0415 - slow to load, and only `init` needs it here

    if len(text) > MOST_CHARACTERS:
        return {}
    try:
        return table({"": yaml.load(text, Loader=yaml.CSafeLoader)}, "")
    except (yaml.YAMLError, ValueError, RecursionError, AttributeError):
        return {}


def _said(name: str, parsed: Mapping[str, Any]) -> Iterator[tuple[str, Said]]:
    if name.startswith(".github/"):
        yield from _github(name, parsed)
    elif name.startswith(".travis"):
        yield from (("test", Said(it, name)) for it in _lines(parsed.get("script")))
    else:
        for job, it in parsed.items():
            script = table({"": it}, "").get("script") if job not in _RESERVED else None
            yield from ((str(job), Said(line, name)) for line in _lines(script))


def _github(name: str, parsed: Mapping[str, Any]) -> Iterator[tuple[str, Said]]:
    for job, it in table(parsed, "jobs").items():
        known = table({"": it}, "")
        usual = table(known, "defaults", "run").get("working-directory", "")
        steps = known.get("steps")
        for step in cast("list[object]", steps) if isinstance(steps, list) else ():
            one = table({"": step}, "")
            run, where = one.get("run"), one.get("working-directory", usual)
            if isinstance(run, str):
                folder = str(where).strip("/").removeprefix("./")
                yield str(job), Said(run.strip(), name, folder)


def _lines(value: object) -> tuple[str, ...]:
    return strings(value)
