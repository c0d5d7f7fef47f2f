"""What a commit and a change consist of, where a change was adopted from, where it is published.

Dependencies, caches and what the set-up made stay out of a change. A folder that base has files in
is the project's own, whatever its name is.
"""

import hashlib
import os
import re
import secrets
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from lockgate.adapters.run import run
from lockgate.adapters.workspaces.git import (
    ENVIRONMENT,
    HARDENED,
    LONG,
    commit_at,
    commit_made,
    fetched,
    git,
    is_ancestor,
    told,
    words_of,
)
from lockgate.adapters.workspaces.repositories import (
    PUBLISHED,
    Repositories,
    keep,
    rules_of,
    writing,
)
from lockgate.core.layers.inputs import LOCKS
from lockgate.core.model.task import Task
from lockgate.errors import Unavailable
from lockgate.ports import Candidate, Change, FileSize, Project

LARGEST_DIFF = 32 * 1024 * 1024
_REBASING = ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START")
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color")
_WITH_LIST = ("--raw", "--patch", "-z")
_CHUNK = 1024 * 1024
TEXT = 1_000_000  # bytes of one file; more is no test that somebody wrote
TOTAL = 100_000_000
_PLAIN_FILES = ("100644 ", "100755 ")
# As git's own files of patterns have them. A virtual environment or a cache of another name is
# known by its mark, `pyvenv.cfg` or `CACHEDIR.TAG`: see index.sh.
DEPENDENCIES = (
    *(".venv/", "__pycache__/", "*.dist-info/", "*.egg-info/", ".eggs/", ".tox/", ".nox/"),
    *(".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/"),
    *("node_modules/", "bower_components/", ".next/", ".nuxt/", ".svelte-kit/", ".turbo/"),
    *(".parcel-cache/", ".gradle/", ".terraform/", ".go-modules/", ".cargo-home/"),
)
MOST_SHOWN = 2000  # patterns that git compares with every file of a clone
_NAMES = "|".join(re.escape(it[:-1]).replace(r"\*", "[^/]*") for it in DEPENDENCIES)
_FOLDER = re.compile(f"(?:^|(?<=/))(?:{_NAMES})/")
_SPECIAL = re.compile(r"[\\*?\[\]]| (?=$)")

Entry = bytes  # `mode id stage<tab>path`, as `git ls-files --stage` has it


def change_of(repos: Repositories, it: Candidate) -> Change:
    """A file that was renamed counts under both its names."""
    if it.commit == rules_of(it).base_commit:
        return Change(it.commit, (), hashlib.sha256().hexdigest())
    with _diff(repos, it, *_WITH_LIST, "--binary", "--full-index", "-U3") as file:
        files, patch = _files(file), _patch(file)
    return Change(
        it.commit,
        files,
        patch.digest,
        patch.added,
        lines=(patch.more, patch.fewer),
    )


def sizes_of(repos: Repositories, it: Candidate) -> tuple[FileSize, ...]:
    """Each file of the change with the lines that come and go."""
    if it.commit == rules_of(it).base_commit:
        return ()
    said = _compared(repos, it, "diff", *_PLAIN, "--numstat", "-z", "--no-renames")
    return tuple(_file_size(line) for line in said.split("\0")[:-1])


def _file_size(line: str) -> FileSize:
    added, removed, path = line.split("\t", 2)
    lines = (int(it) if it.isdecimal() else None for it in (added, removed))
    return FileSize(path, *lines)


def commits_of(repos: Repositories, it: Candidate) -> int:
    """Those that base does not have; 0 where git cannot count them."""
    base = rules_of(it).base_commit
    said = git(repos.judge, "rev-list", "--count", f"{base}..{it.commit}", "--").out.strip()
    return int(said) if said.isdecimal() else 0


def files_of(repos: Repositories, it: Candidate) -> tuple[str, ...]:
    if it.commit == rules_of(it).base_commit:
        return ()
    asked = ("diff", *_PLAIN, "--name-only", "-z", "--no-renames")
    return tuple(_compared(repos, it, *asked).split("\0")[:-1])


