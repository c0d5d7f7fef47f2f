"""A hub on trial: two refs are pushed there at once, then two of which it must refuse one."""

import secrets
from pathlib import Path
from tempfile import TemporaryDirectory

from lockgate.adapters.hub.mirror import asked, listed, refs_in, spoken
from lockgate.adapters.run import Finished
from lockgate.adapters.workspaces.git import Stamp, commit_made, told
from lockgate.adapters.workspaces.git_files import make_repository
from lockgate.core.hub import TRIAL, Tried
from lockgate.errors import LockgateError

_WHAT = "the hub was not tried"


class GitTrial:
    """The `HubTrial` of ports. Its commits are empty, and of nobody's history."""

    def tried(self, url: str) -> Tried:
        try:
            done = listed(url, "refs/heads/*")
            if done.code != 0:
                return Tried(read=spoken(done))
            branches = refs_in(done.out)
            with TemporaryDirectory(prefix="lockgate-hub-") as place:
                named_as = next(iter(branches.values()), "")
                return _pushed(Path(place) / "trial.git", url, len(branches), named_as)
        except LockgateError as error:
            return Tried(read=error.why)


def _pushed(place: Path, url: str, branches: int, named_as: str) -> Tried:
    make_repository(place, named_as, "", bare=True)
    tree = told(_WHAT, place, "hash-object", "-t", "tree", "-w", "/dev/null").strip()
    one, two = (commit_made(_WHAT, place, tree, (), it, Stamp()) for it in ("one", "two"))
    root = f"{TRIAL}/{secrets.token_hex(6)}"
    refs = (f"{root}/a", f"{root}/b")
    first = _push(place, url, *(f"{one}:{it}" for it in refs))
    if first.code != 0:
        return Tried(branches=branches, pushed=spoken(first))
    there = _seen(url, root)
    again = _push(place, url, f"+{two}:{refs[0]}", f"{two}:{refs[1]}/below-a-ref")
    moved = again.code == 0 or _seen(url, root) != there
    gone = asked(place, "push", "--quiet", "--", url, *(f":{it}" for it in refs))
    whole = set(there) == set(refs)
    return Tried(
        branches=branches,
        pushed="" if whole else f"what was pushed below {TRIAL} is not shown there",
        refused=not moved,
        removed="" if gone.code == 0 else spoken(gone),
    )


def _push(place: Path, url: str, *moves: str) -> Finished:
    return asked(place, "push", "--quiet", "--atomic", "--", url, *moves)


def _seen(url: str, root: str) -> dict[str, str]:
    done = listed(url, f"{root}/*")
    return refs_in(done.out) if done.code == 0 else {}
