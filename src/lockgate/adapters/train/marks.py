"""What judge.git is known to have whole: tips of targets and candidates, each kept by a ref.

A commit alone proves nothing: a copy that was killed may have left it without what it reaches.
"""

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lockgate.adapters.train.asking import answered, asked, failed, scripted
from lockgate.adapters.workspaces.repositories import Repositories, writing
from lockgate.core.train.model import Commit, Tree
from lockgate.errors import Unavailable
from lockgate.ports.train import Target

_TRAIN = "refs/lockgate/train"
_FACTS = ("rev-list", "--no-walk", "--no-commit-header", "--format=%T %ct")
_FEED = 'file=$1 && shift && exec git "$@" <"$file"'


@dataclass(frozen=True, slots=True)
class Facts:
    """Of a commit: its tree, and when it was made."""

    tree: Tree
    seconds: int


def name_of(target: Target) -> str:
    named = f"{target.project.id}\0{target.remote}\0{target.branch}"
    return hashlib.sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def mark_of(target: Target, commit: Commit) -> str:
    return f"{_TRAIN}/{name_of(target)}/{commit}"


def mark(repos: Repositories, target: Target, commit: Commit) -> None:
    """Under `writing`. Where git keeps refs in files, this is how it writes one."""
    name, what = mark_of(target, commit), f"candidate {commit} was not kept"
    if not (repos.judge / "refs" / "heads").is_dir():
        answered(what, repos.judge, "update-ref", name, commit)
        return
    place = repos.judge / name
    lock = place.with_name(f"{commit}.lock")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        lock.write_text(f"{commit}\n", encoding="ascii")
        lock.rename(place)
    except OSError as error:
        raise Unavailable(what, why=str(error), fix="see that the disk has room") from error


def marked(repos: Repositories, target: Target, commit: Commit) -> Facts | None:
    """None where judge.git may not have it whole."""
    done = asked(repos.judge, *_FACTS, mark_of(target, commit), "--")
    return _read(done.out) if done.code == 0 else None


def facts_of(judge: Path, commit: Commit) -> Facts:
    return _read(answered(f"{commit} was not looked up", judge, *_FACTS, commit, "--"))


def unmark(repos: Repositories, target: Target, keep: Iterable[Commit]) -> None:
    kept, listing = set(keep), ("for-each-ref", "--format=%(refname)")
    what = f"the candidates for {target.branch} were not pruned"
    refs = answered(what, repos.judge, *listing, f"{_TRAIN}/{name_of(target)}/").splitlines()
    dropped = [f"delete {it}\n" for it in refs if it.rpartition("/")[2] not in kept]
    if dropped:
        with writing(repos):
            _fed(what, repos, "".join(dropped), "update-ref", "--stdin")


def _read(said: str) -> Facts:
    tree, seconds = said.split()
    return Facts(Tree(tree), int(seconds))


def _fed(what: str, repos: Repositories, text: str, *argv: str) -> str:
    file = repos.directory / f".train-{secrets.token_hex(4)}"
    try:
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
        done = scripted(_FEED, str(file), f"--git-dir={repos.judge}", *argv)
    finally:
        file.unlink(missing_ok=True)
    if done.code != 0:
        raise failed(what, done)
    return done.out
