"""This host's mirror of a hub: a bare repository with the hub's branches, for what reads a project.

Its branches are there twice, as its own and as those of `origin`: rules are read from the first,
trains land by the second. A fetch of one moves both, as git does with what a remote is set to.
"""

import secrets
from pathlib import Path

from lockgate.adapters.run import Finished, run
from lockgate.adapters.workspaces.files import locked, remove
from lockgate.adapters.workspaces.git import COMMIT, commit_at, told, words_of
from lockgate.adapters.workspaces.git_files import SHARED, make_repository, set_ref
from lockgate.errors import Unavailable
from lockgate.ports import Project

SECONDS = 120.0  # for what is asked of a hub
LOCK = "lockgate-landing"  # who holds it has the refs of a mirror; the train takes it too
REMOTE = "origin"
# The user's own git, with their credentials; hooks and upkeep are not for what we do.
_OPTIONS = (
    "core.hooksPath=/dev/null",
    "gc.auto=0",
    "maintenance.auto=false",
    "safe.directory=*",
    "protocol.file.allow=always",
    "fetch.unpackLimit=1",  # a fetch that is killed leaves a whole pack or nothing
    "push.negotiate=true",  # else a hub that is ahead of us is sent all of history
)
FETCH = (
    *("fetch", "--quiet", "--no-tags", "--no-auto-maintenance", "--no-recurse-submodules"),
    "--no-write-fetch-head",
)
_TROUBLE = ("fatal: ", "error: ", "remote: ", "ssh: ", "! ")
_UNREAD = "fatal: Could not read from remote repository."  # what stands before it is ssh's reason
_BOTH = (f"+refs/heads/*:refs/remotes/{REMOTE}/*", "+refs/heads/*:refs/heads/*")


def asked(where: Path, *argv: str, seconds: float = SECONDS) -> Finished:
    """Git in one of our repositories, by which it finds the hub."""
    options = (part for it in _OPTIONS for part in ("-c", it))
    return run(("git", f"--git-dir={where}", *options, *argv), deadline=seconds)


def listed(url: str, *patterns: str) -> Finished:
    """What the hub itself says of its refs; it needs no repository here."""
    return run(("git", *_plain(), "ls-remote", "--symref", "--", url, *patterns), deadline=SECONDS)


def _plain() -> tuple[str, ...]:
    return ("-c", "safe.directory=*", "-c", "protocol.file.allow=always")


def spoken(done: Finished) -> str:
    """What went wrong, by git, ssh or the hub itself, without git's advice."""
    lines = [it.strip() for it in (*done.out.splitlines(), *done.err.splitlines())]
    by_ssh = lines[: lines.index(_UNREAD)] if _UNREAD in lines else []
    named = [*filter(None, by_ssh), *(it for it in lines if it.startswith(_TROUBLE))]
    return "; ".join(dict.fromkeys(named)) or words_of(done)


def refs_in(said: str) -> dict[str, str]:
    pairs = (line.split("\t") for line in said.splitlines() if COMMIT.match(line))
    return {name: commit for commit, name in pairs}


def follow(mirror: Path, project: Project) -> None:
    """Made where it is missing; then its branches are those of the hub, and no others."""
    with locked(mirror.with_name(f"{mirror.name}.making")):
        if not mirror.is_dir():
            _make(mirror, project)
    with locked(mirror / LOCK):
        told(_what(project), mirror, "config", f"remote.{REMOTE}.url", project.url)
        done = asked(mirror, *FETCH, "--prune", "--", REMOTE)
    if done.code != 0:
        raise unreached(project, _what(project), spoken(done))


def fetch_commit(mirror: Path, project: Project, commit: str) -> None:
    """One that no branch has any more: most hubs give it by its name."""
    done = asked(mirror, *FETCH, "--", REMOTE, commit)
    if done.code != 0 or commit_at(mirror, commit) is None:
        why = f"it has no commit {commit}: {spoken(done)}"
        raise unreached(project, f"commit {commit} was not taken", why)


def unreached(project: Project, what: str, why: str) -> Unavailable:
    fix = f"see that this host reaches it: git ls-remote {project.url}; or: lockgate fleet check"
    return Unavailable(what, why=f"from the hub {project.url}: {why}", fix=fix)


def _make(mirror: Path, project: Project) -> None:
    """HEAD is the hub's own: it says which branch is the usual one."""
    done = listed(project.url, "HEAD", "refs/heads/*")
    if done.code != 0:
        raise unreached(project, _what(project), spoken(done))
    found = refs_in(done.out)
    if not found:
        raise unreached(project, _what(project), "it has no branch; push the base branch there")
    heads = [it.split()[1] for it in done.out.splitlines() if it.startswith("ref: ")]
    new = mirror.with_name(f".new-{secrets.token_hex(4)}")
    try:
        make_repository(new, next(iter(found.values())), SHARED, bare=True)
        for head in heads[:1]:
            set_ref(new, "HEAD", f"ref: {head}")
            there = head.replace("refs/heads/", f"refs/remotes/{REMOTE}/", 1)
            set_ref(new, f"refs/remotes/{REMOTE}/HEAD", f"ref: {there}")
        for it in _BOTH:
            told(_what(project), new, "config", "--add", f"remote.{REMOTE}.fetch", it)
        new.rename(mirror)
    except OSError as error:
        fix = "see that the disk has room, then try again"
        raise Unavailable(_what(project), why=str(error), fix=fix) from error
    finally:
        remove(new)


def _what(project: Project) -> str:
    return f"the branches of {project.name} were not fetched"
