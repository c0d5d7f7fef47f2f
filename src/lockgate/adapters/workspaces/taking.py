"""An agent's work into judge.git: read in a sandbox, carried over as a pack, checked by fsck."""

import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lockgate.adapters.run import Finished
from lockgate.adapters.workspaces import mending
from lockgate.adapters.workspaces.clones import OURS, Order
from lockgate.adapters.workspaces.furnishing import copied_into
from lockgate.adapters.workspaces.hardened_git import (
    COMMIT,
    commit_at,
    git,
    told,
    words_of,
)
from lockgate.adapters.workspaces.reading import opened, read_clone
from lockgate.adapters.workspaces.repositories import (
    keep,
    last_change,
    share_shallow,
    writing,
)
from lockgate.adapters.workspaces.scratch import not_taken, scratch_for
from lockgate.ports import Unfit


@dataclass(frozen=True, slots=True)
class Taken:
    """The commit that stands for the work; `mended` says what was wrong with the author's own."""

    commit: str
    mended: str = ""


def take_work(order: Order, place: Path, deadline: float) -> Taken | Unfit:
    """The commit that now stands for all work in the clone; what a lost clone had is not lost."""
    last = last_change(order.repos, order.task.id)
    if not place.is_dir() or place.is_symlink():
        return Taken(last or order.base_commit)
    with scratch_for(order, place, last) as scratch:
        script = ("take.sh", last or "", *OURS, *copied_into(place))
        read_clone(order, place, scratch, script, deadline)
        return _carry_over(order, scratch / "out", last)


def _carry_over(order: Order, out: Path, last: str | None) -> Taken | Unfit:
    """Into judge.git, unless it is there: what is broken or not whole stays outside."""
    repos, commit, unread = order.repos, _named(out), _line(out / "unread")
    if commit is None:
        raise not_taken(order, "what was read of it names no commit")
    with writing(repos):
        taken: Taken | Unfit = Taken(commit)
        if unread or commit_at(repos.judge, commit) is None:
            share_shallow(repos.base, repos.judge)
            with _copied(order, out / "pack") as pack:
                taken = _let_in(order, pack, commit, unread, last)
        if isinstance(taken, Taken):
            keep(repos, order.task.id, taken.commit)
        return taken


def _let_in(
    order: Order, pack: Path, commit: str, unread: str | None, last: str | None
) -> Taken | Unfit:
    done = None if unread else _indexed(order, pack)
    if done is not None and done.code == 0:
        _must_be_whole(order, commit)
        return Taken(commit)
    with mending.room_for(order) as room:
        faults = mending.faults_in(room, pack)
        if findings := mending.findings_of(room, commit, faults):
            return Unfit(findings)
        if unread or not faults:
            raise not_taken(order, unread or (words_of(done) if done else ""))
        mended = mending.made_again(order, room, commit, faults)
        if last and _is_same(order, room, last, mended.commit):
            return Taken(last, mended.why)
        again = _indexed(order, mending.packed(order, room, mended.commit))
    if again.code != 0:
        raise not_taken(order, words_of(again))
    _must_be_whole(order, mended.commit)
    return Taken(mended.commit, mended.why)


def _is_same(order: Order, room: Path, last: str, made: str) -> bool:
    """Whether the last change has the same tree on the same commits, made at another time."""
    what = f"the work of task {order.task.id} was not taken"
    facts = ("show", "--no-patch", "--format=%T %P")
    return told(what, room, *facts, last) == told(what, room, *facts, made)


def _must_be_whole(order: Order, commit: str) -> None:
    what = f"the work of task {order.task.id} was not taken"
    told(what, order.repos.judge, *_CONNECTED, commit, *_NOT)


_CONNECTED = ("rev-list", "--objects", "--quiet")
_NOT = ("--not", "--all", "--alternate-refs")


@contextmanager
def _copied(order: Order, pack: Path) -> Generator[Path]:
    """What we check is then what nobody else can change."""
    copy = order.repos.directory / f".new-{secrets.token_hex(4)}.pack"
    try:
        with opened(pack) as theirs, copy.open("wb") as ours:
            shutil.copyfileobj(theirs, ours)
        yield copy
    except OSError as error:
        raise not_taken(order, str(error)) from error
    finally:
        copy.unlink(missing_ok=True)


def _indexed(order: Order, pack: Path) -> Finished:
    strictly = ("index-pack", "--stdin", "--strict", "--fix-thin")
    return git(order.repos.judge, *strictly, given=pack)


def _named(out: Path) -> str | None:
    found = _line(out / "commit")
    return found if found and COMMIT.fullmatch(found) else None


def _line(file: Path) -> str | None:
    """The first one of a file of the script's; None where it wrote none."""
    try:
        with opened(file) as found:
            return found.read(200).decode("ascii", "replace").strip().split("\n")[0]
    except OSError:
        return None