def _files(file: BinaryIO) -> tuple[str, ...]:
    """Of the list before the patch, which is left to read."""
    head = b""
    while b"\0\0" not in head and (more := file.read(_CHUNK)):
        head += more
    listed, end, _ = head.partition(b"\0\0")
    file.seek(len(listed) + len(end))
    return tuple(os.fsdecode(it) for it in sorted(set(_named(listed))))


def _named(listed: bytes) -> Iterator[bytes]:
    """For each file the facts, ended by a letter, and its name; two names where it was renamed."""
    fields = iter(listed.split(b"\0") if listed else ())
    for facts in fields:
        yield next(fields)
        if b" R" in facts:
            yield next(fields)


class _Patch(NamedTuple):
    """How many bytes are added, and how many lines come and go, beside the digest."""

    digest: str
    added: int
    more: int
    fewer: int


def _patch(file: BinaryIO) -> _Patch:
    """A digest of every line that differs, with those around it, wherever in its file it stands.

    What is no text has its new content before its old one.
    """
    seen, added, before, more, fewer = hashlib.sha256(), 0, b"", 0, 0
    for line in file:
        if not line.startswith((b"@@", b"index ")):
            seen.update(line)
        if line.startswith((b"@@", b"diff ", b"GIT binary patch")):
            before = line
        elif before.startswith(b"@@"):
            more, fewer = more + line.startswith(b"+"), fewer + line.startswith(b"-")
            added += len(line) - 1 if line.startswith(b"+") else 0
        elif before.startswith(b"GIT"):
            added, before = added + int(line.split()[1]), b""
    return _Patch(seen.hexdigest(), added, more, fewer)


def tree_of(repos: Repositories, commit: str) -> str:
    what = f"the tree of {commit} was not found"
    return told(what, repos.judge, "rev-parse", "--verify", f"{commit}^{{tree}}").strip()


def squashed(repos: Repositories, it: Candidate, message: str) -> str:
    """The same change as one commit, which tells nothing of how it came about."""
    what = f"the change {it.commit} was not made one commit"
    fork = fork_of(repos, it)
    return commit_made(what, repos.judge, tree_of(repos, it.commit), (fork,), message)


def diff_of(repos: Repositories, it: Candidate) -> str:
    """It says so where it is cut."""
    with _diff(repos, it) as file:
        text = file.read(LARGEST_DIFF).decode("utf-8", "replace")
        left = os.fstat(file.fileno()).st_size - LARGEST_DIFF
    return f"{text}\n… {left} bytes of this diff are left out …\n" if left > 0 else text


@contextmanager
def _diff(repos: Repositories, it: Candidate, *more: str) -> Generator[BinaryIO]:
    """By way of a file, so that a diff of any size costs only so much memory.

    The file has no name, so that no kill leaves it behind.
    """
    path = repos.directory / f".diff-{secrets.token_hex(4)}"
    with path.open("x+b") as file:
        path.unlink()
        output = f"--output=/proc/{os.getpid()}/fd/{file.fileno()}"
        _compared(repos, it, "diff", *_PLAIN, *more, output)
        yield file


def _compared(repos: Repositories, it: Candidate, *asked: str) -> str:
    """With where it left the base; where git finds no such place, with what we take for it."""
    base = rules_of(it).base_commit
    done = git(repos.judge, *asked, f"{base}...{it.commit}", "--")
    if done.code == 0:
        return done.out
    what, fork = f"the diff of {it.commit} was not made", fork_of(repos, it)
    return told(what, repos.judge, *asked, fork, it.commit, "--")


def adopted(repos: Repositories, project: Project, task: Task) -> str | None:
    """The tip of the task's branch in the user's repository, kept as the task's change."""
    theirs = Path(project.common_dir)
    tip = commit_at(theirs, f"refs/heads/{task.branch}")
    if tip is None:
        return None
    with writing(repos):
        done = fetched(repos.judge, theirs, tip)
        if done.code != 0:
            what = f"branch {task.branch} was not taken from {project.root}"
            raise Unavailable(what, why=words_of(done), fix="do as git says, then try again")
        keep(repos, task.id, tip)
    return tip


