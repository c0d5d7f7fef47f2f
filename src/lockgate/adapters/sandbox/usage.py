"""How much the processes of one box use, read from /proc from outside of it.

The runner of a session loads this too, so it takes nothing but the standard library.
"""

import os
from collections.abc import Collection, Iterator
from contextlib import suppress

PAGE = os.sysconf("SC_PAGE_SIZE")
BLOCK = 512  # bytes, whatever the file system's are
MEMORY_FILE = "/memfd:"  # how its name begins, wherever it is told
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
    """Bytes, also of memory files that no process has mapped.

    Pages that several of them share count once, where that makes a difference.
    """
    resident = sum(_word(pid, "statm", RESIDENT) for pid in pids) * PAGE
    files = {
        found.st_ino: found.st_blocks * BLOCK
        for link, found in held_by(pids)
        if link.startswith(MEMORY_FILE)
    }
    in_files = sum(files.values())
    if resident + in_files <= enough:
        return resident + in_files
    return in_files + sum(_own_share(pid, files.keys()) for pid in pids)


def held_by(pids: tuple[int, ...]) -> Iterator[tuple[str, os.stat_result]]:
    """What they have open that has no name any more, or never had one; perhaps more than once."""
    for pid in pids:
        with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                with suppress(OSError):
                    link = os.readlink(entry.path)  # noqa: PTH115 - asked many times a second
                    if link.endswith(" (deleted)"):
                        yield link, entry.stat()


def _word(pid: int, file: str, index: int) -> int:
    with suppress(OSError, IndexError, ValueError):
        return int(_text(f"/proc/{pid}/{file}").rpartition(") ")[2].split()[index])
    return 0


def _own_share(pid: int, apart: Collection[int]) -> int:
    """Without the memory files that are counted apart, by their inodes."""
    try:
        lines = _text(f"/proc/{pid}/smaps{'' if apart else '_rollup'}").splitlines()
    except OSError:
        return _word(pid, "statm", RESIDENT) * PAGE
    return sum(_shares(lines, apart)) * 1024


def _shares(lines: list[str], apart: Collection[int]) -> Iterator[int]:
    counts = True
    for line in lines:
        name, _, rest = line.partition(":")
        if "-" in name:  # a mapping begins: addresses, mode, offset, device, inode, path
            words = line.split(maxsplit=5)
            counts = not (words[-1].startswith(MEMORY_FILE) and int(words[4]) in apart)
        elif counts and name in {"Pss", "SwapPss"}:
            yield int(rest.split()[0])


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - as above
        return file.read()
