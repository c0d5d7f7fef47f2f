"""The files of a session: what its runner is told, in spec.json, and what its program writes.

A log is bounded: its beginning, and always its newest output. NAME holds the head; then NAME.1,
NAME.2, … follow, of which the last two are kept.
"""

import contextlib
import os
from collections.abc import Callable, Iterable
from typing import TypedDict

from lockgate.core.model.secrets import Secret, forms_of, held_back, hiding_bytes

LEFT_OUT = "\n… output left out …\n"


class Program(TypedDict):
    """What is to run. `program` encloses it and reads `options` by descriptor; empty: nothing does.

    Where something encloses it, its environment and directory stand in the options.
    """

    program: list[str]
    options: list[str]
    separate: list[str]  # the namespaces that it must not share with the runner
    uplink: list[str]  # what gives its own network a way out; empty where it shares ours
    argv: list[str]
    env: dict[str, str]
    directory: str


class Spec(TypedDict):
    token: str
    mark: str  # in the environment of all that the program starts
    home: str
    python: str
    run: Program
    stdin: str | None
    wall_seconds: float
    silent_seconds: float
    limited: str  # a pattern of the lines that say that it hit a usage limit; empty: there are none
    limited_seconds: float  # how long it may try again by itself then
    memory_mb: int  # 0 is no limit; also in the next one
    disk_mb: int
    places: list[str]  # what it may fill
    group: str  # the control group in which its own is made; empty where none can be made
    log_bytes: int
    interactive: bool
    secrets: list[list[str]]  # names and values that the logs must not show


# Logs.


class Log:
    """Never raises: a full disk must not stop the program whose output it is.

    What may be the beginning of a secret is held back until the rest of it is there.
    """

    def __init__(
        self,
        path: str,
        longest: int,
        secrets: Iterable[Secret] = (),
        heard: Callable[[bytes], None] = lambda _: None,
    ) -> None:
        """`heard` gets each chunk as well."""
        self._heard = heard
        known = tuple(secrets)
        self._hide, self._held = hiding_bytes(known), b""
        self._forms = tuple(form for it in known for form in forms_of(it))
        self._path = path
        self._sizes = longest // 2, longest // 4
        self._part, self._written = 0, 0
        self._file = self._opened(path)

    def write(self, chunk: bytes) -> None:
        self._heard(chunk)
        shown = self._hide(self._held + chunk)
        keep = len(shown) - held_back(shown, self._forms)
        self._held = shown[keep:]
        self._write(shown[:keep])

    def close(self) -> None:
        self._write(self._held)
        self._held = b""
        self._close()

    def _write(self, chunk: bytes) -> None:
        while chunk:
            room = self._sizes[min(self._part, 1)] - self._written
            if room <= 0:
                self._next_part()
                continue
            self._put(chunk[:room])
            self._written += min(room, len(chunk))
            chunk = chunk[room:]

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _put(self, chunk: bytes) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.write(self._file, chunk)

    def _next_part(self) -> None:
        self._close()
        self._part, self._written = self._part + 1, 0
        if self._part > 2:  # noqa: PLR2004 - the last two are kept
            with contextlib.suppress(OSError):
                os.unlink(f"{self._path}.{self._part - 2}")  # noqa: PTH108 - the runner has no pathlib
        self._file = self._opened(f"{self._path}.{self._part}")

    @staticmethod
    def _opened(path: str) -> int | None:
        with contextlib.suppress(OSError):
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        return None


def written(path: str) -> str:
    """Head and tail of it, with a line between them where something is missing."""
    directory, name = os.path.split(path)
    try:
        names = os.listdir(directory)  # noqa: PTH208 - the runner has no pathlib
    except OSError:
        return ""
    parts = sorted(int(it[len(name) + 1 :]) for it in names if _is_part(it, name))
    text = _text(path)
    if parts and parts[0] != 1:
        text += LEFT_OUT
    return text + "".join(_text(f"{path}.{part}") for part in parts)


def _is_part(it: str, name: str) -> bool:
    return it.startswith(f"{name}.") and it[len(name) + 1 :].isdigit()


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:  # noqa: PTH123 - the runner has no pathlib
            return file.read()
    except OSError:
        return ""