def published(repos: Repositories, project: Project, task: Task, commit: str) -> str | None:
    """Why the branch was not set; None where it now is at the commit.

    It is set only where it is absent, behind, or at a commit that we have set it to.
    """
    theirs, branch = Path(project.common_dir), f"refs/heads/{task.branch}"
    with writing(repos):
        tip = commit_at(theirs, branch)
        if tip == commit:
            return None
        if why := in_use(theirs, task.branch) or _alias(theirs, task.branch):
            return why
        _copy(theirs, repos.judge, commit)
        mine = f"{PUBLISHED}/{task.id}"
        ours = tip is None or commit_at(repos.judge, f"{mine}/{tip}")
        if tip and not ours and not is_ancestor(theirs, tip, commit):
            return f"{task.branch} has work that is not part of the change: {tip}"
        told(f"{task.branch} was not set", repos.judge, "update-ref", f"{mine}/{commit}", commit)
        expected = tip or "0" * len(commit)
        done = git(theirs, "update-ref", "-m", set_by(task.id), branch, commit, expected)
        return None if done.code == 0 else f"{task.branch} was not set: {words_of(done)}"


def set_by(task: str) -> str:
    """What the reflog of a branch says that we have set for a task."""
    return f"lockgate: task {task}"


def fork_of(repos: Repositories, it: Candidate) -> str:
    """Where the change left its base; the base itself where they have nothing in common."""
    base = rules_of(it).base_commit
    return git(repos.judge, "merge-base", base, it.commit).out.strip() or base


def _copy(theirs: Path, judge: Path, commit: str) -> None:
    """Unavailable where git cannot: a full disk, for example, which is tried again."""
    done = fetched(theirs, judge, commit)
    if done.code != 0:
        what = f"{commit} was not copied to {theirs}"
        raise Unavailable(what, why=words_of(done), fix="do as git says, then try again")


def _alias(theirs: Path, branch: str) -> str | None:
    """Setting a symbolic ref would move the branch that it stands for."""
    meant = git(theirs, "symbolic-ref", "--quiet", f"refs/heads/{branch}").out.strip()
    return f"{branch} is another name for {meant.removeprefix('refs/heads/')}" if meant else None


def in_use(theirs: Path, branch: str) -> str | None:
    """Moving a branch under a work tree would show the user changes that they never made."""
    asked = told(f"{branch} was not set", theirs, "worktree", "list", "--porcelain", "-z")
    for tree in asked.split("\0\0"):
        lines = tree.split("\0")
        if f"branch refs/heads/{branch}" in lines:
            return f"{branch} is checked out in {lines[0].removeprefix('worktree ')}"
    for git_dir in (theirs, *(theirs / "worktrees").glob("*")):
        if any(_names(git_dir / it, branch) for it in _REBASING):
            return f"{branch} is being rebased or bisected in a work tree of {theirs}"
    return None


def _names(file: Path, branch: str) -> bool:
    try:
        said = file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return False
    return said.removeprefix("refs/heads/") == branch


# What a commit holds: its paths with their blobs, and the texts of those.


def blobs_of(git_dir: Path, commit: str) -> dict[str, str]:
    """Path → mode and id. Links and submodules are there too, under their own modes."""
    listed = told(f"the files of {commit} were not listed", git_dir, "ls-tree", "-r", "-z", commit)
    return dict(_entry(line) for line in listed.split("\0")[:-1])


def texts_of(repos: Repositories, blobs: Iterable[str]) -> dict[str, str]:
    """Of plain files that are UTF-8; the first that fit, where they are too many."""
    ids = {blob.split(" ")[1]: None for blob in blobs if blob.startswith(_PLAIN_FILES)}
    small = tuple(_small(repos, tuple(ids)))
    texts = dict(_contents(_asked(repos, small, "--batch")))
    names = {blob.split(" ")[1]: blob for blob in blobs}
    found = dict[str, str]()
    for id, content in texts.items():
        with suppress(UnicodeDecodeError, LookupError):
            found[names[id]] = content.decode(_encoding(content))
    return found


_COOKIE = re.compile(rb"\A(?:[^\n]*\n)?[ \t\f]*#[^\n]*?coding[:=][ \t]*([-\w.]+)")


