"""Reads what a repository's base commit shows of how it is built; nothing of it is run."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lockgate.adapters.config.ci_definitions import FILES, MOST_FILES, commands
from lockgate.adapters.run import run
from lockgate.core.discovery.found import Tree
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


def look_at(root: Path, commit: str | None) -> Tree:
    """The commit's files, or those that lie there where nothing is committed yet."""
    modes = _listed(root, commit) if commit else dict.fromkeys(_lying(root), "100644")
    paths = frozenset(it for it, mode in modes.items() if mode.startswith("100"))
    ci = sorted(it for it in paths if FILES.fullmatch(it))[:MOST_FILES]
    names = (*wanted(paths), *ci, *(it for it in (".gitattributes",) if it in paths))
    texts = _at(root, commit, names) if commit else {it: _text(root / it) for it in names}
    return Tree(
        paths=paths,
        texts={name: text for name, text in texts.items() if name not in ci},
        said=commands({name: texts.get(name, "") for name in ci}),
        tools=frozenset(it for it in (*TOOLS, *PYTHONS) if shutil.which(it)),
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
