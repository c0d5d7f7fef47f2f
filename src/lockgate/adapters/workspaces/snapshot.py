"""An agent's work into judge.git: read in a sandbox, carried over as a pack, checked by fsck."""

import secrets
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.run import Finished
from lockgate.adapters.workspaces import object_checks
from lockgate.adapters.workspaces.clones import OURS, Order
from lockgate.adapters.workspaces.git import COMMIT, commit_at, git, told, words_of
from lockgate.adapters.workspaces.git_files import share_shallow
from lockgate.adapters.workspaces.object_checks import leaks_in
from lockgate.adapters.workspaces.reading import not_taken, opened, read_clone, scratch_for
from lockgate.adapters.workspaces.repositories import keep, last_change, writing
from lockgate.adapters.workspaces.setup import copied_into
from lockgate.core.model.commits import with_trailers
from lockgate.core.model.secrets import Secret
from lockgate.ports import Unfit


class Taken(Struct, frozen=True):
    """The commit that stands for the work; `mended` says what was wrong with the author's own."""

    commit: str
    mended: str = ""


def take_work(
    order: Order, place: Path, deadline: float, secrets: Sequence[Secret] = ()
) -> Taken | Unfit:
    """The commit that now stands for all work in the clone; what a lost clone had is not lost.

    Work with the value of a secret in it is unfit.
    """
    last = last_change(order.repos, order.name)
    if not place.is_dir() or place.is_symlink():
        return Taken(last or order.base_commit)
    with scratch_for(order, place, last) as scratch:
        script = ("take.sh", last or "", *_by(order), *OURS, *copied_into(place))
        read_clone(order, place, scratch, script, deadline)
        return _carry_over(order, scratch / "out", last, secrets)


def _by(order: Order) -> tuple[str, ...]:
    """Who commits what the agent left uncommitted, and what that commit says."""
    by, goal = order.by, order.goal
    people = (by.author.name, by.author.email, by.committer.name, by.committer.email)
    return (*people, with_trailers(goal, by.trailers))


def _carry_over(
    order: Order, out: Path, last: str | None, secrets: Sequence[Secret]
) -> Taken | Unfit:
    """Into judge.git, unless it is there: what is broken or not whole stays outside."""
    repos, commit, unread = order.repos, _named(out), _line(out / "unread")
    if commit is None:
        raise not_taken(order, "what was read of it names no commit")
    with writing(repos):
        taken: Taken | Unfit = Taken(commit)
        if unread or commit_at(repos.judge, commit) is None:
            share_shallow(repos.base, repos.judge)
            with _copied(order, out / "pack") as pack, object_checks.room_for(order) as room:
                refused = unread or _refused(room, pack)
                taken = _looked_at(order, room, pack, Candidate(commit, refused, last, secrets))
        if isinstance(taken, Taken):
            keep(repos, order.name, taken.commit)
        return taken


class Candidate(Struct, frozen=True):
    """A commit that may be let in: why git refuses it, if it does, and what it must not hold."""

    commit: str
    refused: str
    last: str | None
    secrets: Sequence[Secret]


def _looked_at(order: Order, room: Path, pack: Path, it: Candidate) -> Taken | Unfit:
    """In a room of its own, of which nothing is kept but what has passed."""
    faults = object_checks.faults_in(room, pack) if it.refused else ()
    if findings := object_checks.findings_of(room, it.commit, faults):
        return Unfit(findings)
    if it.refused and not faults:
        raise not_taken(order, it.refused)
    leaks = leaks_in(order, room, it.commit, _new_in(order, room, it.commit), it.secrets)
    if leaks.findings:
        return Unfit(leaks.findings)
    if not (faults or leaks.history):
        _move_in(order, room)
        return Taken(it.commit)
    mended = object_checks.made_again(order, room, it.commit, (*faults, *leaks.history))
    if it.last and _is_same(order, room, it.last, mended.commit):
        return Taken(it.last, mended.why)
    _new_in(order, room, mended.commit)
    again = _indexed(order.repos.judge, object_checks.packed(order, room, mended.commit))
    if again.code != 0:
        raise not_taken(order, words_of(again))
    return Taken(mended.commit, mended.why)


def _is_same(order: Order, room: Path, last: str, made: str) -> bool:
    """Whether the last change has the same tree on the same commits, made at another time."""
    what = f"the work of task {order.name} was not taken"
    facts = ("show", "--no-patch", "--format=%T %P")
    return told(what, room, *facts, last) == told(what, room, *facts, made)


def _new_in(order: Order, room: Path, commit: str) -> str:
    """The objects of a commit that judge.git lacks; Unavailable where one is nowhere."""
    what = f"the work of task {order.name} was not taken"
    return told(what, room, "rev-list", "--objects", commit, "--not", "--alternate-refs")


def _refused(room: Path, pack: Path) -> str:
    """Git's words for it; nothing where every object is in the room now, and good."""
    done = _indexed(room, pack)
    return "" if done.code == 0 else words_of(done)


def _move_in(order: Order, room: Path) -> None:
    """The pack out of the room into judge.git; its index last, by which git finds it."""
    place = order.repos.judge / "objects" / "pack"
    place.mkdir(exist_ok=True)
    place.chmod(0o755)
    found = sorted((room / "objects" / "pack").glob("pack-*"), key=lambda it: it.suffix == ".idx")
    for file in found:
        file.chmod(0o444)
        file.replace(place / file.name)


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


def _indexed(git_dir: Path, pack: Path) -> Finished:
    return git(git_dir, "index-pack", "--stdin", "--strict", "--fix-thin", given=pack)


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
