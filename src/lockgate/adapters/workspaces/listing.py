"""What a commit holds: its paths with their blobs, and the texts of those."""

import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from lockgate.adapters.run import run
from lockgate.adapters.workspaces.git import ENVIRONMENT, HARDENED, LONG, told, words_of
from lockgate.adapters.workspaces.repositories import Repositories
from lockgate.errors import Unavailable

TEXT = 1_000_000  # bytes of one file; more is no test that somebody wrote
TOTAL = 100_000_000
_PLAIN = ("100644 ", "100755 ")


def blobs_of(git_dir: Path, commit: str) -> dict[str, str]:
    """Path → mode and id. Links and submodules are there too, under their own modes."""
    listed = told(f"the files of {commit} were not listed", git_dir, "ls-tree", "-r", "-z", commit)
    return dict(_entry(line) for line in listed.split("\0")[:-1])


def texts_of(repos: Repositories, blobs: Iterable[str]) -> dict[str, str]:
    """Of plain files that are UTF-8; the first that fit, where they are too many."""
    ids = {blob.split(" ")[1]: None for blob in blobs if blob.startswith(_PLAIN)}
    small = tuple(_small(repos, tuple(ids)))
    texts = dict(_contents(_asked(repos, small, "--batch")))
    names = {blob.split(" ")[1]: blob for blob in blobs}
    found = dict[str, str]()
    for id, content in texts.items():
        with suppress(UnicodeDecodeError):
            found[names[id]] = content.decode("utf-8")
    return found


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
