"""The evidence beside a landed commit, as a git note in the user's repository.

A `git gc --prune=now` of the user's, beside a landing, may take objects of the notes with it. Then
the notes are written again, all of them, from what the database keeps.
"""

import secrets
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lockgate.adapters.train.git import alone, in_repository
from lockgate.adapters.workspaces.git import git, told
from lockgate.adapters.workspaces.repositories import Repositories
from lockgate.core.train.model import Commit
from lockgate.errors import NotesBroken, Unavailable
from lockgate.ports import Project

REF = "refs/notes/lockgate"
_NOTES = ("notes", f"--ref={REF}")
_WHO = ("-c", "user.name=Lockgate", "-c", "user.email=lockgate@localhost")
_COMMITTER = b"committer Lockgate <lockgate@localhost> 0 +0000"


def put_note(repos: Repositories, project: Project, commit: Commit, text: str) -> None:
    """Byte for byte; it replaces the one that is there. Two at once wait for each other.

    NotesBroken where git has lost a part of the notes, so that none can be added.
    """
    theirs, what = Path(project.common_dir), f"the evidence of {commit} was not kept"
    with _file(repos, text.encode("utf-8", "surrogateescape")) as file:
        blob = told(what, theirs, "hash-object", "-w", "--no-filters", "--", str(file)).strip()
    with alone(project):
        add = ("add", "-f", "--allow-empty", "-C", blob, f"{commit}^{{commit}}")
        try:
            told(what, theirs, *_WHO, *_NOTES, *add)
        except Unavailable as error:
            if notes_sound(project):
                raise
            raise NotesBroken(project.name, error.why) from error


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


def notes_sound(project: Project) -> bool:
    """Whether git has every object of the notes; also where there are none yet."""
    theirs = Path(project.common_dir)
    listed = git(theirs, "for-each-ref", "--format=%(refname)", REF)
    if not listed.out.strip() and not _names_something(theirs):
        return True
    return git(theirs, "rev-list", "--objects", "--quiet", REF).code == 0


def rewrite_notes(repos: Repositories, project: Project, notes: Mapping[Commit, str]) -> int:
    """Write all notes again, in the place of those that are there; how many there are now.

    A commit that the repository does not have any more gets none.
    """
    theirs, what = Path(project.common_dir), f"the evidence in {project.name} was not written again"
    asked = "".join(f"{commit}\n" for commit in notes).encode()
    with _file(repos, asked) as file:
        said = told(what, theirs, "cat-file", "--batch-check=%(objecttype)", given=file)
    kinds = said.splitlines()
    there = [it for it, kind in zip(notes, kinds, strict=True) if kind == "commit"]
    with alone(project), _file(repos, _stream({it: notes[it] for it in there})) as file:
        told(what, theirs, "update-ref", "-d", REF)
        told(what, theirs, "fast-import", "--quiet", "--force", "--done", given=file)
    return len(there)


def _names_something(git_dir: Path) -> bool:
    """A ref whose commit is gone is listed by nobody, and is there all the same."""
    return git(git_dir, "rev-parse", "--verify", "--quiet", REF).code == 0


def _stream(notes: Mapping[Commit, str]) -> bytes:
    """What fast-import reads: one commit that has every note."""
    message = b"Notes written again by Lockgate"
    lines = [b"commit " + REF.encode(), _COMMITTER, b"data %d" % len(message), message]
    for commit, text in notes.items():
        raw = text.encode("utf-8", "surrogateescape")
        lines += [b"N inline " + commit.encode(), b"data %d" % len(raw), raw]
    return b"\n".join((*lines, b"done", b""))


@contextmanager
def _file(repos: Repositories, content: bytes) -> Generator[Path]:
    file = repos.directory / f".note-{secrets.token_hex(4)}"
    repos.directory.mkdir(parents=True, exist_ok=True)
    try:
        file.write_bytes(content)
        yield file
    finally:
        file.unlink(missing_ok=True)
