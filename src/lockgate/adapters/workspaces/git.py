"""Git as it is run here: on a named git directory, hearing no configuration but that one's own."""

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.run import Finished, run
from lockgate.core.model.commits import LOCKGATE, Person
from lockgate.errors import Unavailable

LONG = 900.0  # seconds, for what grows with the repository
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
ENVIRONMENT = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
}
OPTIONS = (
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.file.allow=always",
    "safe.directory=*",
)
HARDENED = ("git", *(part for it in OPTIONS for part in ("-c", it)))  # in that environment
# The other end of a fetch hears none of our options, and the owner of a clone may be another.
_UPLOAD_PACK = "git -c 'safe.directory=*' upload-pack"
_FETCH = (
    "fetch",
    "--quiet",
    "--no-tags",
    "--no-auto-maintenance",
    "--no-recurse-submodules",
    "--no-write-fetch-head",
    "--update-shallow",
    f"--upload-pack={_UPLOAD_PACK}",
)


def git(git_dir: Path, *argv: str, tree: Path | None = None, given: Path | None = None) -> Finished:
    """Ask it, with a file to read where it wants one; nothing is ever looked for upwards."""
    shown = () if tree is None else (f"--work-tree={tree}",)
    asked = (*HARDENED, f"--git-dir={git_dir}", *shown, *argv)
    return run(asked, cwd=tree, deadline=LONG, environment=ENVIRONMENT, given=given)


def told(
    what: str, git_dir: Path, *argv: str, tree: Path | None = None, given: Path | None = None
) -> str:
    """Its output; `what` did not happen where it fails."""
    done = git(git_dir, *argv, tree=tree, given=given)
    if done.code != 0:
        raise Unavailable(what, why=words_of(done), fix="do as git says, then try again")
    return done.out


class Stamp(Struct, frozen=True):
    """Who a commit is by, and when it was made."""

    author: Person = LOCKGATE
    committer: Person = LOCKGATE
    seconds: int = 0


def commit_made(
    what: str,
    git_dir: Path,
    tree: str,
    parents: Sequence[str],
    message: str,
    stamp: Stamp = Stamp(),  # noqa: B008 - it cannot be changed
) -> str:
    """A commit of ours, with no ref; the same facts give the same id."""
    people = {"AUTHOR": stamp.author, "COMMITTER": stamp.committer}
    who = {f"GIT_{it}_DATE": f"@{stamp.seconds} +0000" for it in people}
    for it, person in people.items():
        who |= {f"GIT_{it}_NAME": person.name, f"GIT_{it}_EMAIL": person.email}
    above = [part for parent in parents for part in ("-p", parent)]
    argv = ("commit-tree", *above, "-m", message or "(no summary)", tree)
    asked = (*HARDENED, f"--git-dir={git_dir}", *argv)
    done = run(asked, deadline=LONG, environment=ENVIRONMENT | who)
    if done.code != 0:
        raise Unavailable(what, why=words_of(done), fix="do as git says, then try again")
    return done.out.strip()


def words_of(done: Finished) -> str:
    """The last lines it wrote about a failure."""
    lines = (done.err.strip() or done.out.strip() or f"it ended with {done.code}").splitlines()
    return "; ".join(lines[-3:])


def commit_at(git_dir: Path, name: str) -> str | None:
    asked = git(
        git_dir, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
    )
    return asked.out.strip() if asked.code == 0 else None


def is_ancestor(git_dir: Path, commit: str, other: str) -> bool:
    return git(git_dir, "merge-base", "--is-ancestor", commit, other).code == 0


def fetched(git_dir: Path, source: Path, *wanted: str) -> Finished:
    """Take commits by name, or refs by refspec, with all that they reach."""
    return git(git_dir, *_FETCH, "--", str(source), *wanted)
