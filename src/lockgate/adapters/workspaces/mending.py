"""Commits that git's own check refuses: made again by us where only they are at fault.

A tree or a file that is refused goes back to its author, unless it is history by now.
"""

import re
import secrets
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.workspaces.clones import Order
from lockgate.adapters.workspaces.files import remove
from lockgate.adapters.workspaces.git import Stamp, commit_made, git, told
from lockgate.adapters.workspaces.git_files import borrow, make_repository, share_shallow
from lockgate.core.model.commits import with_trailers
from lockgate.core.model.findings import Finding, Location, Priority

MOST = 20  # faults that are told
_FSCK = ("fsck", "--no-full", "--strict", "--no-dangling", "--no-reflogs", "--no-progress")
_FAULT = re.compile(r"^error in (\w+) ([0-9a-f]{40,64}): (.+)$", re.MULTILINE)
_SECONDS = re.compile(r"^committer .*> 0*([0-9]{1,10}) ", re.MULTILINE)
_HOW = "make it without that, then hand off again; git fsck --strict says what git refuses"


class Fault(Struct, frozen=True):
    """An object that git refuses, and git's words for why."""

    kind: str
    id: str
    why: str


class Mended(Struct, frozen=True):
    """A commit that can be taken in place of the other, and why."""

    commit: str
    why: str


@contextmanager
def room_for(order: Order) -> Generator[Path]:
    """A repository beside judge.git that sees what that has, and that goes with all in it."""
    repos = order.repos
    room = repos.directory / f".new-{secrets.token_hex(4)}"
    try:
        make_repository(room, order.base_commit, "", bare=True)
        borrow(room, str(repos.judge / "objects"))
        share_shallow(repos.base, room)
        yield room
    finally:
        remove(room)


def faults_in(room: Path, pack: Path) -> tuple[Fault, ...]:
    """Of the objects in the pack alone; nothing is let in anywhere."""
    told("the work was not looked at", room, "unpack-objects", "-q", given=pack)
    found = git(room, *_FSCK)
    return tuple(Fault(*it) for it in _FAULT.findall(f"{found.out}\n{found.err}"))


def findings_of(room: Path, commit: str, faults: Iterable[Fault]) -> tuple[Finding, ...]:
    """What is wrong with the files as they are in this commit."""
    listed = told("its files were not listed", room, "ls-tree", "-r", "-t", "-z", commit)
    tree = told("its tree was not found", room, "rev-parse", f"{commit}^{{tree}}").strip()
    paths = {tree: "", **dict(_named(it) for it in listed.split("\0")[:-1])}
    here = [it for it in faults if it.id in paths]
    return tuple(_finding(it, paths[it.id]) for it in here[:MOST])


def made_again(order: Order, room: Path, commit: str, faults: Sequence[Fault]) -> Mended:
    """Its tree and message on the newest commits before it that have no fault."""
    what = f"the work of task {order.name} was not taken"
    new = told(what, room, "rev-list", "--parents", commit, "--not", order.base_commit)
    above = {it.split()[0]: it.split()[1:] for it in new.splitlines()}
    refused = _tainted(above, faults)
    parents = tuple(dict.fromkeys(_sound(above, refused, commit))) or (order.base_commit,)
    tree = told(what, room, "rev-parse", f"{commit}^{{tree}}").strip()
    text = told(what, room, "cat-file", "commit", commit)
    head, _, message = text.partition("\n\n")
    since = _SECONDS.search(head)
    plain = message.replace("\0", "\ufffd").strip()
    by = order.by
    stamp = Stamp(by.author, by.committer, int(since[1]) if since else 0)
    made = commit_made(what, room, tree, parents, with_trailers(plain, by.trailers), stamp)
    listed = "; ".join(f"{it.kind} {it.id[:12]}: {it.why}" for it in faults[:MOST])
    return Mended(made, f"they cannot be taken as they are (git fsck): {listed}")


def packed(order: Order, room: Path, commit: str) -> Path:
    """What judge.git lacks of a commit in the room."""
    wanted, pack = room / "wanted", room / "mended"
    wanted.write_text(f"{commit}\n^{order.base_commit}\n", encoding="ascii")
    asked = ("pack-objects", "--quiet", "--revs", "--non-empty", str(pack))
    name = told("the work was not packed", room, *asked, given=wanted).strip()
    return pack.with_name(f"mended-{name}.pack")


def _tainted(above: Mapping[str, Sequence[str]], faults: Sequence[Fault]) -> frozenset[str]:
    """Faulty commits; all that are new, where a file or a tree of some of them is refused."""
    if any(it.kind != "commit" for it in faults):
        return frozenset(above)
    refused = {it.id for it in faults}
    for commit in reversed(tuple(above)):  # from the oldest, as git lists them
        if refused.intersection(above[commit]):
            refused.add(commit)
    return frozenset(refused)


def _sound(
    above: Mapping[str, Sequence[str]], refused: frozenset[str], commit: str
) -> Generator[str]:
    """The nearest commits before this one that are not refused."""
    left, seen = list(above.get(commit, ())), set[str]()
    while left:
        it = left.pop(0)
        if it in seen:
            continue
        seen.add(it)
        if it in refused:
            left = [*above.get(it, ()), *left]
        else:
            yield it


def _named(line: str) -> tuple[str, str]:
    """`mode type id<tab>path`, as id and path."""
    facts, _, path = line.partition("\t")
    return facts.split(" ")[2], path


def _finding(fault: Fault, path: str) -> Finding:
    where = path or "the top folder"
    issue = f"git refuses {where}: {fault.why}"
    return Finding(Priority.P0_CRITICAL, issue, Location(path) if path else None, _HOW)
