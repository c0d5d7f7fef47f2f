"""Secrets that a change would carry away: every new object of it is looked through."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from lockgate.adapters.run import run
from lockgate.adapters.workspaces.clones import Order
from lockgate.adapters.workspaces.git import ENVIRONMENT, HARDENED, LONG, git, told, words_of
from lockgate.adapters.workspaces.mending import Fault
from lockgate.adapters.workspaces.scratch import not_taken
from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.secrets import Secret, forms_of, hiding

CHUNK = 4 * 1024 * 1024  # bytes of an object that are looked at together
MOST = 20  # findings that are told
_HOW = (
    "take the value out and read it from the environment where it is needed; "
    "then hand off again, and tell the user that it was written down"
)
_BREAKS = b"\r\n"


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
    paths = dict(_named(line) for line in listed.splitlines())
    hits = _new(order, room, tuple(_hits(order, room, tuple(paths), tuple(forms))))
    if not hits:
        return Leaks()
    asked = ("ls-tree", "-r", "-t", "--format=%(objectname)", commit)
    kept = told("its files were not listed", room, *asked).split()
    tree = told("its tree was not found", room, "rev-parse", f"{commit}^{{tree}}").strip()
    here = {commit, tree, *kept}
    hide = hiding(secrets)
    findings = [_finding(it, forms[it.form], hide(paths[it.id])) for it in hits if it.id in here]
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


def _named(line: str) -> tuple[str, str]:
    """`id path`, or `id` alone of a commit and a top folder."""
    id, _, path = line.partition(" ")
    return id, path


def _told(name: str) -> str:
    return f"it contains the value of {name}, a secret that was handed out"


def _finding(hit: Hit, name: str, path: str) -> Finding:
    kinds: Mapping[str, str] = {"commit": "the message of the last commit", "tree": "a file's name"}
    issue = f"{kinds.get(hit.kind, path)}: {_told(name)}"
    line = hit.line if hit.kind == "blob" else None
    return Finding(Priority.P0_CRITICAL, issue, Location(path, line) if path else None, _HOW)
