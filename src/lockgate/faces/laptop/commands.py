"""Where each command is carried out for who is logged in at a server, and what is sent along.

The server takes only what `FAR` names; the rest stays on the laptop, or needs a terminal there.
"""

import os
from urllib.parse import urlencode

from lockgate.errors import Refused
from lockgate.faces import client

TASKS = (
    *("list", "show", "why", "log", "peek", "create", "update", "edit", "complete", "cancel"),
    *("start", "respawn", "repin", "drop-dependency", "delete"),
)
FAR = frozenset(
    {
        *((it,) for it in ("status", "inbox", "stats", "events", "diff", "verify", "run")),
        *((it,) for it in ("approve", "reject", "comment", "answer", "say", "resume")),
        *((it,) for it in ("undo", "handback")),
        *(("task", it) for it in TASKS),
        *(("queue", it) for it in ("list", "approve", "hold", "drop")),
        *(("pr", it) for it in ("show", "adopt", "restore")),
        *(("issue", it) for it in ("list", "take")),
        ("web", "login"),
    }
)
# About this laptop and the clone that one is in, or a server of its own.
HERE = frozenset(
    {"login", "logout", "init", "demo", "doctor", "gate", "completion", "--version"}
    | {"up", "down", "web", "checkpoint", "review", "step"}
)
# They give a terminal away: by ssh.
SEATED = frozenset({("takeover",), ("shell",), ("open",), ("tui",), ("task", "attach")})
# About the server's machine: by ssh too, and only in words, for who may do that there.
THERE = frozenset(
    {
        *("auth", "backup", "db", "du", "fleet", "forge", "notify", "people", "prune", "restore"),
        *("trust", "worker"),
    }
)
FILES = ("--file", "--context", "--plan")  # options that name a file
LONGEST_CONFIG = 1 << 20


def is_far(argv: list[str]) -> bool:
    return bool(_names(argv) & FAR)


def asks_for_help(argv: list[str]) -> bool:
    """Help is the same everywhere, and needs no server."""
    end = argv.index("--") if "--" in argv else len(argv)
    return "--help" in argv[:end]


def is_seated(argv: list[str]) -> bool:
    return bool(_names(argv) & SEATED)


def _names(argv: list[str]) -> set[tuple[str, ...]]:
    """What the command may be called: its first word, or its first two."""
    words = tuple(it for it in argv if it != "--json")
    return {words[:1], words[:2]}


# Files are read here: no path of this machine means anything to the server.


def with_files(argv: list[str]) -> tuple[list[str], bytes]:
    """The same command with `-` for the file that it names, and what the file says."""
    end = argv.index("--") if "--" in argv else len(argv)
    for at, word in enumerate(argv[:end]):
        option, joined, name = word.partition("=")
        if option not in FILES or (not joined and at + 1 >= end):
            continue
        if joined:
            return [*argv[:at], f"{option}=-", *argv[at + 1 :]], _content(name)
        return [*argv[: at + 1], "-", *argv[at + 2 :]], _content(argv[at + 1])
    return argv, b""


def _content(name: str) -> bytes:
    try:
        return client.whole_input() if name == "-" else client.content(name)
    except OSError as error:
        why = f"{name} was not read: {error.strerror}"
        fix = "name a readable text file of at most 1 MB, or - for stdin"
        raise Refused("nothing was done", why=why, fix=fix) from error


# Which project is meant: by where the clone came from. Git is not asked: its file says it.


def where() -> str:
    """What a server finds the project by: a query with `origin` and `name`, or with `project`."""
    named = os.environ.get("LOCKGATE_PROJECT", "")
    if named:
        return urlencode({"project": named})
    try:
        top = os.getcwd()  # noqa: PTH109 - pathlib is slow to load
    except OSError:
        return ""
    while True:
        config = _config_in(top)
        if config:
            found = {"origin": origin_in(_text(config)), "name": os.path.basename(top)}  # noqa: PTH119 - as above
            return urlencode({key: value for key, value in found.items() if value})
        above = os.path.dirname(top)  # noqa: PTH120 - as above
        if above == top:
            return ""
        top = above


def _config_in(top: str) -> str:
    """The file of a repository's settings; empty where there is no repository."""
    git = os.path.join(top, ".git")  # noqa: PTH118 - as above
    if os.path.isdir(git):  # noqa: PTH112 - as above
        return os.path.join(git, "config")  # noqa: PTH118 - as above
    told = _text(git)
    if not told.startswith("gitdir:"):
        return ""
    git = os.path.join(top, told.partition(":")[2].strip())  # noqa: PTH118 - as above
    common = _text(os.path.join(git, "commondir")).strip()  # noqa: PTH118 - as above
    return os.path.join(git, common, "config")  # noqa: PTH118 - as above


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - as above
            return file.read(LONGEST_CONFIG)
    except OSError:
        return ""


def origin_in(config: str) -> str:
    """The first url of the remote called origin, without the user and password in it."""
    inside = False
    for line in config.splitlines():
        told = line.strip()
        if told.startswith("["):
            inside = told.replace(" ", "").lower() == '[remote"origin"]'
        key, equals, value = told.partition("=")
        if inside and equals and key.strip().lower() == "url":
            return _without_user(value.strip().strip('"'))
    return ""


def _without_user(url: str) -> str:
    scheme, found, rest = url.partition("://")
    if not found:
        return url
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"
