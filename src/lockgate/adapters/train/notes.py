"""The evidence beside a landed commit, as a git note in the user's repository.

A `git gc --prune=now` of the user's, beside a landing, may take objects of the notes with it. Then
the notes are written again, all of them, from what the database keeps; those that the database
does not know, of other people and other homes, are kept as far as git still has them.
"""

import secrets
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lockgate.adapters.train.git import alone, in_repository
from lockgate.adapters.workspaces.git import COMMIT, git, told
from lockgate.adapters.workspaces.repositories import Repositories
from lockgate.core.train.model import Commit
from lockgate.errors import NotesBroken, Unavailable
from lockgate.ports import Project

REF = "refs/notes/lockgate"
_NOTES = ("notes", f"--ref={REF}")
_WHO = ("-c", "user.name=Lockgate", "-c", "user.email=lockgate@localhost")
STATES = 20  # of the ref, at most, in which notes of other people are looked for
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

    A commit that the repository does not have any more gets none. Notes of other people stay.
    """
    theirs, what = Path(project.common_dir), f"the evidence in {project.name} was not written again"
    with alone(project):
        others = {it: blob for it, blob in _readable(theirs).items() if it not in notes}
        names = (*notes, *others, *others.values())
        with _file(repos, "".join(f"{it}\n" for it in names).encode()) as file:
            said = told(what, theirs, "cat-file", "--batch-check=%(objecttype)", given=file)
        kinds = dict(zip(names, said.splitlines(), strict=True))
        ours = {it: text for it, text in notes.items() if kinds[it] == "commit"}
        others = {
            it: blob
            for it, blob in others.items()
            if (kinds[it], kinds[blob]) == ("commit", "blob")
        }
        with _file(repos, _stream(ours, others)) as file:
            told(what, theirs, "update-ref", "-d", REF)
            told(what, theirs, "fast-import", "--quiet", "--force", "--done", given=file)
    return len(ours) + len(others)


def _readable(git_dir: Path) -> dict[str, str]:
    """By commit, the blob of each note that git still has, in the newest state that is there."""
    found: dict[str, str] = {}
    for state in _states(git_dir):
        listed = _listed(git_dir, state, "")
        found = {**(listed or {}), **found}
        if listed is not None:
            break
    return found


def _states(git_dir: Path) -> list[str]:
    """What the ref names, and what git's own log says that it named before, the newest first."""
    named = git(git_dir, "rev-parse", "--verify", "--quiet", REF).out.split()
    log = git_dir / "logs" / REF
    lines = log.read_text("utf-8", "replace").splitlines() if log.is_file() else []
    before = [it.split(" ", 2)[1] for it in reversed(lines) if it.count(" ") > 1]
    return list(dict.fromkeys((*named, *before)))[:STATES]


def _listed(git_dir: Path, tree: str, above: str) -> dict[str, str] | None:
    """None where all of it is gone; git spreads many notes over trees of trees."""
    read = git(git_dir, "ls-tree", "-z", "--end-of-options", tree)
    if read.code != 0:
        return None
    found: dict[str, str] = {}
    for line in filter(None, read.out.split("\0")):
        facts, name = line.split("\t", 1)
        _, kind, object_name = facts.split(" ")
        if kind == "tree":
            found |= _listed(git_dir, object_name, above + name) or {}
        elif COMMIT.fullmatch(above + name):
            found[above + name] = object_name
    return found


def _names_something(git_dir: Path) -> bool:
    """A ref whose commit is gone is listed by nobody, and is there all the same."""
    return git(git_dir, "rev-parse", "--verify", "--quiet", REF).code == 0


def _stream(notes: Mapping[Commit, str], others: Mapping[str, str]) -> bytes:
    """What fast-import reads: one commit that has every note; `others` by their blobs."""
    message = b"Notes written again by Lockgate"
    lines = [b"commit " + REF.encode(), _COMMITTER, b"data %d" % len(message), message]
    for commit, text in notes.items():
        raw = text.encode("utf-8", "surrogateescape")
        lines += [b"N inline " + commit.encode(), b"data %d" % len(raw), raw]
    lines += [f"N {blob} {commit}".encode() for commit, blob in others.items()]
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
