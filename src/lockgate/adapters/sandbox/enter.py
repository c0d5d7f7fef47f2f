"""Becomes a program that sees a set-up layer: `enter.py ROOM LAYER PROGRAM…`.

Run by path and alone. The first who comes mounts an overlay, in a mount namespace of its own. Who
comes while that one lives joins its namespace: two mounts of the same files would not see what each
other writes.
"""

import fcntl
import os
import sys
from collections.abc import Iterator

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_REC, MS_PRIVATE = 0x4000, 1 << 18
# Renames of folders are not noted but copied, so that what lies in `upper` can be read by itself.
OPTIONS = "index=off,metacopy=off,redirect_dir=nofollow"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def main(room: str, layer: str, argv: list[str]) -> None:
    users = f"{room}/users"
    lock = os.open(f"{room}/lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    if not any(_joined(pid) for pid in users_of(users)):
        _mount(room, layer)
    _note(users)
    os.close(lock)
    os.chdir("/")
    os.execv(argv[0], argv)  # noqa: S606 - what we were told to become


def users_of(folder: str) -> Iterator[int]:
    """The processes that have entered and live; the notes of the others go."""
    for name in _names(folder):
        try:
            with open(f"{folder}/{name}", encoding="ascii") as file:  # noqa: PTH123 - starts fast
                known = file.read()
        except OSError:
            continue
        if name.isdigit() and known == _facts(int(name)):
            yield int(name)
        else:
            _forget(f"{folder}/{name}")


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - starts fast
    except OSError:
        return []


def _forget(note: str) -> None:
    try:
        os.unlink(note)  # noqa: PTH108 - starts fast
    except OSError:
        return


def _facts(pid: int | str) -> str:
    """What no other process has: boot, start and mount namespace; empty where it has ended."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123 - starts fast
            boot = file.read().strip()
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - starts fast
            fields = file.read().rpartition(b")")[2].split()
        space = os.stat(f"/proc/{pid}/ns/mnt").st_ino  # noqa: PTH116 - starts fast
    except OSError:
        return ""
    return "" if fields[0] == b"Z" else f"{boot} {fields[19].decode()} {space}"


def _note(folder: str) -> None:
    with open(f"{folder}/{os.getpid()}", "w", encoding="ascii") as file:  # noqa: PTH123 - starts fast
        file.write(_facts("self"))


def _joined(pid: int) -> bool:
    """Its namespaces become ours; not where it has ended meanwhile."""
    kinds = [("mnt", CLONE_NEWNS)]
    if os.geteuid() != 0:
        kinds.insert(0, ("user", CLONE_NEWUSER))
    opened = list[tuple[int, int]]()
    try:
        for name, kind in kinds:
            opened.append((os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY), kind))
    except OSError:
        return False
    for descriptor, kind in opened:
        _called("setns", descriptor, kind)
        os.close(descriptor)
    return True


def _mount(room: str, layer: str) -> None:
    """By descriptors: a path may hold what separates the options of a mount."""
    uid, gid = os.geteuid(), os.getegid()
    _called("unshare", CLONE_NEWNS | (CLONE_NEWUSER if uid else 0))
    if uid:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"0 {uid} 1"),
            ("gid_map", f"0 {gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123 - starts fast
                file.write(text)
    _called("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)
    try:
        lower, ours = os.open(layer, _FOLDER), os.open(room, _FOLDER)
    except OSError as error:
        sys.exit(f"the set-up layer cannot be seen: {error}")
    at = f"/proc/self/fd/{ours}"
    dirs = f"lowerdir=/proc/self/fd/{lower},upperdir={at}/upper,workdir={at}/work"
    how = OPTIONS + (",userxattr" if uid else "")
    _called("mount", b"lockgate", f"{at}/tree".encode(), b"overlay", 0, f"{dirs},{how}".encode())
    os.close(lower)
    os.close(ours)


def _called(name: str, *arguments: object) -> None:
    import ctypes  # noqa: PLC0415 - after the lock is held, as in launch.py

    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        sys.exit(f"the set-up layer cannot be seen: {name}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
