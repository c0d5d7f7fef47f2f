"""Reads what a repository's base commit shows of how it is built; nothing of it is run."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from lockgate.adapters.run import run
from lockgate.adapters.sandbox.services.serving import missing
from lockgate.core.config.settings import ServiceKind
from lockgate.core.discovery.found import Beside, Said, Tree, strings, table
from lockgate.core.discovery.packages import wanted

MAX_BYTES = 1_000_000
TOOLS = (
    "uv",
    "poetry",
    "pdm",
    "hatch",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "go",
    "cargo",
    "make",
    "just",
)
PYTHONS = tuple(f"python3.{n}" for n in range(8, 20))
SECONDS = 120.0
FILES = re.compile(r"\.github/workflows/[^/]+\.ya?ml|\.gitlab-ci\.ya?ml|\.travis\.ya?ml")
COMPOSE = re.compile(r"(?:docker-)?compose[^/]*\.ya?ml")
MOST_CHARACTERS = 200_000
MOST_FILES = 30
_NO_TESTS = re.compile(
    r"release|deploy|publish|docs?\b|stale|codeql|label|scorecard", re.IGNORECASE
)
_RESERVED = frozenset({"stages", "variables", "include", "image", "default", "workflow", "cache"})


def look_at(root: Path, commit: str | None) -> Tree:
    """The commit's files, or those that lie there where nothing is committed yet."""
    modes = _listed(root, commit) if commit else dict.fromkeys(_lying(root), "100644")
    paths = frozenset(it for it, mode in modes.items() if mode.startswith("100"))
    ci = sorted(it for it in paths if FILES.fullmatch(it))[:MOST_FILES]
    composed = sorted(it for it in paths if COMPOSE.fullmatch(it))[:MOST_FILES]
    names = (*wanted(paths), *ci, *composed, *(it for it in (".gitattributes",) if it in paths))
    texts = _at(root, commit, names) if commit else {it: _text(root / it) for it in names}
    return Tree(
        paths=paths,
        texts={name: text for name, text in texts.items() if name not in {*ci, *composed}},
        said=commands({name: texts.get(name, "") for name in ci}),
        tools=frozenset(
            (
                *(it for it in (*TOOLS, *PYTHONS) if shutil.which(it)),
                *(it for it in ServiceKind if not missing(it)),
            )
        ),
        beside=images({name: texts.get(name, "") for name in (*ci, *composed)}),
        version=_version(root, commit) if commit else "",
        modules=tuple(sorted(it for it, mode in modes.items() if mode == "160000")),
    )


def _listed(root: Path, commit: str) -> dict[str, str]:
    asked = ("ls-tree", "-r", "-z", "--full-tree", commit)
    told = run(("git", "-C", str(root), *asked), deadline=SECONDS)
    pairs = (it.partition("\t") for it in told.out.split("\0") if it)
    return {path: facts.partition(" ")[0] for facts, _, path in pairs}


def _version(root: Path, commit: str) -> str:
    """What the last tag says; a checkout of ours has no tags to ask."""
    asked = ("describe", "--tags", "--abbrev=0", commit)
    tag = run(("git", "-C", str(root), *asked), deadline=SECONDS).out.strip()
    found = re.search(r"\d+(?:\.\d+)+", tag)
    return found[0] if found else ""


def _lying(root: Path) -> Iterator[str]:
    asked = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    told = run(("git", "-C", str(root), *asked), deadline=SECONDS)
    yield from (it for it in told.out.split("\0") if it and (root / it).is_file())


def _at(root: Path, commit: str, names: Sequence[str]) -> Mapping[str, str]:
    """Their first million bytes; what git does not have is empty."""
    names = [it for it in names if "\n" not in it]
    with tempfile.NamedTemporaryFile(prefix="lockgate-") as asked:
        asked.write(b"".join(os.fsencode(f"{commit}:{it}\n") for it in names))
        asked.flush()
        git = ("git", "-C", str(root), "cat-file", "--batch")
        told = run(git, deadline=SECONDS, given=Path(asked.name))
    return dict(zip(names, _blobs(os.fsencode(told.out), len(names)), strict=False))


def _blobs(answer: bytes, count: int) -> Iterator[str]:
    place = 0
    for _ in range(count):
        line, _, _ = answer[place:].partition(b"\n")
        place += len(line) + 1
        size = line.rpartition(b" ")[2]
        if not size.isdigit():
            yield ""
            continue
        yield answer[place : place + min(int(size), MAX_BYTES)].decode(errors="replace")
        place += int(size) + 1


def _text(path: Path) -> str:
    """Empty where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode(errors="replace")
    except OSError:
        return ""


# The commands that CI definitions run: GitHub's workflows, GitLab's, Travis's file.


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


def images(texts: Mapping[str, str]) -> tuple[Beside, ...]:
    """What the jobs of CI definitions have beside them, then what compose files start."""
    found: list[Beside] = []
    for name in sorted(texts, key=lambda it: (bool(COMPOSE.fullmatch(it)), it)):
        parsed = _parsed(texts[name])
        if COMPOSE.fullmatch(name):
            services = table(parsed, "services").values()
            found += (Beside(it, name) for it in map(_image, services) if it)
        else:
            found += _beside_jobs(name, parsed)
    return tuple(dict.fromkeys(found))


def _beside_jobs(name: str, parsed: Mapping[str, Any]) -> Iterator[Beside]:
    github = name.startswith(".github/")
    jobs = table(parsed, "jobs") if github else parsed
    known = _variables(parsed.get("env" if github else "variables"))
    shared = () if github else _listed_services(parsed.get("services"))
    yield from (Beside(it, name, known) for it in shared)
    for job in jobs.values():
        one = table({"": job}, "")
        steps = one.get("steps")
        listed = cast("list[object]", steps) if isinstance(steps, list) else ()
        env = [_variables(table({"": step}, "").get("env")) for step in listed]
        own = _variables(one.get("env" if github else "variables"))
        variables = tuple(dict((*known, *own, *(it for each in env for it in each))).items())
        for image in _listed_services(one.get("services")):
            yield Beside(image, name, variables)


def _listed_services(value: object) -> tuple[str, ...]:
    """GitHub names each; GitLab lists them, by their names alone or in tables."""
    if isinstance(value, Mapping):
        each: list[object] = list(cast("Mapping[object, object]", value).values())
    else:
        each = cast("list[object]", value) if isinstance(value, list) else []
    return tuple(found for found in map(_image, each) if found)


def _image(value: object) -> str:
    if isinstance(value, str):
        return value
    known = table({"": value}, "")
    image = known.get("image") or known.get("name")
    return image if isinstance(image, str) else ""


def _variables(value: object) -> tuple[tuple[str, str], ...]:
    known = table({"": value}, "")
    return tuple((str(name), it) for name, it in known.items() if isinstance(it, str))
