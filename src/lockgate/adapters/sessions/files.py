"""Small JSON files that are there whole or not at all."""

import contextlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path


def read_object(path: Path) -> dict[str, object] | None:
    """None where it is missing."""
    try:
        found: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found


def write_once(path: Path, content: Mapping[str, object]) -> None:
    """Keeps what is there already: of many writers the first one counts."""
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(new)
    finally:
        new.unlink(missing_ok=True)
    _sync(path.parent)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
