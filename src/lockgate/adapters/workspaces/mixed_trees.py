"""Trees that are nobody's commit: a clone with files of another commit and files of ours in it.

Files are put into git's index and git writes them out, so that no link is ever followed.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lockgate.adapters.workspaces.changes import blobs_of, fork_of, texts_of
from lockgate.adapters.workspaces.clones import Order, build, copy_commit
from lockgate.adapters.workspaces.git import told
from lockgate.adapters.workspaces.git_files import set_ref
from lockgate.adapters.workspaces.repositories import repositories_of, rules_of, up_to_date
from lockgate.errors import Unavailable
from lockgate.ports import Candidate, Project
from lockgate.ports.differential import Blend

_PLAIN = "100644"
_EXECUTABLE = "100755"


class GitTrees:
    """The Trees port over the repositories of one state directory."""

    def __init__(self, home: Path, *, sandboxed: bool = True) -> None:
        self.home = home
        self.sandboxed = sandboxed

    def blend(self, candidate: Candidate, it: Blend, directory: Path) -> None:
        """Who asks for it has cleared the place."""
        repos = up_to_date(self.home, candidate)
        enclosed = self.sandboxed and rules_of(candidate).sandboxed
        order = Order(candidate=candidate, repos=repos, sandboxed=enclosed)
        try:
            clone_of_blend(order, directory, it)
        except OSError as error:
            fix = "see that the disk has room, then try again"
            raise Unavailable(order.what, why=str(error), fix=fix) from error

    def fork(self, candidate: Candidate) -> str:
        return fork_of(up_to_date(self.home, candidate), candidate)

    def blobs(self, project: Project, commit: str) -> Mapping[str, str]:
        return blobs_of(repositories_of(self.home, project).judge, commit)

    def texts(self, project: Project, blobs: Sequence[str]) -> Mapping[str, str]:
        return texts_of(repositories_of(self.home, project), blobs)


def clone_of_blend(order: Order, place: Path, it: Blend) -> None:
    """On no branch, at a commit of its own on top of the one that it starts as."""

    def fill(new: Path) -> None:
        git_dir = new / ".git"
        for commit in dict.fromkeys((it.commit, it.other)):
            copy_commit(order, git_dir, commit)
        told(order.what, git_dir, "read-tree", it.commit)
        _lay(order, git_dir, it)
        tree = told(order.what, git_dir, "write-tree").strip()
        made = told(order.what, git_dir, "commit-tree", "-m", "lockgate", "-p", it.commit, tree)
        set_ref(git_dir, "HEAD", made.strip())
        told(order.what, git_dir, "read-tree", "--reset", "-u", "HEAD", tree=new)

    build(order, place, fill)


def _lay(order: Order, git_dir: Path, it: Blend) -> None:
    """A file that goes where a directory was replaces it, and the other way round."""
    entries = git_dir / "lockgate-entries"
    lines = tuple(_entries(order, git_dir, it))
    entries.write_bytes(b"".join(os.fsencode(line) + b"\0" for line in lines))
    told(order.what, git_dir, "update-index", "-z", "--index-info", given=entries)
    entries.unlink()


def _entries(order: Order, git_dir: Path, it: Blend) -> Iterator[str]:
    start, other = blobs_of(git_dir, it.commit), blobs_of(git_dir, it.other)
    for path in it.mixed.drop:
        yield f"0 {'0' * len(it.commit)}\t{path}"
    for path in it.mixed.take:
        yield f"{other[path]}\t{path}"
    there = {**start, **{path: other[path] for path in it.mixed.take}}
    for path, blob in _planted(order, git_dir, it).items():
        was = there.get(path, "")
        yield f"{_EXECUTABLE if was.startswith(_EXECUTABLE) else _PLAIN} {blob}\t{path}"


def _planted(order: Order, git_dir: Path, it: Blend) -> dict[str, str]:
    """The ids of our files' blobs, by path."""
    if not it.planted:
        return {}
    names = git_dir / "lockgate-names"
    places = [git_dir / f"lockgate-{number}" for number in range(len(it.planted))]
    for place, text in zip(places, it.planted.values(), strict=True):
        place.write_bytes(text.encode("utf-8", "surrogateescape"))
    names.write_bytes(b"".join(os.fsencode(place) + b"\n" for place in places))
    asked = ("hash-object", "-w", "--no-filters", "--stdin-paths")
    said = told(order.what, git_dir, *asked, given=names)
    for file in (names, *places):
        file.unlink()
    return dict(zip(it.planted, said.split(), strict=True))
