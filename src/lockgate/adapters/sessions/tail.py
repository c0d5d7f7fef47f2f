"""A session's output as it grows: only what is new is read, and only where a file has grown."""

import os

from lockgate.adapters.sessions.runner.files import LEFT_OUT

NAMES = ("stdout.log", "stderr.log")
FIRST = 1 << 14  # bytes of each log that the first look shows
AT_ONCE = 1 << 16  # bytes of each log that one look shows


class Tail:
    """Both logs of one session; what each has written comes as whole lines."""

    def __init__(self, directory: str) -> None:
        self._logs = tuple(_Log(f"{directory}/{name}") for name in NAMES)

    def lines(self) -> list[str]:
        return [line for log in self._logs for line in log.lines()]


class _Log:
    """NAME, then NAME.1, NAME.2, …; the older of these go, and what was in them is passed over."""

    def __init__(self, path: str) -> None:
        self._path, self._part, self._at = path, 0, -1
        self._rest = b""  # of a line whose end has not come
        self._cut = False  # whether the beginning of that line is missing

    def lines(self) -> list[str]:
        size = _size(self._name(self._part))
        if size is None:
            return self._skip()
        if self._at < 0:
            size = self._begin(size)
        found = self._read(size)
        if size <= self._at and _size(self._name(self._part + 1)) is not None:
            self._part, self._at = self._part + 1, 0
        return found

    def _begin(self, size: int) -> int:
        """At the end of the newest part, whose size is the answer."""
        while (newer := _size(self._name(self._part + 1))) is not None:
            self._part, size = self._part + 1, newer
        self._at = max(size - FIRST, 0)
        self._cut = self._at > 0 or self._part > 0
        return size

    def _skip(self) -> list[str]:
        """The part is gone, or not there yet."""
        newer = (it for it in range(self._part + 1, self._part + 1000) if _size(self._name(it)))
        found = next(newer, None) if self._at >= 0 else None
        if found is None:
            return []
        self._part, self._at, self._rest, self._cut = found, 0, b"", True
        return [LEFT_OUT.strip()]

    def _read(self, size: int) -> list[str]:
        """Whole lines; of one that is longer than a look takes, all that there is."""
        wanted = min(size - self._at, AT_ONCE)
        chunk = _bytes(self._name(self._part), self._at, wanted) if wanted > 0 else b""
        self._at += len(chunk)
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) >= AT_ONCE:
            whole, self._rest = [*whole, self._rest], b""
        if whole and self._cut:
            self._cut = False
            whole.pop(0)
        return [it.decode("utf-8", "replace") for it in whole]

    def _name(self, part: int) -> str:
        return f"{self._path}.{part}" if part else self._path


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - four times a second for each that is watched
    except OSError:
        return None


def _bytes(path: str, at: int, most: int) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return b""
    try:
        return os.pread(descriptor, most, at)
    finally:
        os.close(descriptor)
