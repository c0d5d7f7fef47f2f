"""How much the processes of one box use, read from /proc from outside of it."""

import os
from collections.abc import Iterator
from contextlib import suppress

PAGE = os.sysconf("SC_PAGE_SIZE")
RESIDENT, THREADS = 1, 17  # which words: of statm; of stat, behind the program's name


def namespace_of(pid: int) -> int:
    """Which namespace of processes it is in; 0 where it is gone."""
    with suppress(OSError):
        return os.stat(f"/proc/{pid}/ns/pid").st_ino  # noqa: PTH116 - asked many times a second
    return 0


def processes_in(namespace: int) -> tuple[int, ...]:
    with os.scandir("/proc") as entries:
        pids = [int(it.name) for it in entries if it.name.isdigit()]
    return tuple(pid for pid in pids if namespace_of(pid) == namespace)


def threads_of(pids: tuple[int, ...]) -> int:
    return sum(_word(pid, "stat", THREADS) for pid in pids)


def memory_of(pids: tuple[int, ...], enough: int) -> int:
    """Bytes; pages that several of them share count once, where that makes a difference."""
    resident = sum(_word(pid, "statm", RESIDENT) for pid in pids) * PAGE
    return resident if resident <= enough else sum(_own_share(pid) for pid in pids)


def _word(pid: int, file: str, index: int) -> int:
    with suppress(OSError, IndexError, ValueError):
        return int(_text(f"/proc/{pid}/{file}").rpartition(") ")[2].split()[index])
    return 0


def _own_share(pid: int) -> int:
    try:
        lines = _text(f"/proc/{pid}/smaps_rollup").splitlines()
    except OSError:
        return _word(pid, "statm", RESIDENT) * PAGE
    return sum(_shares(lines)) * 1024


def _shares(lines: list[str]) -> Iterator[int]:
    for line in lines:
        name, _, rest = line.partition(":")
        if name in {"Pss", "SwapPss"}:
            yield int(rest.split()[0])


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - as above
        return file.read()
