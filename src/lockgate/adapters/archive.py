"""One file with a copy of a home in it: a compressed tar, written whole or not at all."""

import io
import json
import os
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from lockgate.errors import Refused, Unavailable

MANIFEST, TABLES = "lockgate-backup.json", "database"
FORM = 1
# What cannot be made again. Of a repository the refs come first: what they name is then there.
KEPT = ("tasks", "trust", "trust.toml", "bases", "agents")
REPOSITORY = ("HEAD", "config", "packed-refs", "refs", "shallow", "objects")


class Backup(Struct, frozen=True):
    """What is said of a copy, and the rows of each table, a line of JSON each."""

    facts: Mapping[str, object]
    tables: Mapping[str, Sequence[str]]


def write_archive(file: Path, home: Path, backup: Backup) -> int:
    """Its size in bytes. Files that go while they are read are left out."""
    half = file.with_name(f".{file.name}.half")
    try:
        descriptor = os.open(half, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as raw, tarfile.open(fileobj=raw, mode="w:gz") as tar:
            _add_text(tar, MANIFEST, json.dumps({"form": FORM, **backup.facts}, indent=1))
            for table, rows in backup.tables.items():
                _add_text(tar, f"{TABLES}/{table}.jsonl", "".join(f"{row}\n" for row in rows))
            for path in _files(home):
                with suppress(FileNotFoundError):
                    tar.add(path, f"home/{path.relative_to(home)}")
            raw.flush()
        half.replace(file)
    except OSError as error:
        half.unlink(missing_ok=True)
        why, fix = str(error), "name a file on a disk with enough room"
        raise Unavailable(f"no backup was written to {file}", why=why, fix=fix) from error
    return file.stat().st_size


def read_archive(file: Path) -> Backup:
    """Refused where it is no backup, or one that is not known here."""
    try:
        with tarfile.open(file, "r:gz") as tar:
            facts = json.loads(_text_of(tar, MANIFEST))
            names = [it for it in tar.getnames() if it.startswith(f"{TABLES}/")]
            tables = {Path(it).stem: _text_of(tar, it).splitlines() for it in names}
    except (OSError, tarfile.TarError, KeyError, ValueError, EOFError) as error:
        what, why = f"{file} was not restored", f"it is not a whole backup of lockgate ({error})"
        raise Refused(what, why=why, fix="name a file that lockgate backup has written") from error
    if facts.get("form") != FORM:
        what, why = f"{file} was not restored", "a newer lockgate has written it"
        raise Refused(what, why=why, fix="use a lockgate that is at least as new")
    return Backup(facts, tables)


def unpack_files(file: Path, home: Path) -> None:
    """Put the files of a home there; nothing of the archive can lead elsewhere."""
    with tarfile.open(file, "r:gz") as tar:
        members = [it for it in tar.getmembers() if it.name.startswith("home/")]
        for it in members:
            it.name = it.name.removeprefix("home/")
        tar.extractall(home, members, filter="data")


def _files(home: Path) -> Iterator[Path]:
    yield from (home / name for name in KEPT if (home / name).exists())
    for repository in sorted(home.glob("repos/*/*.git")):
        yield from (repository / it for it in REPOSITORY if (repository / it).exists())
    yield from sorted(home.glob("repos/*/*.json"))


def _add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    raw = text.encode("utf-8", "surrogateescape")
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(raw), 0o600
    tar.addfile(member, io.BytesIO(raw))


def _text_of(tar: tarfile.TarFile, name: str) -> str:
    found = tar.extractfile(name)
    if found is None:
        raise KeyError(name)
    return found.read().decode("utf-8", "surrogateescape")
