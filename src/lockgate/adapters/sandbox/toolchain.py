"""Which of the host's paths a program needs to run at all, and which no sandbox shows.

The programs that make a sandbox are found only where nobody but root could have put them.
"""

import functools
import os
import pwd
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from lockgate.errors import Unavailable

SYSTEM = ("/usr", "/bin", "/sbin", "/etc", "/opt", "/nix")

# Where the tools that stand in for many versions look for them, when HOME is not the user's.
ROOTS = {
    ".pyenv": "PYENV_ROOT",
    ".rbenv": "RBENV_ROOT",
    ".rustup": "RUSTUP_HOME",
    ".volta": "VOLTA_HOME",
    ".asdf": "ASDF_DATA_DIR",
}

# What is shown beside the programs of a hidden directory, which may hold credentials and state.
PARTS = (
    "include",
    "install",
    "installs",
    "lib",
    "lib64",
    "libexec",
    "node_modules",
    "pipx",
    "pyvenv.cfg",
    "share/pipx",
    "share/uv/python",
    "tools",
    "versions",
)
PACKAGES = {
    "bwrap": "bubblewrap",
    "prlimit": "util-linux",
    "setpriv": "util-linux",
    "unshare": "util-linux",
}
NOT_NEEDED = {"pasta": "passt"}
WRITE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def toolchain() -> tuple[str, ...]:
    """What every box shows beyond the system's: this Python, Lockgate, and PATH's prefixes."""
    found = [sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(__file__).parents[2])]
    for entry in path_entries():
        if not any(within(entry, it) for it in system()):
            found += _around(Path(entry))
    found += [str(place) for place, _ in _roots()]
    return outermost(name for path in found for name in (path, os.path.realpath(path)))


def roots() -> dict[str, str]:
    """The variables that say where those tools keep their versions."""
    return {variable: str(place) for place, variable in _roots()}


def path_entries() -> tuple[str, ...]:
    """The directories of PATH that are there, each once."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return tuple(dict.fromkeys(it for it in entries if it.startswith("/") and is_there(it)))


@functools.cache
def system() -> tuple[str, ...]:
    """The system's own directories, as they are named here; some are links to others."""
    libraries = sorted(str(it) for it in Path("/").glob("lib*"))
    return tuple(it for it in (*SYSTEM, *libraries) if Path(it).is_dir())


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Without those that lie in the system's directories or in another of them."""
    kept = list(system())
    own = len(kept)
    for path in sorted(set(paths), key=lambda it: (it.count("/"), it)):
        if path != "/" and is_there(path) and not any(within(path, it) for it in kept):
            kept.append(path)
    return tuple(kept[own:])


def within(path: str, other: str) -> bool:
    return path == other or path.startswith(other.rstrip("/") + "/")


def is_there(path: str) -> bool:
    """Also False where we may not look."""
    return os.access(path, os.F_OK)


def _around(entry: Path) -> Iterator[str]:
    """A directory of programs and what they need beside it."""
    yield str(entry)
    yield from _linked(entry)
    prefix = entry.parent
    if prefix.name.startswith("."):
        yield from (str(prefix / part) for part in PARTS)
    elif not _holds_more_than_tools(prefix):
        yield str(prefix)


def _holds_more_than_tools(prefix: Path) -> bool:
    """A home, a work tree, or a directory so high that it could hold anything."""
    high = prefix.parent in {Path("/"), Path("/home")}
    return high or prefix == Path.home() or is_there(str(prefix / ".git"))


def _linked(entry: Path) -> Iterator[str]:
    """Where the links among the programs lead: `~/.local/share/NAME/KIND` for an installer's."""
    shared = entry.parent / "share"
    try:
        programs = list(entry.iterdir()) if is_there(str(shared)) else []
    except OSError:
        return
    for program in programs:
        target = Path(os.path.realpath(program))
        if program.is_symlink() and target.is_relative_to(shared):
            yield str(shared.joinpath(*target.relative_to(shared).parts[:2]))