def _encoding(content: bytes) -> str:
    """Python's files may say another one, in one of their first two lines."""
    found = _COOKIE.match(content[:400])
    return found[1].decode("ascii") if found else "utf-8"


def _entry(line: str) -> tuple[str, str]:
    """`mode type id<tab>path`."""
    facts, _, path = line.partition("\t")
    mode, _, id = facts.split(" ")
    return path, f"{mode} {id}"


def _small(repos: Repositories, ids: Sequence[str]) -> Iterator[str]:
    left = TOTAL
    for line in _asked(repos, ids, "--batch-check").decode("ascii", "replace").splitlines():
        id, kind, *size = line.split(" ")
        if kind == "blob" and int(size[0]) <= min(TEXT, left):
            left -= int(size[0])
            yield id


def _contents(said: bytes) -> Iterator[tuple[str, bytes]]:
    """`id type size`, the content, a line's end, and the next."""
    at = 0
    while at < len(said):
        end = said.index(b"\n", at)
        id, _, size = said[at:end].decode("ascii").split(" ")
        at = end + 1 + int(size) + 1
        yield id, said[end + 1 : at - 1]


def _asked(repos: Repositories, ids: Sequence[str], how: str) -> bytes:
    """By way of files, because what comes back may be anything."""
    if not ids:
        return b""
    name = secrets.token_hex(4)
    wanted, answer = (repos.directory / f".{it}-{name}" for it in ("ask", "told"))
    git = (*HARDENED, f"--git-dir={repos.judge}", "cat-file", how)
    try:
        wanted.write_bytes("".join(f"{id}\n" for id in ids).encode("ascii"))
        shell = ("sh", "-c", 'exec "$@" >"$0"')
        asked = (*shell, str(answer), *git)
        done = run(asked, deadline=LONG, environment=ENVIRONMENT, given=wanted)
        if done.code != 0:
            fix = "do as git says, then try again"
            raise Unavailable("files were not read", why=words_of(done), fix=fix)
        return answer.read_bytes()
    finally:
        for file in (wanted, answer):
            file.unlink(missing_ok=True)


# What stays out of a change.


def dependencies(base: Path, commit: str) -> tuple[str, ...]:
    """The patterns of dependencies, without the folders of that name that the commit has."""
    what = "the folders of dependencies were not looked up"
    names = told(what, base, "ls-tree", "-r", "-z", "--name-only", commit)
    own = {folder for name in names.split("\0") for folder in _folders(name)}
    return (*DEPENDENCIES, *(f"!{it}/" for it in patterns_of(sorted(own))))


def patterns_of(paths: Iterable[str]) -> Iterator[str]:
    """One that matches each path and no other; none for a path that no pattern can name."""
    for path in paths:
        if "\n" not in path:
            yield "/" + _SPECIAL.sub(lambda found: f"\\{found[0]}", path)


def made_by_set_up(
    before: Iterable[Entry], after: Iterable[Entry], inputs: Sequence[str]
) -> frozenset[Entry]:
    """The files that only the set-up can have made; lock files and its inputs are like others."""
    known = {path_of(it) for it in before}
    return frozenset(
        it for it in after if path_of(it) not in known and not _is_ordinary(path_of(it), inputs)
    )


def path_of(entry: Entry) -> str:
    return os.fsdecode(entry.partition(b"\t")[2])


def entries_in(listed: bytes) -> frozenset[Entry]:
    return frozenset(it for it in listed.split(b"\0") if it)


def as_list(entries: Iterable[Entry]) -> bytes:
    """In the order in which `comm` wants them."""
    return b"".join(it + b"\0" for it in sorted(entries))


def _folders(name: str) -> Iterator[str]:
    """Those above a file that are called like dependencies."""
    for found in _FOLDER.finditer(name):
        yield name[: found.end() - 1]


def _is_ordinary(path: str, inputs: Sequence[str]) -> bool:
    name = PurePosixPath(path).name
    if any(fnmatchcase(name, lock) for lock in LOCKS):
        return True
    folders = (f"{it.rstrip('/')}/" for it in inputs)
    return any(fnmatchcase(path, it) for it in inputs) or path.startswith(tuple(folders))
