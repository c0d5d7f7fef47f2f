"""A repository of ours, written as the few files that it is: git would start a program for each."""

import os
from pathlib import Path

# All may read what a sandbox shows, whatever the umask: as root another uid reads it.
SHARED = "[core]\n\tsharedRepository = 0644\n[receive]\n\tdenyNonFastForwards = true\n"
_FOLDERS = ("objects", "objects/info", "refs")  # git makes the others where it wants them
_LONG_NAME = 64  # of a commit in a repository whose objects are named by SHA-256
_EXECUTABLE = 0o100


def make_repository(git_dir: Path, commit: str, settings: str, *, bare: bool) -> None:
    """For objects that are named as this commit is, with no ref yet."""
    git_dir.mkdir(parents=True)
    for folder in _FOLDERS:
        (git_dir / folder).mkdir()
    set_ref(git_dir, "HEAD", "ref: refs/heads/main")
    text = _configuration(git_dir / "HEAD", bare=bare, long=len(commit) == _LONG_NAME)
    (git_dir / "config").write_bytes(os.fsencode(text + settings))


def open_to_all(git_dir: Path) -> None:
    """What is in a new repository that is shared; git itself does so with what it adds."""
    for place in (git_dir, *git_dir.rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)


def set_ref(git_dir: Path, name: str, value: str) -> None:
    """To a commit, or to `ref: ` and another; only while nobody else uses the repository."""
    if any(part in {"", ".", ".."} for part in name.split("/")):
        raise ValueError(f"not the name of a ref: {name!r}")
    place = git_dir / name
    if ref_at(git_dir, name) != value:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(os.fsencode(value) + b"\n")


def ref_at(git_dir: Path, name: str) -> str | None:
    """What a ref's own file says; None where git has to be asked."""
    try:
        return (git_dir / name).read_text(encoding="ascii").rstrip("\n")
    except (OSError, UnicodeDecodeError):
        return None


def _configuration(head: Path, *, bare: bool, long: bool) -> str:
    facts = {
        "repositoryformatversion": "1" if long else "0",
        "bare": _word(bare),
        "logAllRefUpdates": _word(not bare),
        "filemode": _word(_keeps_modes(head)),
        "ignorecase": _word(head.with_name("head").exists()),
    }
    lines = "".join(f"\t{name} = {value}\n" for name, value in facts.items())
    return f"[core]\n{lines}" + ("[extensions]\n\tobjectFormat = sha256\n" if long else "")


def _keeps_modes(file: Path) -> bool:
    """Whether the disk does, as git tries it."""
    before = file.stat().st_mode
    file.chmod(before ^ _EXECUTABLE)
    kept = file.stat().st_mode != before
    file.chmod(before)
    return kept


def _word(it: object) -> str:
    return "true" if it else "false"
