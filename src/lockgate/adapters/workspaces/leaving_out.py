"""What stays out of a change: dependencies, caches, and what the set-up made.

A folder that base has files in is the project's own, whatever its name is.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from lockgate.adapters.workspaces.git import told

# As git's own files of patterns have them. A virtual environment or a cache of another name is
# known by its mark, `pyvenv.cfg` or `CACHEDIR.TAG`: see index.sh.
DEPENDENCIES = (
    *(".venv/", "__pycache__/", "*.dist-info/", "*.egg-info/", ".eggs/", ".tox/", ".nox/"),
    *(".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/"),
    *("node_modules/", "bower_components/", ".next/", ".nuxt/", ".svelte-kit/", ".turbo/"),
    *(".parcel-cache/", ".gradle/", ".terraform/"),
)
LOCKS = (
    *("*.lock", "*.lockb", "*.lockfile", "package-lock.json", "npm-shrinkwrap.json"),
    *("pnpm-lock.yaml", "packages.lock.json", "go.sum"),
)
MOST_SHOWN = 2000  # patterns that git compares with every file of a clone
_NAMES = "|".join(re.escape(it[:-1]).replace(r"\*", "[^/]*") for it in DEPENDENCIES)
_FOLDER = re.compile(f"(?:^|(?<=/))(?:{_NAMES})/")
_SPECIAL = re.compile(r"[\\*?\[\]]| (?=$)")

Entry = bytes  # `mode id stage<tab>path`, as `git ls-files --stage` has it


def dependencies(base: Path, commit: str) -> tuple[str, ...]:
    """The patterns of dependencies, without the folders of that name that the commit has."""
    what = "the folders of dependencies were not looked up"
    names = told(what, base, "ls-tree", "-r", "-z", "--name-only", commit)
    own = {folder for name in names.split("\0") for folder in _folders(name)}
    return (*DEPENDENCIES, *(f"!{it}/" for it in patterns_of(sorted(own))))


def patterns_of(paths: Iterable[str]) -> Iterator[str]:
    """One that matches each path and no other; none for a path that no pattern can name."""
    for path in paths:
        if "\n" not in path:
            yield "/" + _SPECIAL.sub(lambda found: f"\\{found[0]}", path)


def made_by_set_up(
    before: Iterable[Entry], after: Iterable[Entry], inputs: Sequence[str]
) -> frozenset[Entry]:
    """The files that only the set-up can have made; lock files and its inputs are like others."""
    known = {path_of(it) for it in before}
    return frozenset(
        it for it in after if path_of(it) not in known and not _is_ordinary(path_of(it), inputs)
    )


def path_of(entry: Entry) -> str:
    return os.fsdecode(entry.partition(b"\t")[2])


def entries_in(listed: bytes) -> frozenset[Entry]:
    return frozenset(it for it in listed.split(b"\0") if it)


def as_list(entries: Iterable[Entry]) -> bytes:
    """In the order in which `comm` wants them."""
    return b"".join(it + b"\0" for it in sorted(entries))


def _folders(name: str) -> Iterator[str]:
    """Those above a file that are called like dependencies."""
    for found in _FOLDER.finditer(name):
        yield name[: found.end() - 1]


def _is_ordinary(path: str, inputs: Sequence[str]) -> bool:
    name = PurePosixPath(path).name
    if any(fnmatchcase(name, lock) for lock in LOCKS):
        return True
    folders = (f"{it.rstrip('/')}/" for it in inputs)
    return any(fnmatchcase(path, it) for it in inputs) or path.startswith(tuple(folders))
