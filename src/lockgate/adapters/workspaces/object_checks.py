"""The new objects of a change are checked: for what git refuses, and for secrets.

A commit that git's own check refuses is made again by us where only the commit is at fault. A tree
or a file that is refused goes back to its author, unless it is history by now; so does a secret.
"""

import os
import re
import secrets
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from lockgate.adapters.run import run
from lockgate.adapters.workspaces.clones import Order
from lockgate.adapters.workspaces.files import remove
from lockgate.adapters.workspaces.git import (
    ENVIRONMENT,
    HARDENED,
    LONG,
    Stamp,
    commit_made,
    git,
    told,
    words_of,
)
from lockgate.adapters.workspaces.git_files import borrow, make_repository, share_shallow
from lockgate.adapters.workspaces.reading import not_taken
from lockgate.core.model.commits import with_trailers
from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.secrets import Secret, forms_of, hiding

MOST = 20  # faults, or leaks, that are told
_FSCK = ("fsck", "--no-full", "--strict", "--no-dangling", "--no-reflogs", "--no-progress")
_FAULT = re.compile(r"^error in (\w+) ([0-9a-f]{40,64}): (.+)$", re.MULTILINE)
_SECONDS = re.compile(r"^committer .*> 0*([0-9]{1,10}) ", re.MULTILINE)
_HOW = "make it without that, then hand off again; git fsck --strict says what git refuses"
CHUNK = 4 * 1024 * 1024  # bytes of an object that are looked at together
_TAKE_OUT = (
    "take the value out and read it from the environment where it is needed; "
    "then hand off again, and tell the user that it was written down"
)
_BREAKS = b"\r\n"


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


# Secrets that a change would carry away: every new object of it is looked through.


class Leaks(Struct, frozen=True):
    """What its author must take out, and what only commits before the last one have."""

    findings: tuple[Finding, ...] = ()
    history: tuple[Fault, ...] = ()


class Hit(Struct, frozen=True):
    """A form of a secret in an object, and the line that it begins on."""

    id: str
    kind: str
    form: bytes
    line: int | None


def leaks_in(
    order: Order, room: Path, commit: str, listed: str, secrets: Sequence[Secret]
) -> Leaks:
    """Of the objects that git has listed as new; a value that base has already is no secret."""
    forms = {form: it.name for it in secrets for form in forms_of(it)}
    if not forms or not listed:
        return Leaks()
    paths = dict(_id_and_path(line) for line in listed.splitlines())
    hits = _new(order, room, tuple(_hits(order, room, tuple(paths), tuple(forms))))
    if not hits:
        return Leaks()
    asked = ("ls-tree", "-r", "-t", "--format=%(objectname)", commit)
    kept = told("its files were not listed", room, *asked).split()
    tree = told("its tree was not found", room, "rev-parse", f"{commit}^{{tree}}").strip()
    here = {commit, tree, *kept}
    hide = hiding(secrets)
    findings = [_leak(it, forms[it.form], hide(paths[it.id])) for it in hits if it.id in here]
    before = [Fault("history", it.id, _told(forms[it.form])) for it in hits if it.id not in here]
    return Leaks(tuple(findings[:MOST]), tuple(before))


def _hits(order: Order, room: Path, ids: Sequence[str], forms: Sequence[bytes]) -> Iterator[Hit]:
    """The objects by way of a file, each a piece at a time, because they may be of any size."""
    wanted, answer = room / "wanted", room / "told"
    wanted.write_text("".join(f"{id}\n" for id in ids), encoding="ascii")
    shell = ("sh", "-c", 'exec "$@" >"$0"', str(answer))
    asked = (*shell, *HARDENED, f"--git-dir={room}", "cat-file", "--batch", "--buffer")
    done = run(asked, deadline=LONG, environment=ENVIRONMENT, given=wanted)
    if done.code != 0:
        raise not_taken(order, words_of(done))
    with answer.open("rb") as file:
        while head := file.readline().decode("ascii", "replace").split():
            id, kind, size = head
            yield from _looked_through(file, int(size), (id, kind), forms)
            file.read(1)
    answer.unlink()


def _looked_through(
    file: BinaryIO, size: int, what: tuple[str, str], forms: Sequence[bytes]
) -> Iterator[Hit]:
    """Each form once an object; pieces overlap, so that none is cut. Line breaks hide nothing."""
    id, kind = what
    overlap = 2 * max(len(it) for it in forms)
    left, before, lines, found = size, b"", 1, set[bytes]()
    while left:
        piece = before + file.read(min(CHUNK, left))
        left -= len(piece) - len(before)
        joined = piece.translate(None, _BREAKS)
        for form in forms:
            if form not in found and (form in piece or form in joined):
                found.add(form)
                at = piece.find(form)
                line = lines + piece.count(b"\n", 0, at) if at >= 0 else None
                yield Hit(id, kind, form, line)
        before = piece[-overlap:] if left else b""
        lines += piece.count(b"\n", 0, len(piece) - len(before))


def _new(order: Order, room: Path, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Without the forms that base has; they are handed to git in a file that only we can read."""
    on_base = {form: _is_on_base(order, room, form) for form in {it.form for it in hits}}
    return tuple(it for it in hits if not on_base[it.form])


def _is_on_base(order: Order, room: Path, form: bytes) -> bool:
    patterns = room / "patterns"
    handle = os.open(patterns, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(form + b"\n")
    asked = ("grep", "--quiet", "--fixed-strings", "--text", "-f", str(patterns))
    found = git(room, *asked, order.base_commit)
    patterns.unlink()
    return found.code == 0


def _id_and_path(line: str) -> tuple[str, str]:
    """`id path`, or `id` alone of a commit and a top folder."""
    id, _, path = line.partition(" ")
    return id, path


def _told(name: str) -> str:
    return f"it contains the value of {name}, a secret that was handed out"


def _leak(hit: Hit, name: str, path: str) -> Finding:
    kinds: Mapping[str, str] = {"commit": "the message of the last commit", "tree": "a file's name"}
    issue = f"{kinds.get(hit.kind, path)}: {_told(name)}"
    line = hit.line if hit.kind == "blob" else None
    return Finding(Priority.P0_CRITICAL, issue, Location(path, line) if path else None, _TAKE_OUT)
