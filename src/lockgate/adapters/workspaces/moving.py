"""A checkout that nobody has touched, brought to another commit: only what differs is written."""

from dataclasses import dataclass, field
from pathlib import Path

from lockgate.adapters.sandbox import look
from lockgate.adapters.workspaces.clones import Order, clone_of_commit, copy_commit, finish
from lockgate.adapters.workspaces.hardened_git import git
from lockgate.adapters.workspaces.new_repository import ref_at, set_ref
from lockgate.adapters.workspaces.repositories import borrow, rules_of
from lockgate.adapters.workspaces.trees import discard, ready_mark


@dataclass(frozen=True, slots=True)
class Checkouts:
    """Those that stay from one judgement to the next: which commit each is of, and how it looked.

    Only whoever wrote them in this process knows of them; another writes them anew.
    """

    _known: dict[Path, tuple[str, bytes]] = field(default_factory=dict[Path, tuple[str, bytes]])

    def check_out(self, order: Order, place: Path, commit: str) -> None:
        before, seen = self._known.pop(place, ("", b""))
        moved = _seen(place) == seen and _moved(order, place, before, commit)
        if not moved or _attributes(_seen(place)) != _attributes(seen):
            discard(place)
            clone_of_commit(order, place, commit)
        self._known[place] = (commit, _seen(place))


def _seen(place: Path) -> bytes:
    """Nothing where nothing is."""
    try:
        return look(place)[1:]
    except OSError:
        return b""


def _attributes(seen: bytes) -> dict[bytes, bytes]:
    """Where they differ, so may files whose content does not."""
    names, facts = seen.split(b"\0")[::2], seen.split(b"\0")[1::2]
    found = zip(names, facts, strict=False)
    return {name: it for name, it in found if name.endswith(b"/.gitattributes")}


def _moved(order: Order, place: Path, before: str, commit: str) -> bool:
    """Whether it is now as it would be written anew, if the attributes are as they were."""
    git_dir, rules = place / ".git", rules_of(order.task)
    origin = f"refs/remotes/origin/{rules.base}"
    base = ref_at(git_dir, origin)
    if ready_mark(place).exists() or base is None:
        return False
    if (commit, rules.base_commit) == (before, base):
        return True
    set_ref(git_dir, origin, rules.base_commit)
    borrow(git_dir, str(order.repos.base / "objects"))
    copy_commit(order, git_dir, commit)
    if git(git_dir, "read-tree", "-m", "-u", before, commit, tree=place).code != 0:
        return False
    set_ref(git_dir, "HEAD", commit)
    finish(order, place)
    return True
