"""Commits written into a repository as git writes them: each in a file of its own.

A candidate is one small commit; a program to write it would cost more than all the rest of it.
"""

import hashlib
import secrets
import zlib

from lockgate.adapters.workspaces.repositories import Repositories
from lockgate.core.train.model import Commit
from lockgate.errors import Unavailable

_LONG_NAME = 64  # of a repository whose objects are named by SHA-256


def written_commit(repos: Repositories, text: str) -> Commit:
    """The same text has the same name; what is there already is left alone."""
    body = text.encode("utf-8", "surrogateescape")
    whole = b"commit %d\0%s" % (len(body), body)
    named = hashlib.sha256 if _names_are_long(text) else hashlib.sha1
    name = named(whole).hexdigest()
    place = repos.judge / "objects" / name[:2] / name[2:]
    beside = place.with_name(f"tmp_obj_{secrets.token_hex(4)}")
    try:
        if not place.exists():
            place.parent.mkdir(exist_ok=True)
            beside.write_bytes(zlib.compress(whole))
            beside.chmod(0o444)
            beside.rename(place)
    except OSError as error:
        what, fix = f"commit {name} was not written", "see that the disk has room"
        raise Unavailable(what, why=str(error), fix=fix) from error
    return Commit(name)


def _names_are_long(text: str) -> bool:
    return len(text.partition("\n")[0].partition(" ")[2]) == _LONG_NAME
