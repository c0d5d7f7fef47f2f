"""Merging two commits of a bare repository, without a work tree."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lockgate.adapters.train.asking import failed, scripted
from lockgate.core.train.model import Commit, Tree
from lockgate.errors import Unavailable

MOST_FILES = 50  # that a conflict names


# In a repository, onto a commit, another: when that one was made, then how the two merge.
_MERGE = """\
export GIT_DIR="$1"
git rev-list --no-walk --no-commit-header --format=%ct "$3" &&
exec git merge-tree --write-tree -z --name-only --messages "$2" "$3"
"""


@dataclass(frozen=True, slots=True)
class Merged:
    """`made` is when the commit was made that was merged onto the other, in seconds."""

    tree: Tree
    made: int


@dataclass(frozen=True, slots=True)
class Clash:
    """In these files; in none of them where the two have no history in common."""

    files: tuple[str, ...] = ()


def merged(judge: Path, one: Commit, other: Commit) -> Merged | Clash:
    done = scripted(_MERGE, str(judge), one, other)
    made, _, said = done.out.partition("\n")
    if done.code == 0:
        return Merged(Tree(said.split("\0", 1)[0]), int(made))
    if done.code == 1 and "\0" in said:
        return Clash(_files(said, (f"~{one}", f"~{other}")))
    what = f"{other} was not merged onto {one}"
    if "unrelated histories" not in done.err:
        raise failed(what, done)
    if (judge / "shallow").exists():
        why, fix = "the history that they share is cut off here", "git fetch --unshallow"
        raise Unavailable(what, why=why, fix=fix)
    return Clash()


def _files(said: str, moved: tuple[str, ...]) -> tuple[str, ...]:
    """A file that git would move out of a directory's way counts under its own name."""
    found: set[str] = set()
    for name in (*_listed(said), *_told(said)):
        end = next((it for it in moved if it in name), "")
        found.add(name.partition(end)[0] if end else name)
    return tuple(sorted(found))[:MOST_FILES]


def _listed(said: str) -> list[str]:
    return said.split("\0\0", 1)[0].split("\0")[1:]


def _told(said: str) -> Iterator[str]:
    """Each message is the number of its paths, they themselves, its kind and its text."""
    fields = iter(said.partition("\0\0")[2].split("\0"))
    for count in fields:
        if not count.strip().isdigit():
            return
        paths = [next(fields, "") for _ in range(int(count))]
        kind, _ = next(fields, ""), next(fields, "")
        if kind.startswith("CONFLICT"):
            yield from paths
