"""The evidence beside a landed commit, as a git note in the user's repository."""

import secrets
from pathlib import Path

from lockgate.adapters.train.user_git import alone, in_repository
from lockgate.adapters.workspaces.hardened_git import git, told
from lockgate.adapters.workspaces.repositories import Repositories
from lockgate.core.train.model import Commit
from lockgate.ports import Project

_NOTES = ("notes", "--ref=refs/notes/lockgate")
_WHO = ("-c", "user.name=Lockgate", "-c", "user.email=lockgate@localhost")


def put_note(repos: Repositories, project: Project, commit: Commit, text: str) -> None:
    """Byte for byte; it replaces the one that is there. Two at once wait for each other."""
    theirs, what = Path(project.common_dir), f"the evidence of {commit} was not kept"
    file = repos.directory / f".note-{secrets.token_hex(4)}"
    repos.directory.mkdir(parents=True, exist_ok=True)
    try:
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
        blob = told(what, theirs, "hash-object", "-w", "--no-filters", "--", str(file)).strip()
    finally:
        file.unlink(missing_ok=True)
    with alone(project):
        add = ("add", "-f", "--allow-empty", "-C", blob, f"{commit}^{{commit}}")
        told(what, theirs, *_WHO, *_NOTES, *add)


def read_note(project: Project, name: str) -> tuple[Commit, str | None] | None:
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    meant = in_repository(project, *asked)
    if meant.code != 0:
        return None
    theirs, commit = Path(project.common_dir), meant.out.strip()
    found = git(theirs, *_NOTES, "list", commit)
    if found.code != 0:
        return Commit(commit), None
    what = f"the evidence of {commit} was not read"
    return Commit(commit), told(what, theirs, "cat-file", "blob", found.out.strip())