def _roots() -> Iterator[tuple[Path, str]]:
    for name, variable in ROOTS.items():
        place = Path(os.environ.get(variable) or Path.home() / name)
        used = any(within(it, str(place)) for it in path_entries())
        rustup = name == ".rustup" and any(it.endswith("/.cargo/bin") for it in path_entries())
        if is_there(str(place)) and (used or rustup):
            yield place, variable


# What of a user's home no sandbox shows unless it is named itself: keys, logins, histories.


PRIVATE = (
    *(".ssh", ".gnupg", ".pki", ".password-store", ".local/share/keyrings", ".vault-token"),
    *(".aws", ".azure", ".config/gcloud", ".kube", ".docker", ".terraform.d", ".oci"),
    *(".config/containers", ".config/gh", ".config/glab-cli", ".config/hub", ".config/op"),
    *(".netrc", ".git-credentials", ".config/git/credentials", ".npmrc", ".yarnrc.yml", ".pypirc"),
    *(".config/pypoetry", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials"),
    *(".m2/settings.xml", ".gradle/gradle.properties", ".pgpass", ".my.cnf"),
    *(".claude", ".claude.json", ".codex", ".gemini", ".config/opencode"),
    *(".local/share/opencode", ".aider.conf.yml", ".local/state/lockgate"),
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium"),
    *(".bash_history", ".zsh_history", ".python_history", ".psql_history"),
)


def private_places(shown: Iterable[str], named: Iterable[str]) -> tuple[str, ...]:
    """Those that lie in what is shown, and that nobody has named, by where they really are."""
    seen, asked = tuple(shown), {os.path.realpath(it) for it in named}
    found = (f"{home}/{name}" for home in _homes() for name in PRIVATE)
    real = dict.fromkeys(os.path.realpath(it) for it in found if is_there(it))
    return tuple(it for it in real if it not in asked and any(within(it, top) for top in seen))


def _homes() -> tuple[str, ...]:
    """As the environment has it, and as the system does."""
    homes = [os.path.expanduser("~")]  # noqa: PTH111 - a string is what bwrap gets
    with suppress(KeyError):
        homes.append(pwd.getpwuid(os.geteuid()).pw_dir)
    return tuple(dict.fromkeys(it.rstrip("/") for it in homes))


# The programs that make a sandbox, found only where nobody but root could have put them.


class NotTrusted(Unavailable):
    """The program is not there, or only where somebody else than root can change it."""


def trusted(program: str, path: str | None = None) -> str:
    """Its real path: the first one on PATH of which each part belongs to root alone."""
    return _trusted_on(program, os.environ.get("PATH", os.defpath) if path is None else path)


@functools.lru_cache
def _trusted_on(program: str, path: str) -> str:
    why = ""
    for directory in path.split(os.pathsep):
        found = shutil.which(program, path=directory) if directory.startswith("/") else None
        if found is None:
            continue
        fault = _fault_of(os.path.realpath(found))
        if fault is None:
            return os.path.realpath(found)
        why = why or f"{found} does not count: {fault}"
    package = (PACKAGES | NOT_NEEDED).get(program, program)
    raise NotTrusted(
        f"{program} was not run",
        why=why or f"{program} is not on PATH (it is in the package {package})",
        fix=f"install it for the whole machine (Debian: apt install {package})",
    )


def _fault_of(real: str) -> str | None:
    """Why somebody else than root could have made this program, or changed it."""
    for part in (Path(real), *Path(real).parents):
        found = part.stat()
        if found.st_uid != 0:
            return f"{part} belongs to uid {found.st_uid}, not to root"
        if found.st_mode & WRITE_BY_OTHERS:
            return f"{part} can be written by others than root"
        if os.path.lexists(part / ".git"):
            return f"{part} is a git repository"
    return None
