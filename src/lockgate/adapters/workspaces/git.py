"""Git as it is run here: on a named git directory, hearing no configuration but that one's own.

Commits carry the user's name, as their own git has it, and never a clone's.
"""

import functools
import re
import shlex
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.run import Finished, run
from lockgate.core.model.commits import LOCKGATE, Byline, Person
from lockgate.errors import Unavailable
from lockgate.ports import Project

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
LATELY = 10.0  # seconds for which what git said is not asked again
_ASKED = ("config", "--null", "--get-regexp", r"^(user\.(name|email)|commit\.gpgsign)$")


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


# Whose name commits carry.


class User(Struct, frozen=True):
    """Empty where the user's git has no name or address; `signs` where it signs every commit."""

    person: Person
    signs: bool


def user_of(project: Project) -> User:
    return _asked(project.common_dir, int(time.monotonic() / LATELY))


@functools.lru_cache(maxsize=64)
def _asked(common_dir: str, _moment: int) -> User:
    said = run(("git", f"--git-dir={common_dir}", *_ASKED)).out.split("\0")
    found = {key: value.strip() for key, _, value in (line.partition("\n") for line in said)}
    person = Person(found.get("user.name", ""), found.get("user.email", ""))
    return User(person, found.get("commit.gpgsign", "false").lower() in {"true", "yes", "on", "1"})


_ADD = "git interpret-trailers --in-place --if-exists addIfDifferent --trailer"


def add_hook(git_dir: Path, byline: Byline) -> None:
    """Commits that the agent makes in its clone get the trailers too; its author may leave them."""
    lines = list(_lines(byline.trailers))
    if not lines:
        return
    hook = git_dir / "hooks" / "commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("\n".join(("#!/bin/sh", *lines, "exit 0", "")), encoding="utf-8")
    hook.chmod(0o755)


def _lines(trailers: Iterable[str]) -> Iterable[str]:
    """A program that names its agent by itself, by the same address, is not repeated."""
    for trailer in trailers:
        key, _, person = trailer.partition(": ")
        address = shlex.quote(person[person.rfind("<") :])
        has = f'grep -i "^{key}:" "$1" | grep -qiF {address}'
        yield f'{has} || {_ADD} {shlex.quote(trailer)} "$1"'
